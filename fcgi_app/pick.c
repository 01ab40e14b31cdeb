#include "pick.h"

#include "pick_view.h"
#include "store/tally.h"

#include <string.h>

static enum store_rc
view_open(struct pick_view *v)
{
	enum store_rc rc = slot_walk(v->txn, v->slots);

	if (rc != STORE_OK)
		return rc;
	for (unsigned i = 0; i < v->slots->n; i++) {
		const struct slot_row *row = &v->slots->seen[i].row;

		if (row->channel == v->pc->number && row->account < v->pc->top)
			v->pc->in_flight[row->account]++;
	}
	return STORE_OK;
}

static void
view_close(struct pick_view *v)
{
	for (unsigned i = 0; i < v->slots->n; i++) {
		const struct slot_row *row = &v->slots->seen[i].row;

		if (row->channel == v->pc->number && row->account < v->pc->top)
			v->pc->in_flight[row->account] = 0;
	}
}

/* A lease that is not settled yet was not written into the account's row: the newest of them is the last pick. */
static void
running_pick(const struct pick_view *v, uint32_t number, struct score_candidate *c)
{
	uint32_t now = txn_number(v->txn);

	for (unsigned i = 0; i < v->slots->n; i++) {
		const struct slot_row *row = &v->slots->seen[i].row;

		if (row->channel != v->pc->number || row->account != number ||
		    (c->picked.v != 0 && !health_after(now, row->taken_txn, c->picked_txn)))
			continue;
		c->picked.v = row->started_ms;
		c->picked_txn = row->taken_txn;
	}
}

static void
candidate_fill(
    struct score_candidate *c, const struct pick_view *v, size_t at, const struct account_row *row)
{
	const struct conf_account *account = &v->channel->accounts[at];
	bool stored = row->credits_micros != ACCOUNT_NO_CREDITS;

	c->account = at;
	c->id = account->id;
	c->priority = account->priority;
	c->weight = account->weight;
	c->has_credits = stored || account->has_credits;
	c->credits_micros = stored ? row->credits_micros : account->credits_micros;
	c->picked.v = row->flags & ACCOUNT_PICKED ? row->picked_ms : 0;
	c->picked_txn = row->picked_txn;
	if (v->pc->in_flight[v->pc->numbers[at]] > 0)
		running_pick(v, v->pc->numbers[at], c);
	c->success = row->success;
	c->errors = row->errors;
}

typedef void visit_fn(struct pick_view *v, struct score_board *board, const struct pool_seat *seat,
    const struct account_row *row);

static void
visit_judge(struct pick_view *v, struct score_board *board, const struct pool_seat *seat,
    const struct account_row *row)
{
	enum score_out out = pick_judge(v, seat, (uint32_t)(seat - v->pc->seats), row);
	struct score_candidate candidate;

	v->pc->judged[seat->index] = (uint8_t)out;
	if (out != SCORE_IN) {
		v->reason.out[out]++;
		return;
	}
	candidate_fill(&candidate, v, seat->index, row);
	score_survey(board, &candidate);
}

static void
visit_offer(struct pick_view *v, struct score_board *board, const struct pool_seat *seat,
    const struct account_row *row)
{
	struct score_candidate candidate;

	if (v->pc->judged[seat->index] != SCORE_IN)
		return;
	candidate_fill(&candidate, v, seat->index, row);
	v->reason.out[score_offer(board, &candidate)]++;
}

/* Rows are read where they lie in the map: nothing may be written between. */
static inline __attribute__((always_inline)) enum store_rc
each_account(struct pick_view *v, struct score_board *board, visit_fn *visit)
{
	for (uint32_t first = 0; first < v->pc->top; first += ACCOUNT_SHARD) {
		const struct account_row *rows;
		unsigned n;
		enum store_rc rc =
		    account_shard(v->txn, v->pc->number, first / ACCOUNT_SHARD, &rows, &n);

		if (rc != STORE_OK)
			return rc;
		if (n > v->pc->top - first)
			n = v->pc->top - first;
		for (unsigned i = 0; i < n; i++)
			if (v->pc->seats[first + i].index != UINT32_MAX)
				visit(v, board, &v->pc->seats[first + i], &rows[i]);
	}
	return STORE_OK;
}

