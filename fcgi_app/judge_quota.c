#include "judge.h"

struct quota_limits
judge_limits(const struct conf_account *account)
{
	return (struct quota_limits){account->quota.total_tokens, account->quota.rpm,
	    account->quota.rpd, account->quota.tpm, account->quota.tpd};
}

struct quota_time
judge_quota_time(const struct conf_channel *channel, struct wall_ms now)
{
	return (struct quota_time){(uint32_t)(now.v / 60000), pool_day(channel, now)};
}

/* Nobody knows what a dead worker's request used. */
static void
give_back(const struct conf_channel *channel, const struct slot_row *lease, struct wall_ms now,
    struct quota_row *row)
{
	struct quota_hold hold = {
	    judge_quota_time(channel, (struct wall_ms){lease->started_ms}), lease->tokens};

	quota_settle(row, &hold, 0, true, judge_quota_time(channel, now));
}

static bool
is_dead_hold(const struct judge *j, unsigned i, uint32_t number)
{
	const struct slot_row *row = &j->slots->seen[i].row;

	return row->channel == j->pc->number && row->account == number && row->tokens > 0 &&
	       !slot_lives(j->slot, j->slots->seen[i].number);
}

/* As if the dead had reserved nothing. False: they have not. */
static bool
without_dead(struct judge *j, uint32_t number, struct quota_row *row)
{
	bool any = false;

	for (unsigned i = 0; i < j->slots->n; i++) {
		if (!is_dead_hold(j, i, number))
			continue;
		if (!judge_note_dead(j, number))
			return false;
		give_back(j->channel, &j->slots->seen[i].row, j->now, row);
		any = true;
	}
	return any;
}

struct quota_fit
judge_quota_fit(struct judge *j, const struct pool_seat *seat, uint32_t number)
{
	struct quota_limits limits = judge_limits(&j->channel->accounts[seat->index]);
	struct quota_time time = judge_quota_time(j->channel, j->now);
	struct quota_row row;
	struct quota_fit fit;

	quota_at(&j->quotas, number, &row);
	fit = quota_fits(&row, &limits, j->wish->tokens, time);
	if (fit.hit != QUOTA_FITS && without_dead(j, number, &row))
		fit = quota_fits(&row, &limits, j->wish->tokens, time);
	return fit;
}

static enum store_rc
return_quota(struct txn *txn, const struct conf_channel *channel, const struct slot_row *lease,
    struct wall_ms now)
{
	struct account_ref ref = {lease->channel, lease->account};
	struct quota_row row;
	enum store_rc rc = quota_get(txn, ref, &row);

	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	give_back(channel, lease, now, &row);
	return quota_put(txn, ref, &row);
}

enum store_rc
judge_return_quotas(struct judge *j, uint32_t number)
{
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < j->slots->n && rc == STORE_OK; i++)
		if (is_dead_hold(j, i, number))
			rc = return_quota(j->txn, j->channel, &j->slots->seen[i].row, j->now);
	return rc;
}

enum store_rc
judge_inherit(
    struct txn *txn, const struct pool *pool, const struct slot_row *lease, struct wall_ms now)
{
	for (size_t i = 0; i < pool->conf->nchannels && lease->tokens > 0; i++)
		if (pool->channels[i].number == lease->channel)
			return return_quota(txn, &pool->conf->channels[i], lease, now);
	return STORE_OK;
}
