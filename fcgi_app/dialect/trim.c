#include "dialect/trim.h"

#include "dialect/trim_cut.h"

#include <inttypes.h>

#define NOWHERE SIZE_MAX

struct plan {
	const struct form *form;
	const struct trim_policy *policy;
	size_t n;        /* turns */
	size_t lead;     /* so many stand before all rounds */
	int64_t *tokens; /* of each turn */
	bool *begins;    /* a round */
	bool *gone;
	size_t newest; /* where the newest round begins */
	size_t user;   /* the newest user turn, or NOWHERE */
	size_t dropped;
	int64_t total;
};

static size_t
newest_user(const struct form *form)
{
	for (size_t i = form->nturns; i > 0; i--)
		if (form->turns[i - 1].role == FORM_USER)
			return i - 1;
	return NOWHERE;
}

int64_t
trim_least(const struct form *form, const struct tokens_model *model)
{
	size_t lead = form_leading(form), user = newest_user(form);
	int64_t n = tokens_frame(model, form);

	for (size_t i = 0; i < lead; i++)
		n += tokens_turn(model, &form->turns[i]);
	if (user != NOWHERE)
		n += tokens_turn(model, &form->turns[user]);
	return n;
}

void
trim_rounds(const struct form *form, bool *begins)
{
	bool open = false;

	for (size_t i = 0; i < form->nturns; i++) {
		begins[i] = form->turns[i].role == FORM_USER && !open;
		if (form->turns[i].role == FORM_ASSISTANT)
			open = false;
		else if (form->turns[i].role == FORM_TOOL)
			open = true;
	}
}

static void
find_rounds(struct plan *plan)
{
	trim_rounds(plan->form, plan->begins);
	plan->newest = plan->lead;
	for (size_t i = plan->lead; i < plan->n; i++)
		if (plan->begins[i])
			plan->newest = i;
}

static bool
is_fitting(const struct plan *plan)
{
	return plan->policy->budget == 0 || plan->total <= plan->policy->budget;
}

static void
drop(struct plan *plan, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (plan->gone[i])
			continue;
		plan->gone[i] = true;
		plan->total -= plan->tokens[i];
		plan->dropped++;
	}
}

static bool
has_calls(const struct form_turn *turn)
{
	for (size_t p = 0; turn->role == FORM_ASSISTANT && p < turn->nparts; p++)
		if (turn->parts[p].kind == FORM_CALL)
			return true;
	return false;
}

static bool
is_exchange(const struct plan *plan, size_t at)
{
	const struct form_turn *turn = &plan->form->turns[at];

	return at + 1 < plan->n && turn[1].role == FORM_TOOL && has_calls(turn);
}

/* Calls, results, and what was said before the next answer: it ends where that begins. */
static size_t
exchange_end(const struct plan *plan, size_t at)
{
	for (at += 2; at < plan->n && plan->form->turns[at].role != FORM_ASSISTANT; at++)
		;
	return at;
}

/* Nobody has answered it, or the newest user turn is a word to it. */
static bool
is_running(const struct plan *plan, size_t at, size_t end)
{
	return end == plan->n || (plan->user != NOWHERE && plan->user > at && plan->user < end);
}

static void
drop_exchanges(struct plan *plan, size_t from, size_t to)
{
	size_t end;

	for (size_t i = from; i < to && !is_fitting(plan); i = end) {
		end = i + 1;
		if (!is_exchange(plan, i))
			continue;
		end = exchange_end(plan, i);
		if (!is_running(plan, i, end))
			drop(plan, i, end);
	}
}

static void
drop_rounds(struct plan *plan)
{
	for (size_t i = plan->lead, end; i < plan->newest && !is_fitting(plan); i = end) {
		for (end = i + 1; !plan->begins[end]; end++)
			;
		drop(plan, i, end);
	}
}

/* All but the newest rounds, however much fits. */
static void
drop_old_rounds(struct plan *plan)
{
	int64_t rounds = plan->policy->rounds > 0 ? plan->policy->rounds : 1;

	for (size_t i = plan->n; i > plan->lead; i--)
		if (plan->begins[i - 1] && --rounds == 0) {
			drop(plan, plan->lead, i - 1);
			break;
		}
}

