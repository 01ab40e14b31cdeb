#include "walk_elect.h"

#define OUTPUT_TOKENS 500 /* of an answer, where nothing is known of the model's */

static const struct conf_target *
target_of(const struct walk_elect *e, size_t i)
{
	return e->walk->plan.targets[i].target;
}

/* ---- of its row ---- */

static void
note_state(struct walk_elect *e, size_t i, const struct target_row *row)
{
	struct target_policy policy = pool_target_policy(e->walk->plan.conf);
	enum target_state state = target_state(row, &policy, e->now);
	struct elect_candidate *c = &e->walk->candidates[i];
	struct target_sums sums;

	c->trial = state == TARGET_TRIAL;
	if (state == TARGET_RESTS)
		c->out = ELECT_RESTS;
	e->walk->facts[i].rest_until_ms = state == TARGET_RESTS ? row->rest_until_ms : 0;
	target_sums(row, &policy, e->now, &sums);
	if (c->trial) /* what it did before its rest says nothing */
		sums = (struct target_sums){.calls = 0};
	c->calls = sums.calls;
	c->success_ppm = target_success_ppm(&sums);
	c->first_ms = sums.first_n > 0 ? (int64_t)(sums.first_sum_ms / sums.first_n) : 0;
}

/* Tokens: what the model usually writes, in the bounds that are known. */
static int64_t
output_of(
    const struct walk_elect *e, const struct conf_target *target, const struct target_row *row)
{
	int64_t tokens = row->output_tokens > 0 ? (int64_t)row->output_tokens : OUTPUT_TOKENS;

	if (e->size.limit > 0 && e->size.limit < tokens)
		tokens = e->size.limit;
	if (target != NULL && target->max_output > 0 && target->max_output < tokens)
		tokens = target->max_output;
	return tokens;
}

/* Prices are per 1,000 tokens. */
static int64_t
cost_of(const struct conf_cost *cost, int64_t prompt, int64_t output)
{
	int64_t in, out, sum;

	if (__builtin_mul_overflow(prompt, cost->input_micros, &in) ||
	    __builtin_mul_overflow(output, cost->output_micros, &out) ||
	    __builtin_add_overflow(in, out, &sum))
		return INT64_MAX;
	return sum;
}

static void
note_size(struct walk_elect *e, size_t i, const struct target_row *row)
{
	const struct conf_target *target = target_of(e, i);
	struct elect_candidate *c = &e->walk->candidates[i];
	struct walk_fact *fact = &e->walk->facts[i];
	int64_t prompt = e->size.prompts == NULL ? -1 : e->size.prompts[i];

	fact->prompt = prompt < 0 ? -1 : target_correct(row, prompt);
	fact->output = output_of(e, target, row);
	c->priced = target != NULL && target->cost.given;
	if (target == NULL)
		return;
	prompt = fact->prompt < 0 ? e->size.guess : fact->prompt;
	c->cost = cost_of(&target->cost, prompt, fact->output);
	if (fact->prompt >= 0 && target->context_window > 0 &&
	    fact->prompt + e->size.limit > target->context_window)
		c->out = ELECT_SMALL;
}

static enum store_rc
read_target(struct txn *txn, struct walk_elect *e, size_t i)
{
	const struct route *route = &e->walk->plan.targets[i];
	struct elect_candidate *c = &e->walk->candidates[i];
	enum elect_out before = c->out;
	struct target_row row;
	enum store_rc rc =
	    target_get(txn, pool_target(e->walk->wish.pool, route->channel, route->model), &row);

	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	c->out = ELECT_IN;
	note_state(e, i, &row);
	note_size(e, i, &row);
	if (elect_is_final(before))
		c->out = before;
	return STORE_OK;
}

/* ---- of its accounts ---- */

static enum elect_out
out_of(enum pick_result result)
{
	switch (result) {
	case PICK_TAKEN: return ELECT_IN;
	case PICK_OPEN: return ELECT_OPEN;
	case PICK_WAITING:
	case PICK_FULL: return ELECT_FULL;
	case PICK_COOLING:
	case PICK_MISSING:
	case PICK_TRIED:
	case PICK_NOBODY: break;
	}
	return ELECT_EXHAUSTED;
}

static enum store_rc
look_for_accounts(struct txn *txn, struct walk_elect *e, size_t i)
{
	struct walk *w = e->walk;
	struct pick_wish wish;
	struct pick_reason reason;
	enum store_rc rc;

	walk_wish(w, i, e->arena, &wish);
	rc = pick_chain(txn, wish.pool, wish.channel, e->now, w->answers);
	if (rc != STORE_OK)
		return rc;
	wish.fallback = plan_has_fallback(w->plan.conf, wish.channel, w->plan.wires, w->answers);
	rc = pick_look(txn, e->slot, &wish, e->now, &reason);
	if (rc == STORE_OK)
		w->candidates[i].out = out_of(reason.result);
	return rc;
}

/* Until the one that would be chosen can be had; all that are left are spare ones then. */
static enum store_rc
choose(struct txn *txn, struct walk_elect *e)
{
	struct walk *w = e->walk;
	bool *looked = arena_alloc(e->arena, w->plan.ntargets * sizeof *looked);
	bool alone = w->plan.ntargets == 1 && !w->candidates[0].trial && !e->every;
	enum store_rc rc = STORE_OK;

	for (size_t i = 0; i < w->plan.ntargets && e->every && rc == STORE_OK; i++)
		if (w->candidates[i].out == ELECT_IN) {
			looked[i] = true;
			rc = look_for_accounts(txn, e, i);
		}
	while (rc == STORE_OK) {
		e->target = elect_choose(w->candidates, w->plan.ntargets, &e->rule);
		if (e->target == ELECT_NOBODY || looked[e->target] || alone)
			break;
		looked[e->target] = true;
		rc = look_for_accounts(txn, e, e->target);
	}
	return rc;
}

enum store_rc
walk_elect(struct txn *txn, struct walk_elect *e)
{
	struct walk *w = e->walk;
	enum store_rc rc = STORE_OK;

	e->target = ELECT_NOBODY;
	for (size_t i = 0; i < w->plan.ntargets && rc == STORE_OK; i++)
		rc = read_target(txn, e, i);
	if (rc == STORE_OK)
		rc = choose(txn, e);
	for (size_t i = 0; i < w->plan.ntargets && rc == STORE_OK; i++)
		if (w->candidates[i].out == ELECT_RESTS)
			walk_note_rest(w, e->walk->facts[i].rest_until_ms);
	return rc;
}

enum store_rc
walk_elect_trial(struct txn *txn, const struct walk_elect *e, bool *taken_out)
{
	const struct walk *w = e->walk;
	const struct route *route = &w->plan.targets[e->target];
	struct target_policy policy = pool_target_policy(w->plan.conf);

	return target_try(txn, pool_target(w->wish.pool, route->channel, route->model), &policy,
	    e->now, taken_out);
}

int64_t
walk_largest_window(const struct walk *w)
{
	int64_t largest = 0;

	for (size_t i = 0; i < w->plan.ntargets; i++) {
		const struct conf_target *target = w->plan.targets[i].target;

		switch (w->candidates[i].out) {
		case ELECT_TASK:
		case ELECT_WIRE: break;
		case ELECT_SMALL:
			if (target->context_window > largest)
				largest = target->context_window;
			break;
		case ELECT_IN:
		case ELECT_FULL:
		case ELECT_EXHAUSTED:
		case ELECT_OPEN:
		case ELECT_RESTS:
		case ELECT_TRIED:
		case ELECT__MAX: return 0;
		}
	}
	return largest;
}
