#include "store/job.h"

#include <string.h>

#define VERSION 1

const struct job_kind job_table[JOB__MAX] = {
    [JOB_BOOK_SAVE] = {"book_save", "write what changed to `book`", 10000},
    [JOB_SWEEP_SESSIONS] = {"sweep_sessions", "remove bindings that expired", 60000},
    [JOB_SWEEP_COOLDOWNS] = {"sweep_cooldowns", "remove cooldowns of models that ended", 60000},
    [JOB_RECOVER] = {"recover", "probe accounts that may have recovered", 120000},
    [JOB_ACTIVE] = {"active", "a tiny chat on active accounts", 120000},
    [JOB_BALANCE] = {"balance", "ask channels for the credits left", 120000},
    [JOB_READERS] = {"readers", "free the reader slots of dead processes", 30000},
    [JOB_LEDGER_SWEEP] = {"ledger_sweep", "remove days and prices that are too old", 60000},
    [JOB_ALERT] = {"alert", "tell of new events of level alert", 120000},
    [JOB_SWEEP_KEPT] = {"sweep_kept", "remove kept responses and conversations that expired",
        60000},
};

static uint64_t
key_of_job(enum job_id id)
{
	return key_of(KEY_JOB, 0, (uint64_t)id);
}

enum store_rc
job_get(struct txn *txn, enum job_id id, struct job_row *row_out)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key_of_job(id), &bytes);

	memset(row_out, 0, sizeof *row_out);
	if (rc != STORE_OK)
		return rc;
	if (bytes.n != sizeof *row_out || *(const uint8_t *)bytes.p != VERSION)
		return STORE_NONE; /* of another program: begin anew */
	memcpy(row_out, bytes.p, sizeof *row_out);
	return STORE_OK;
}

static enum store_rc
row_put(struct txn *txn, enum job_id id, struct job_row *row)
{
	row->version = VERSION;
	return txn_put(txn, key_of_job(id), row, sizeof *row);
}

/* Ahead of us, but not further than it can be. */
static bool
lies_ahead(int64_t at_ms, struct wall_ms now, int64_t most_ms)
{
	return at_ms > now.v && at_ms - now.v <= most_ms;
}

static bool
may_run(const struct job_row *row, enum job_id id, struct wall_ms now, int64_t period_ms)
{
	if (period_ms <= 0)
		return false;
	if (row->running)
		return !lies_ahead(row->lease_until_ms, now, job_table[id].lease_ms);
	return !lies_ahead(row->due_ms, now, period_ms);
}

enum store_rc
job_claim(struct txn *txn, enum job_id id, struct wall_ms now, int64_t period_ms,
    struct job_claim *claim_out)
{
	struct job_row row;
	enum store_rc rc = job_get(txn, id, &row);

	*claim_out = (struct job_claim){.id = id};
	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	if (!may_run(&row, id, now, period_ms))
		return STORE_OK;
	row.running = 1;
	row.run++;
	row.started_ms = now.v;
	row.due_ms = now.v + period_ms;
	row.lease_until_ms = now.v + job_table[id].lease_ms;
	*claim_out = (struct job_claim){id, true, row.run, row.cursor};
	return row_put(txn, id, &row);
}

/* The row, if the claim still holds. */
static enum store_rc
claimed_row(struct txn *txn, const struct job_claim *claim, struct job_row *row)
{
	enum store_rc rc = job_get(txn, claim->id, row);

	if (rc != STORE_OK)
		return rc;
	return claim->claimed && row->running && row->run == claim->run ? STORE_OK : STORE_NONE;
}

enum store_rc
job_renew(struct txn *txn, const struct job_claim *claim, struct wall_ms now)
{
	struct job_row row;
	enum store_rc rc = claimed_row(txn, claim, &row);

	if (rc != STORE_OK)
		return rc;
	row.lease_until_ms = now.v + job_table[claim->id].lease_ms;
	return row_put(txn, claim->id, &row);
}

enum store_rc
job_done(struct txn *txn, const struct job_claim *claim, struct wall_ms now)
{
	struct job_row row;
	enum store_rc rc = claimed_row(txn, claim, &row);

	if (rc != STORE_OK)
		return rc;
	row.running = 0;
	row.done_ms = now.v;
	row.cursor = claim->cursor;
	return row_put(txn, claim->id, &row);
}

enum store_rc
job_hurry(struct txn *txn, enum job_id id, struct wall_ms now)
{
	struct job_row row;
	enum store_rc rc = job_get(txn, id, &row);

	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	row.due_ms = now.v;
	return row_put(txn, id, &row);
}
