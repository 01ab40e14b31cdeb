#include "pick.h"

#include "judge.h"
#include "store/cursor.h"
#include "strategy.h"

#include <stdlib.h>
#include <string.h>

/* One pick on its way through its two passes. */
struct choosing {
	struct judge j;
	struct score_board board;
	enum conf_strategy strategy;
	uint32_t cursor;
};

struct choice {
	size_t account;
	enum slot_kind kind;
};

static double
rank_of(struct choosing *c, const struct pool_seat *seat, const struct account_row *row)
{
	const struct conf_account *account = &c->j.channel->accounts[seat->index];
	uint32_t number = (uint32_t)(seat - c->j.pc->seats);
	unsigned needs = strategy_needs(c->strategy);
	struct strategy_facts facts = {
	    .number = number,
	    .cursor = c->cursor,
	    .index = seat->index,
	    .weight = account->weight,
	    .in_flight = c->j.pc->in_flight[number],
	    .quota_left = -1,
	};

	(void)row;
	if (needs & STRATEGY_SMOOTH)
		facts.smooth = c->j.pc->smooth[number] / 1000.0;
	if (needs & STRATEGY_STAT)
		judge_stat(&c->j, number, &facts);
	return strategy_rank(c->strategy, &facts);
}

static void
fill(struct choosing *c, const struct pool_seat *seat, const struct account_row *row,
    struct score_candidate *candidate)
{
	judge_candidate(&c->j, seat, row, candidate);
	if (c->strategy != CONF_ADAPTIVE)
		candidate->rank = rank_of(c, seat, row);
}

typedef void visit_fn(
    struct choosing *c, const struct pool_seat *seat, const struct account_row *row);

static void
visit_judge(struct choosing *c, const struct pool_seat *seat, const struct account_row *row)
{
	enum score_out out = judge_account(&c->j, seat, row);
	struct score_candidate candidate;

	c->j.pc->judged[seat->index] = (uint8_t)out;
	if (out != SCORE_IN) {
		c->j.reason.out[out]++;
		return;
	}
	judge_candidate(&c->j, seat, row, &candidate);
	score_survey(&c->board, &candidate);
}

static void
visit_offer(struct choosing *c, const struct pool_seat *seat, const struct account_row *row)
{
	struct score_candidate candidate;
	enum score_out out;

	if (c->j.pc->judged[seat->index] != SCORE_IN)
		return;
	fill(c, seat, row, &candidate);
	out = score_offer(&c->board, &candidate);
	c->j.pc->judged[seat->index] = (uint8_t)out;
	c->j.reason.out[out]++;
}

/* Rows are read where they lie in the map: nothing may be written between. */
static inline __attribute__((always_inline)) enum store_rc
each_account(struct choosing *c, visit_fn *visit)
{
	for (uint32_t first = 0; first < c->j.pc->top; first += ACCOUNT_SHARD) {
		const struct account_row *rows;
		unsigned n;
		enum store_rc rc =
		    account_shard(c->j.txn, c->j.pc->number, first / ACCOUNT_SHARD, &rows, &n);

		if (rc != STORE_OK)
			return rc;
		if (n > c->j.pc->top - first)
			n = c->j.pc->top - first;
		for (unsigned i = 0; i < n; i++)
			if (c->j.pc->seats[first + i].index != UINT32_MAX)
				visit(c, &c->j.pc->seats[first + i], &rows[i]);
	}
	return STORE_OK;
}

static struct score_rule
rule_of(const struct conf_policy *policy)
{
	int64_t shortlist = policy->pool.shortlist;

	return (struct score_rule){
	    .way = strategy_way((enum conf_strategy)policy->pool.strategy),
	    .credit_factor = policy->pool.credit_factor,
	    .success_factor = policy->pool.success_factor,
	    .idle_weight_per_hour = policy->pool.idle_weight_per_hour,
	    .idle_weight_max = policy->pool.idle_weight_max,
	    .min_pick_gap_ms = policy->pool.min_pick_gap_ms,
	    .shortlist = shortlist < 1                 ? 1
	                 : shortlist > SCORE_SHORT_MAX ? SCORE_SHORT_MAX
	                                               : (unsigned)shortlist,
	};
}