/* Of the newest round what came between, oldest first. */
static void
drop_between(struct plan *plan)
{
	for (size_t i = plan->newest; i + 1 < plan->n && !is_fitting(plan); i++)
		if (is_exchange(plan, i))
			i++; /* both stay: it is the running one */
		else if (!plan->begins[i] && i != plan->user && !plan->gone[i])
			drop(plan, i, i + 1);
}

static void
choose(struct plan *plan)
{
	if (plan->policy->way == TRIM_ROUNDS)
		drop_old_rounds(plan);
	drop_exchanges(plan, plan->lead, plan->newest);
	drop_rounds(plan);
	drop_exchanges(plan, plan->newest, plan->n);
	drop_between(plan);
}

static void
begin(struct plan *plan, struct arena *arena)
{
	plan->n = plan->form->nturns;
	plan->lead = form_leading(plan->form);
	plan->user = newest_user(plan->form);
	plan->tokens = arena_alloc(arena, (plan->n + 1) * sizeof *plan->tokens);
	plan->begins = arena_alloc(arena, plan->n + 1);
	plan->gone = arena_alloc(arena, plan->n + 1);
	plan->total = tokens_frame(plan->policy->model, plan->form);
	for (size_t i = 0; i < plan->n; i++) {
		plan->tokens[i] = tokens_turn(plan->policy->model, &plan->form->turns[i]);
		plan->total += plan->tokens[i];
	}
	find_rounds(plan);
}

/* The turns that stay. Afterwards plan->tokens are theirs. */
static void
divide(struct plan *plan, struct arena *arena, struct trim *trim)
{
	size_t kept = 0;

	trim->form.turns = arena_alloc(arena, (plan->n + 1) * sizeof *trim->form.turns);
	for (size_t i = 0; i < plan->n; i++) {
		if (plan->gone[i])
			continue;
		plan->tokens[kept] = plan->tokens[i];
		trim->form.turns[kept++] = plan->form->turns[i];
	}
	trim->form.nturns = kept;
	trim->messages = plan->dropped;
}

static enum err
shorten(struct plan *plan, struct arena *arena, struct trim *trim, struct why *why)
{
	bool *fixed = arena_alloc(arena, trim->form.nturns + 1);
	struct trim_cut cut = {
	    .arena = arena,
	    .model = plan->policy->model,
	    .turns = trim->form.turns,
	    .tokens = plan->tokens,
	    .fixed = fixed,
	    .nturns = trim->form.nturns,
	    .excess = plan->total - plan->policy->budget,
	};
	size_t user = newest_user(&trim->form);

	for (size_t i = 0; i < trim->form.nturns; i++)
		fixed[i] = i < plan->lead || i == user;
	if (trim_cut(&cut)) {
		trim->messages += cut.changed;
		plan->total = plan->policy->budget + cut.excess;
		return ERR_OK;
	}
	if (cut.cuttable >= plan->total - plan->policy->budget)
		cut.cuttable = plan->total - plan->policy->budget - cut.excess;
	err_why(why,
	    "the conversation does not fit: what has to stay of it is %" PRId64
	    " tokens, and there is room for %" PRId64,
	    plan->total - cut.cuttable, plan->policy->budget);
	return ERR_BAD_INPUT;
}

enum err
trim_form(struct arena *arena, const struct form *form, const struct trim_policy *policy,
    struct trim *trim_out, struct why *why)
{
	struct plan plan = {.form = form, .policy = policy};
	enum err err = ERR_OK;

	begin(&plan, arena);
	*trim_out = (struct trim){.form = *form, .before = plan.total};
	choose(&plan);
	if (plan.dropped > 0 || !is_fitting(&plan))
		divide(&plan, arena, trim_out);
	if (!is_fitting(&plan))
		err = shorten(&plan, arena, trim_out, why);
	trim_out->after = plan.total;
	return err;
}
