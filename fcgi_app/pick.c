#include "pick.h"

#include "store/cooldown.h"
#include "store/tally.h"
#include "verdict.h"

#include <string.h>

#define DEAD_MAX 64 /* the rest is freed by the next picks */

/* One pick's view of its channel. */
struct view {
	struct txn *txn;
	const struct slot *slot;
	const struct pick_wish *wish;
	const struct conf_channel *channel;
	struct pool_channel *pc;
	struct wall_ms now;
	struct span model;
	int64_t most_rest_ms;
	struct slot_list *slots;
	struct pick_reason reason;
	/* the best account for a probe while all are cooling */
	bool has_probe;
	size_t probe;
	int64_t probe_until_ms;
	uint32_t dead[DEAD_MAX]; /* account numbers with leases of dead workers */
	unsigned ndead;
};

/* Longest rest that any setting allows: a row beyond it was written by a wrong clock. */
static int64_t
most_rest_ms(const struct conf_policy *policy)
{
	int64_t most = 25 * 3600 * 1000; /* hard_credit_until on the longest day */

	if (policy->cooldown.stated_max_ms > most)
		most = policy->cooldown.stated_max_ms;
	return policy->cooldown.soft_rate_max_ms > most ? policy->cooldown.soft_rate_max_ms : most;
}

static enum store_rc
view_open(struct view *v)
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
view_close(struct view *v)
{
	for (unsigned i = 0; i < v->slots->n; i++) {
		const struct slot_row *row = &v->slots->seen[i].row;

		if (row->channel == v->pc->number && row->account < v->pc->top)
			v->pc->in_flight[row->account] = 0;
	}
}

static bool
was_tried(const struct pick_wish *wish, size_t account)
{
	for (unsigned i = 0; i < wish->ntried; i++)
		if (wish->tried[i].channel == wish->channel && wish->tried[i].account == account)
			return true;
	return false;
}

/* Leases of an account whose worker lives; those of the dead are remembered for freeing. */
static unsigned
live_leases(struct view *v, uint32_t number)
{
	unsigned live = 0;
	bool dead = false;

	for (unsigned i = 0; i < v->slots->n; i++) {
		const struct slot_row *row = &v->slots->seen[i].row;

		if (row->channel != v->pc->number || row->account != number)
			continue;
		if (slot_lives(v->slot, v->slots->seen[i].number))
			live++;
		else
			dead = true;
	}
	if (dead && v->ndead < NELEM(v->dead))
		v->dead[v->ndead++] = number;
	return live;
}

static bool
is_full(struct view *v, const struct pool_seat *seat, uint32_t number)
{
	if (seat->limit == 0 || v->pc->in_flight[number] < seat->limit)
		return false;
	return live_leases(v, number) >= seat->limit;
}

/* How this model rests on the account; *until_ms and *guessed as the row says. */
static enum score_out
judge_model(struct view *v, uint32_t number, int64_t *until_ms, bool *guessed)
{
	struct cooldown_pair pair;
	struct account_ref ref = {v->pc->number, number};

	if (cooldown_get(v->txn, ref, v->wish->model, &pair) != STORE_OK)
		return SCORE_IN;
	*until_ms = cooldown_clamp_ms(pair.row.until_ms, v->most_rest_ms, v->now);
	if (*until_ms <= v->now.v)
		return SCORE_IN;
	*guessed = pair.row.guessed;
	return pair.row.kind == VERDICT_MODEL_MISSING ? SCORE_MODEL_MISSING : SCORE_MODEL_COOLING;
}

/* What the configuration alone says. */
static enum score_out
judge_settings(const struct view *v, const struct pool_seat *seat, const struct account_row *row)
{
	const struct conf_account *account = &v->channel->accounts[seat->index];

	if (seat->off || (row->flags & ACCOUNT_DISABLED))
		return SCORE_DISABLED;
	if (v->wish->realm.n > 0 && !text_equal(account->realm, v->wish->realm))
		return SCORE_REALM;
	if (seat->picky && v->model.n > 0 && !conf_serves(&account->models, v->model))
		return SCORE_MODEL;
	return seat->weightless && !v->pc->unweighted ? SCORE_NO_WEIGHT : SCORE_IN;
}

/* May a probe try a resting account before its time? */
enum probing {
	PROBE_GUESSED, /* nobody said how long it would rest */
	PROBE_STATED,  /* only with all_cooling: any */
	PROBE_NEVER,   /* out of credit */
};