static enum pick_result
reason_of(const struct judge *j)
{
	const unsigned *out = j->reason.out;

	if (out[SCORE_FULL] > 0)
		return PICK_FULL;
	if (out[SCORE_COOLING] + out[SCORE_BREAKER] + out[SCORE_MODEL_COOLING] > 0)
		return PICK_COOLING;
	if (out[SCORE_TRIED] > 0)
		return PICK_TRIED;
	if (out[SCORE_MODEL_MISSING] > 0 || (out[SCORE_MODEL] > 0 && out[SCORE_DISABLED] == 0))
		return PICK_MISSING;
	return PICK_NOBODY;
}

/* What the strategy remembers between picks. */
static enum store_rc
read_strategy(struct choosing *c)
{
	unsigned needs = strategy_needs(c->strategy);
	enum store_rc rc = STORE_OK;

	c->cursor = CURSOR_NOBODY;
	if (needs & STRATEGY_CURSOR)
		rc = cursor_get(c->j.txn, c->j.pc->number, &c->cursor);
	if (rc == STORE_OK && (needs & STRATEGY_SMOOTH))
		rc = cursor_smooth_get(c->j.txn, c->j.pc->number, c->j.pc->smooth, c->j.pc->top);
	return rc;
}

/* Everybody who could have been picked gains its weight; who was picked pays the sum. */
static enum store_rc
write_smooth(struct choosing *c, uint32_t picked)
{
	struct pool_channel *pc = c->j.pc;
	double total = 0;

	for (uint32_t n = 0; n < pc->top; n++) {
		uint32_t index = pc->seats[n].index;

		if (index == UINT32_MAX || pc->judged[index] != SCORE_IN)
			continue;
		pc->smooth[n] += (int32_t)(c->j.channel->accounts[index].weight * 1000);
		total += c->j.channel->accounts[index].weight * 1000;
	}
	pc->smooth[picked] -= (int32_t)total;
	return cursor_smooth_put(c->j.txn, pc->number, pc->smooth, pc->top);
}

static enum store_rc
write_strategy(struct choosing *c, uint32_t picked)
{
	unsigned needs = strategy_needs(c->strategy);
	enum store_rc rc = STORE_OK;

	if (needs & STRATEGY_CURSOR)
		rc = cursor_put(c->j.txn, c->j.pc->number, picked);
	if (rc == STORE_OK && (needs & STRATEGY_SMOOTH))
		rc = write_smooth(c, picked);
	return rc;
}

static void
choose_insisted(struct choosing *c, struct choice *choice_out)
{
	enum score_out out = c->j.pc->judged[c->j.wish->insist];

	*choice_out = (struct choice){c->j.wish->insist, SLOT_REQUEST};
	c->j.reason.result = out == SCORE_IN || out == SCORE_COOLING || out == SCORE_TRIED
	                         ? PICK_TAKEN
	                         : reason_of(&c->j);
}

/* PICK_TAKEN and the choice, or why not. */
static enum store_rc
choose(struct choosing *c, struct choice *choice_out)
{
	enum store_rc rc = each_account(c, visit_judge);

	if (rc != STORE_OK)
		return rc;
	if (c->j.wish->insist != PICK_ANY) {
		choose_insisted(c, choice_out);
		return STORE_OK;
	}
	score_close(&c->board, false, false);
	rc = each_account(c, visit_offer);
	if (rc != STORE_OK)
		return rc;
	choice_out->kind = SLOT_REQUEST;
	if (score_draw(&c->board, &choice_out->account)) {
		c->j.reason.result = PICK_TAKEN;
		return STORE_OK;
	}
	c->j.reason.result = reason_of(&c->j);
	if (c->j.reason.result != PICK_FULL && c->j.has_probe && !judge_probe_runs(&c->j)) {
		*choice_out = (struct choice){c->j.probe, SLOT_PROBE};
		c->j.reason.result = PICK_TAKEN;
	}
	return STORE_OK;
}

