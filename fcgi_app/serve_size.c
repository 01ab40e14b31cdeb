#include "serve_size.h"

#include "tokenizer.h"

static const struct form *
form_of(struct serve_job *j)
{
	struct span whole = recall_whole(j);
	struct why why;

	if (context_whole(j) != NULL)
		return context_whole(j);
	if (whole.n > 0)
		return flow_read(j->s->arena, j->rq.endpoint->wire, whole, &why);
	return convert_read(&j->convert, &why) == ERR_OK ? &j->convert.form : NULL;
}

static bool
may_be_asked(const struct walk *w, size_t i)
{
	return !elect_is_final(w->candidates[i].out);
}

/* A token has at least one byte. */
static bool
may_be_too_large(const struct walk *w, int64_t most)
{
	for (size_t i = 0; i < w->plan.ntargets; i++) {
		const struct conf_target *target = w->plan.targets[i].target;

		if (may_be_asked(w, i) && target != NULL && target->context_window > 0 &&
		    most > target->context_window)
			return true;
	}
	return false;
}

static bool
goes_by_cost(const struct walk *w)
{
	struct elect_rule rule = walk_rule(w, 0);

	return rule.strategy == CONF_ROUTE_COST_FIRST ||
	       (rule.strategy == CONF_ROUTE_MIXED && rule.fallback == CONF_ROUTE_COST_FIRST);
}

static bool
prices_differ(const struct walk *w)
{
	const struct conf_cost *first = NULL;

	for (size_t i = 0; i < w->plan.ntargets; i++) {
		const struct conf_target *target = w->plan.targets[i].target;

		if (!may_be_asked(w, i) || target == NULL || !target->cost.given)
			continue;
		if (first != NULL && (first->input_micros != target->cost.input_micros ||
		                         first->output_micros != target->cost.output_micros))
			return true;
		first = &target->cost;
	}
	return false;
}

static void
count(struct serve_job *j)
{
	const struct walk *w = &j->walk;
	int64_t *prompts = arena_alloc(j->s->arena, (w->plan.ntargets + 1) * sizeof *prompts);

	j->weigh.tokens = tokenizer_of(j->s);
	j->weigh.form = form_of(j);
	j->weigh.least = context_trims(j);
	for (size_t i = 0; i < w->plan.ntargets; i++)
		prompts[i] = weigh_prompt(&j->weigh, w->plan.targets[i].model);
	j->prompts = prompts;
}

int64_t
serve_size_limit(const struct serve_job *j)
{
	int64_t limit = dialect_answer_limit(&j->rq.read);

	return limit > 0 ? limit : 0;
}

struct walk_size
serve_size(struct serve_job *j)
{
	const struct walk *w = &j->walk;
	struct span whole = recall_whole(j);
	size_t bytes = whole.n > 0 ? whole.n : j->rq.read.body.n + context_bytes(j);
	struct walk_size size = {
	    .limit = serve_size_limit(j), .guess = dialect_guess_tokens(bytes)};

	if (j->prompts == NULL && j->rq.endpoint->converts &&
	    (j->explain || may_be_too_large(w, (int64_t)bytes + size.limit) ||
	        (goes_by_cost(w) && prices_differ(w))))
		count(j);
	size.prompts = j->prompts;
	return size;
}
