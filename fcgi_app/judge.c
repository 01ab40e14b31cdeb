#include "judge.h"

#include "store/cooldown.h"
#include "store/tally.h"
#include "verdict.h"

#include <string.h>

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
read_leases(struct judge *j)
{
	enum store_rc rc = slot_walk(j->txn, j->slots);

	if (rc != STORE_OK)
		return rc;
	for (unsigned i = 0; i < j->slots->n; i++) {
		const struct slot_row *row = &j->slots->seen[i].row;

		if (row->channel == j->pc->number && row->account < j->pc->top)
			j->pc->in_flight[row->account]++;
	}
	return STORE_OK;
}

void
judge_close(struct judge *j)
{
	for (unsigned i = 0; i < j->slots->n; i++) {
		const struct slot_row *row = &j->slots->seen[i].row;

		if (row->channel == j->pc->number && row->account < j->pc->top)
			j->pc->in_flight[row->account] = 0;
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
live_leases(struct judge *j, uint32_t number)
{
	unsigned live = 0;
	bool dead = false;

	for (unsigned i = 0; i < j->slots->n; i++) {
		const struct slot_row *row = &j->slots->seen[i].row;

		if (row->channel != j->pc->number || row->account != number)
			continue;
		if (slot_lives(j->slot, j->slots->seen[i].number))
			live++;
		else
			dead = true;
	}
	if (dead && j->ndead < NELEM(j->dead))
		j->dead[j->ndead++] = number;
	return live;
}

static bool
is_full(struct judge *j, const struct pool_seat *seat, uint32_t number)
{
	if (seat->limit == 0 || j->pc->in_flight[number] < seat->limit)
		return false;
	return live_leases(j, number) >= seat->limit;
}

/* How this model rests on the account; *until_ms and *guessed as the row says. */
static enum score_out
judge_model(struct judge *j, uint32_t number, int64_t *until_ms, bool *guessed)
{
	struct cooldown_pair pair;
	struct account_ref ref = {j->pc->number, number};

	if (cooldown_get(j->txn, ref, j->wish->model, &pair) != STORE_OK)
		return SCORE_IN;
	*until_ms = cooldown_clamp_ms(pair.row.until_ms, j->most_rest_ms, j->now);
	if (*until_ms <= j->now.v)
		return SCORE_IN;
	*guessed = pair.row.guessed;
	return pair.row.kind == VERDICT_MODEL_MISSING ? SCORE_MODEL_MISSING : SCORE_MODEL_COOLING;
}

/* What the configuration alone says. */
static enum score_out
judge_settings(const struct judge *j, const struct pool_seat *seat, const struct account_row *row)
{
	const struct conf_account *account = &j->channel->accounts[seat->index];

	if (seat->off || (row->flags & ACCOUNT_DISABLED))
		return SCORE_DISABLED;
	if (j->wish->realm.n > 0 && !text_equal(account->realm, j->wish->realm))
		return SCORE_REALM;
	if (seat->picky && j->model.n > 0 && !conf_serves(&account->models, j->model))
		return SCORE_MODEL;
	return seat->weightless && !j->pc->unweighted ? SCORE_NO_WEIGHT : SCORE_IN;
}

/* The account that comes back first, of those that a probe may try before their time. */
static void
note_rest(struct judge *j, size_t at, int64_t until_ms, enum judge_probing probing)
{
	int all_cooling = j->channel->policy.pool.all_cooling;

	if (j->reason.earliest.v == 0 || until_ms < j->reason.earliest.v)
		j->reason.earliest.v = until_ms;
	if (probing == JUDGE_NEVER || all_cooling == CONF_COOLING_OFF || was_tried(j->wish, at) ||
	    (probing == JUDGE_STATED && all_cooling == CONF_COOLING_GUESSED))
		return;
	if (j->has_probe && until_ms >= j->probe_until_ms)
		return;
	j->has_probe = true;
	j->probe = at;
	j->probe_until_ms = until_ms;
}

/* When everything that holds this account back is over, and whether a probe may come before. */
struct resting {
	enum score_out out;
	int64_t until_ms;
	enum judge_probing probing;
};

static struct resting
rest_of(struct judge *j, uint32_t number, const struct account_row *row)
{
	int64_t cool = cooldown_clamp_ms(row->cool_until_ms, j->most_rest_ms, j->now),
	        model_until = 0;
	bool guessed = cool <= j->now.v || (row->flags & ACCOUNT_GUESSED), model_guessed = true;
	struct resting rest = {SCORE_IN, cool, JUDGE_STATED};

	if (row->flags & ACCOUNT_MODELS)
		rest.out = judge_model(j, number, &model_until, &model_guessed);
	if (rest.out == SCORE_MODEL_MISSING)
		return rest;
	if (cool > j->now.v)
		rest.out = SCORE_COOLING;
	else if (row->breaker_until_ms > j->now.v)
		rest.out = SCORE_BREAKER;
	if (row->breaker_until_ms > rest.until_ms)
		rest.until_ms = row->breaker_until_ms;
	if (model_until > rest.until_ms)
		rest.until_ms = model_until;
	if (cool > j->now.v && row->cool_kind == VERDICT_HARD_CREDIT)
		rest.probing = JUDGE_NEVER;
	else if (guessed && model_guessed)
		rest.probing = JUDGE_GUESSED;
	return rest;
}

static enum score_out
judge_rest(
    struct judge *j, const struct pool_seat *seat, uint32_t number, const struct account_row *row)
{
	struct resting rest;

	if (row->cool_until_ms <= j->now.v && row->breaker_until_ms <= j->now.v &&
	    (row->flags & ACCOUNT_MODELS) == 0)
		return SCORE_IN; /* the common case of a long scan */
	rest = rest_of(j, number, row);
	if (rest.out != SCORE_IN && rest.out != SCORE_MODEL_MISSING)
		note_rest(j, seat->index, rest.until_ms, rest.probing);
	return rest.out;
}

enum score_out
judge_account(struct judge *j, const struct pool_seat *seat, const struct account_row *row)
{
	uint32_t number = (uint32_t)(seat - j->pc->seats);
	enum score_out out = judge_settings(j, seat, row);

	if (out == SCORE_IN)
		out = judge_rest(j, seat, number, row);
	if (out == SCORE_IN && j->wish->ntried > 0 && was_tried(j->wish, seat->index))
		out = SCORE_TRIED;
	if (out == SCORE_IN && is_full(j, seat, number))
		out = SCORE_FULL;
	return out;
}

/* A lease that is not settled yet was not written into the account's row: the newest of them is the last pick. */
static void
running_pick(const struct judge *j, uint32_t number, struct score_candidate *c)
{
	for (unsigned i = 0; i < j->slots->n; i++) {
		const struct slot_row *row = &j->slots->seen[i].row;

		if (row->channel != j->pc->number || row->account != number ||
		    (c->picked.v != 0 && !health_after(row->taken_txn, c->picked_txn)))
			continue;
		c->picked.v = row->started_ms;
		c->picked_txn = row->taken_txn;
	}
}

void
judge_candidate(struct judge *j, const struct pool_seat *seat, const struct account_row *row,
    struct score_candidate *c)
{
	const struct conf_account *account = &j->channel->accounts[seat->index];
	uint32_t number = (uint32_t)(seat - j->pc->seats);
	bool stored = row->credits_micros != ACCOUNT_NO_CREDITS;

	c->account = seat->index;
	c->id = account->id;
	c->priority = account->priority;
	c->weight = account->weight;
	c->factor = 1;
	c->rank = 0;
	c->cost_tier = 0;
	c->bound = false;
	c->has_credits = stored || account->has_credits;
	c->credits_micros = stored ? row->credits_micros : account->credits_micros;
	c->picked.v = row->flags & ACCOUNT_PICKED ? row->picked_ms : 0;
	c->picked_txn = row->picked_txn;
	if (j->pc->in_flight[number] > 0)
		running_pick(j, number, c);
	c->success = row->success;
	c->errors = row->errors;
}

/* At most one probe of a resting account at a time on a channel, over all processes. */
bool
judge_probe_runs(const struct judge *j)
{
	for (unsigned i = 0; i < j->slots->n; i++) {
		const struct slot_row *row = &j->slots->seen[i].row;

		if (row->channel == j->pc->number && row->kind == SLOT_PROBE &&
		    slot_lives(j->slot, j->slots->seen[i].number))
			return true;
	}
	return false;
}

enum store_rc
judge_free_dead(struct judge *j)
{
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < j->ndead && rc == STORE_OK; i++) {
		struct account_ref ref = {j->pc->number, j->dead[i]};
		unsigned freed = 0;

		rc = slot_reap(j->txn, j->slot, ref, &freed);
		j->reason.freed += freed;
	}
	if (rc == STORE_OK && j->reason.freed > 0)
		rc = tally_add(j->txn, TALLY_DEAD_LEASES, j->reason.freed);
	return rc;
}

void
judge_stat(struct judge *j, uint32_t number, struct strategy_facts *facts)
{
	struct account_stat stat;

	if (account_stat_get(j->txn, (struct account_ref){j->pc->number, number}, &stat) !=
	    STORE_OK)
		return;
	if (stat.today == pool_day(j->channel, j->now)) {
		facts->tokens_today = (double)stat.today_tokens;
		facts->requests_today = stat.today_requests;
	}
	if (stat.latency_n > 0)
		facts->latency_ms = (double)stat.latency_total_ms / (double)stat.latency_n;
}

enum store_rc
judge_open(struct judge *j, struct txn *txn, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now)
{
	j->txn = txn;
	j->slot = slot;
	j->wish = wish;
	j->channel = &wish->pool->conf->channels[wish->channel];
	j->pc = &wish->pool->channels[wish->channel];
	j->now = now;
	j->model = text_span(wish->model);
	j->most_rest_ms = most_rest_ms(&j->channel->policy);
	j->reason = (struct pick_reason){.result = PICK_NOBODY};
	j->has_probe = false;
	j->ndead = 0;
	j->slots = wish->pool->slots;
	j->slots->n = 0;
	return read_leases(j);
}