static enum store_rc
take(struct choosing *c, const struct choice *choice, struct pick_lease *lease)
{
	struct judge *j = &c->j;
	struct account_ref ref = {j->pc->number, j->pc->numbers[choice->account]};
	struct slot_row slot_row = {
	    .kind = (uint8_t)choice->kind,
	    .channel = ref.channel,
	    .account = ref.number,
	    .started_ms = j->now.v,
	    .taken_txn = txn_number(j->txn),
	    .model_hash = key_hash(0, j->wish->model, strlen(j->wish->model)),
	};
	enum store_rc rc = slot_take(j->txn, j->slot, &slot_row);

	if (rc == STORE_OK && choice->kind == SLOT_REQUEST && j->wish->insist == PICK_ANY)
		rc = write_strategy(c, ref.number);
	*lease = (struct pick_lease){
	    .taken = true,
	    .channel = j->wish->channel,
	    .account = choice->account,
	    .ref = ref,
	    .txn = slot_row.taken_txn,
	    .kind = choice->kind,
	    .at = j->now,
	};
	return rc;
}

static enum store_rc
choosing_open(struct choosing *c, struct txn *txn, const struct slot *slot,
    const struct pick_wish *wish, struct wall_ms now)
{
	enum store_rc rc = judge_open(&c->j, txn, slot, wish, now);

	c->strategy = (enum conf_strategy)c->j.channel->policy.pool.strategy;
	return rc == STORE_OK ? read_strategy(c) : rc;
}

struct job {
	const struct slot *slot;
	const struct pick_wish *wish;
	struct wall_ms now;
	struct pick_lease lease;
	struct pick_reason reason;
};

static enum store_rc
pick_in(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct choice choice;
	struct choosing c;
	struct score_rule rule;
	enum store_rc rc = choosing_open(&c, txn, job->slot, job->wish, job->now);

	rule = rule_of(&c.j.channel->policy);
	score_begin(&c.board, &rule, job->now, job->wish->random);
	job->lease = (struct pick_lease){.taken = false};
	if (rc == STORE_OK)
		rc = choose(&c, &choice);
	if (rc == STORE_OK)
		rc = judge_free_dead(&c.j);
	if (rc == STORE_OK && c.j.reason.result == PICK_TAKEN)
		rc = take(&c, &choice, &job->lease);
	judge_close(&c.j);
	job->reason = c.j.reason;
	return rc;
}

enum err
pick_take(struct env *env, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now, struct pick_lease *lease_out, struct pick_reason *reason_out,
    struct why *why)
{
	struct job job = {.slot = slot, .wish = wish, .now = now};
	enum store_rc rc = env_update(env, pick_in, &job);

	if (rc != STORE_OK) {
		err_why(why, "store: %s", env_error(env));
		return rc == STORE_BUSY ? ERR_TIMEOUT : ERR_STORE;
	}
	*lease_out = job.lease;
	*reason_out = job.reason;
	return ERR_OK;
}

enum store_rc
pick_look(struct txn *txn, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now, struct pick_reason *reason_out)
{
	struct choosing c;
	struct score_rule rule;
	enum store_rc rc = choosing_open(&c, txn, slot, wish, now);

	rule = rule_of(&c.j.channel->policy);
	score_begin(&c.board, &rule, now, 0);
	if (rc == STORE_OK)
		rc = each_account(&c, visit_judge);
	score_close(&c.board, false, false);
	if (rc == STORE_OK)
		rc = each_account(&c, visit_offer);
	judge_close(&c.j);
	c.j.reason.result = c.board.n > 0 ? PICK_TAKEN : reason_of(&c.j);
	*reason_out = c.j.reason;
	return rc;
}