/* The account that comes back first, of those that a probe may try before their time. */
static void
note_rest(struct view *v, size_t at, int64_t until_ms, enum probing probing)
{
	int all_cooling = v->channel->policy.pool.all_cooling;

	if (v->reason.earliest.v == 0 || until_ms < v->reason.earliest.v)
		v->reason.earliest.v = until_ms;
	if (probing == PROBE_NEVER || all_cooling == CONF_COOLING_OFF || was_tried(v->wish, at) ||
	    (probing == PROBE_STATED && all_cooling == CONF_COOLING_GUESSED))
		return;
	if (v->has_probe && until_ms >= v->probe_until_ms)
		return;
	v->has_probe = true;
	v->probe = at;
	v->probe_until_ms = until_ms;
}

static enum score_out
judge_rest(
    struct view *v, const struct pool_seat *seat, uint32_t number, const struct account_row *row)
{
	int64_t model_until = 0, cool, until;
	bool guessed, model_guessed = true;
	enum score_out out = SCORE_IN;

	if (row->cool_until_ms <= v->now.v && row->breaker_until_ms <= v->now.v &&
	    (row->flags & ACCOUNT_MODELS) == 0)
		return SCORE_IN; /* the common case of a long scan */
	cool = cooldown_clamp_ms(row->cool_until_ms, v->most_rest_ms, v->now);
	until = cool > row->breaker_until_ms ? cool : row->breaker_until_ms;
	guessed = cool <= v->now.v || (row->flags & ACCOUNT_GUESSED);
	if (row->flags & ACCOUNT_MODELS)
		out = judge_model(v, number, &model_until, &model_guessed);
	if (out == SCORE_MODEL_MISSING)
		return out;
	if (cool > v->now.v)
		out = SCORE_COOLING;
	else if (row->breaker_until_ms > v->now.v)
		out = SCORE_BREAKER;
	if (model_until > until)
		until = model_until;
	if (out != SCORE_IN)
		note_rest(v, seat->index, until,
		    cool > v->now.v && row->cool_kind == VERDICT_HARD_CREDIT ? PROBE_NEVER
		    : guessed && model_guessed                               ? PROBE_GUESSED
		                                                             : PROBE_STATED);
	return out;
}

static enum score_out
judge(struct view *v, const struct pool_seat *seat, uint32_t number, const struct account_row *row)
{
	enum score_out out = judge_settings(v, seat, row);

	if (out == SCORE_IN)
		out = judge_rest(v, seat, number, row);
	if (out == SCORE_IN && v->wish->ntried > 0 && was_tried(v->wish, seat->index))
		out = SCORE_TRIED;
	if (out == SCORE_IN && is_full(v, seat, number))
		out = SCORE_FULL;
	return out;
}

/* A lease that is not settled yet was not written into the account's row: the newest of them is the last pick. */
static void
running_pick(const struct view *v, uint32_t number, struct score_candidate *c)
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
    struct score_candidate *c, const struct view *v, size_t at, const struct account_row *row)
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

typedef void visit_fn(struct view *v, struct score_board *board, const struct pool_seat *seat,
    const struct account_row *row);

static void
visit_judge(struct view *v, struct score_board *board, const struct pool_seat *seat,
    const struct account_row *row)
{
	enum score_out out = judge(v, seat, (uint32_t)(seat - v->pc->seats), row);
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
visit_offer(struct view *v, struct score_board *board, const struct pool_seat *seat,
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
each_account(struct view *v, struct score_board *board, visit_fn *visit)
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
probe_under_way(const struct view *v)
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
reason_of(const struct view *v)
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

struct choice {
	size_t account;
	enum slot_kind kind;
};

/* PICK_TAKEN and the choice, or why not. */
static enum store_rc
choose(struct view *v, struct choice *choice_out)
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
		enum score_out out = v->pc->judged[v->wish->insist];
		bool may = out == SCORE_IN || out == SCORE_COOLING || out == SCORE_TRIED;

		v->reason.result = may ? PICK_TAKEN : reason_of(v);
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
free_dead(struct view *v)
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
take(struct view *v, const struct choice *choice, struct pick_lease *lease)
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
view_init(struct view *v, struct txn *txn, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now)
{
	v->txn = txn;
	v->slot = slot;
	v->wish = wish;
	v->channel = &wish->pool->conf->channels[wish->channel];
	v->pc = &wish->pool->channels[wish->channel];
	v->now = now;
	v->model = text_span(wish->model);
	v->most_rest_ms = most_rest_ms(&v->channel->policy);
	v->reason = (struct pick_reason){.result = PICK_NOBODY};
	v->has_probe = false;
	v->ndead = 0;
	v->slots = wish->pool->slots;
	v->slots->n = 0;
}

static enum store_rc
pick_in(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct choice choice;
	struct view v;
	enum store_rc rc;

	view_init(&v, txn, job->slot, job->wish, job->now);
	job->lease = (struct pick_lease){.taken = false};
	rc = view_open(&v);
	if (rc == STORE_OK)
		rc = choose(&v, &choice);
	if (rc == STORE_OK)
		rc = free_dead(&v);
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
	struct view v;
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