static struct score_rule
rule_of(const struct conf_policy *policy)
{
	int64_t shortlist = policy->pool.shortlist;

	return (struct score_rule){
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

/* At most one probe of a resting account at a time on a channel, over all processes. */
static bool
probe_under_way(const struct pick_view *v)
{
	for (unsigned i = 0; i < v->slots->n; i++) {
		const struct slot_row *row = &v->slots->seen[i].row;

		if (row->channel == v->pc->number && row->kind == SLOT_PROBE &&
		    slot_lives(v->slot, v->slots->seen[i].number))
			return true;
	}
	return false;
}

static enum pick_result
reason_of(const struct pick_view *v)
{
	const unsigned *out = v->reason.out;

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

/* This account or none: tried and resting as it may be, but within its limit. */
static enum pick_result
insist(struct pick_view *v, size_t account)
{
	uint32_t number = v->pc->numbers[account];
	enum score_out out = v->pc->judged[account];

	if (out != SCORE_IN && out != SCORE_COOLING && out != SCORE_TRIED)
		return reason_of(v);
	return pick_has_room(v, &v->pc->seats[number], number) ? PICK_TAKEN : PICK_FULL;
}

struct choice {
	size_t account;
	enum slot_kind kind;
};

/* PICK_TAKEN and the choice, or why not. */
static enum store_rc
choose(struct pick_view *v, struct choice *choice_out)
{
	struct score_rule rule = rule_of(&v->channel->policy);
	struct score_board board;
	enum store_rc rc;

	score_begin(&board, &rule, v->now);
	rc = each_account(v, &board, visit_judge);
	if (rc != STORE_OK)
		return rc;
	*choice_out = (struct choice){.kind = SLOT_REQUEST, .account = v->wish->insist};
	if (v->wish->insist != PICK_ANY) {
		v->reason.result = insist(v, v->wish->insist);
		return STORE_OK;
	}
	rc = each_account(v, &board, visit_offer);
	if (rc != STORE_OK)
		return rc;
	if (score_draw(&board, v->wish->random, &choice_out->account)) {
		v->reason.result = PICK_TAKEN;
		return STORE_OK;
	}
	v->reason.result = reason_of(v);
	if (v->reason.result != PICK_FULL && v->has_probe && !probe_under_way(v)) {
		*choice_out = (struct choice){v->probe, SLOT_PROBE};
		v->reason.result = PICK_TAKEN;
	}
	return STORE_OK;
}

static enum store_rc
free_dead(struct pick_view *v)
{
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < v->ndead && rc == STORE_OK; i++) {
		struct account_ref ref = {v->pc->number, v->dead[i]};
		unsigned freed = 0;

		rc = slot_reap(v->txn, v->slot, ref, &freed);
		v->reason.freed += freed;
	}
	if (rc == STORE_OK && v->reason.freed > 0)
		rc = tally_add(v->txn, TALLY_DEAD_LEASES, v->reason.freed);
	return rc;
}

static enum store_rc
take(struct pick_view *v, const struct choice *choice, struct pick_lease *lease)
{
	struct account_ref ref = {v->pc->number, v->pc->numbers[choice->account]};
	struct slot_row slot_row = {
	    .kind = (uint8_t)choice->kind,
	    .channel = ref.channel,
	    .account = ref.number,
	    .started_ms = v->now.v,
	    .taken_txn = txn_number(v->txn),
	    .model_hash = key_hash(0, v->wish->model, strlen(v->wish->model)),
	};
	enum store_rc rc = slot_take(v->txn, v->slot, &slot_row);

	*lease = (struct pick_lease){
	    .taken = true,
	    .channel = v->wish->channel,
	    .account = choice->account,
	    .ref = ref,
	    .txn = slot_row.taken_txn,
	    .kind = choice->kind,
	    .at = v->now,
	};
	return rc;
}

struct job {
	const struct slot *slot;
	const struct pick_wish *wish;
	struct wall_ms now;
	struct pick_lease lease;
	struct pick_reason reason;
};

static void
view_init(struct pick_view *v, struct txn *txn, const struct slot *slot,
    const struct pick_wish *wish, struct wall_ms now)
{
	v->txn = txn;
	v->slot = slot;
	v->wish = wish;
	v->channel = &wish->pool->conf->channels[wish->channel];
	v->pc = &wish->pool->channels[wish->channel];
	v->now = now;
	v->model = text_span(wish->model);
	pick_limits(v);
	v->reason = (struct pick_reason){.result = PICK_NOBODY};
	v->has_probe = false;
	v->ndead = v->nstrange = 0;
	v->slots = wish->pool->slots;
	v->slots->n = 0;
}

static enum store_rc
pick_in(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct choice choice;
	struct pick_view v;
	enum store_rc rc;

	view_init(&v, txn, job->slot, job->wish, job->now);
	job->lease = (struct pick_lease){.taken = false};
	rc = view_open(&v);
	if (rc == STORE_OK)
		rc = choose(&v, &choice);
	if (rc == STORE_OK)
		rc = free_dead(&v);
	if (rc == STORE_OK && v.nstrange > 0)
		rc = pick_mend(&v);
	if (rc == STORE_OK && v.reason.result == PICK_TAKEN)
		rc = take(&v, &choice, &job->lease);
	view_close(&v);
	job->reason = v.reason;
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
	struct score_rule rule = rule_of(&wish->pool->conf->channels[wish->channel].policy);
	struct score_board board;
	struct pick_view v;
	enum store_rc rc;

	view_init(&v, txn, slot, wish, now);
	score_begin(&board, &rule, now);
	rc = view_open(&v);
	if (rc == STORE_OK)
		rc = each_account(&v, &board, visit_judge);
	if (rc == STORE_OK)
		rc = each_account(&v, &board, visit_offer);
	view_close(&v);
	v.reason.result = board.n > 0 ? PICK_TAKEN : reason_of(&v);
	*reason_out = v.reason;
	return rc;
}
