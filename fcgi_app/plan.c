#include "plan.h"

#include "conf/known.h"

static void
go_to(struct plan *plan, const struct route *place)
{
	plan->channel = place->channel;
	plan->model = place->model;
	plan->entry = place->entry;
	plan->target = place->target;
}

void
plan_begin(struct plan *plan, const struct conf *conf, const struct route *first, unsigned wires)
{
	*plan = (struct plan){.conf = conf, .first = *first, .wires = wires};
	go_to(plan, first);
}

void
plan_begin_targets(
    struct plan *plan, const struct conf *conf, const struct route_list *list, unsigned wires)
{
	plan_begin(plan, conf, &list->at[0], wires);
	plan->targets = list->at;
	plan->ntargets = list->n;
	plan->step = 1;
}

void
plan_take(struct plan *plan, size_t target)
{
	if (plan->visited++ == 0)
		plan->first = plan->targets[target];
	go_to(plan, &plan->targets[target]);
}

/* The channel of step 1 + i: the first one, then its list. */
static size_t
channel_at(const struct conf *conf, size_t first, size_t i)
{
	return i == 0 ? first : conf->channels[first].fallback[i - 1];
}

/* Does it stand earlier on the way? Lists are short. */
static bool
is_repeated(const struct conf *conf, size_t first, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (channel_at(conf, first, j) == channel_at(conf, first, i))
			return true;
	return false;
}

static bool
has_target(const struct plan *plan, size_t channel)
{
	for (size_t i = 0; i < plan->ntargets; i++)
		if (plan->targets[i].channel == channel)
			return true;
	return false;
}

static bool
speaks(const struct conf *conf, size_t channel, unsigned wires)
{
	return (ROUTE_WIRE(conf->channels[channel].wire) & wires) != 0;
}

enum plan_pass
plan_step(const struct plan *plan, const enum breaker_answer *answers, size_t step,
    struct route *route_out)
{
	size_t first = plan->first.channel, channel = channel_at(plan->conf, first, step - 1);

	*route_out = plan->first;
	if (step > 1)
		*route_out = (struct route){channel, plan->first.model, plan->first.entry, NULL};
	if (answers[channel] == BREAKER_NO)
		return PLAN_OPEN;
	if (answers[channel] == BREAKER_SPENT)
		return PLAN_SPENT;
	if (is_repeated(plan->conf, first, step - 1))
		return PLAN_REPEATED;
	if (step == 1)
		return PLAN_GOES;
	if (has_target(plan, channel))
		return PLAN_TARGET;
	if (!speaks(plan->conf, channel, plan->wires))
		return PLAN_OTHER_WIRE;
	return conf_serves(&plan->conf->channels[channel].models, plan->first.model)
	           ? PLAN_GOES
	           : PLAN_NO_MODEL;
}

/* Behind step `from`: the step of the next channel that this request may use, or 0. */
static size_t
find(const struct plan *plan, const enum breaker_answer *answers, size_t from,
    struct route *route_out)
{
	size_t steps = plan->conf->channels[plan->first.channel].nfallback + 1;

	for (size_t step = from + 1; step <= steps; step++)
		if (plan_step(plan, answers, step, route_out) == PLAN_GOES)
			return step;
	return 0;
}

bool
plan_next(struct plan *plan, const enum breaker_answer *answers)
{
	struct route route;
	size_t step = find(plan, answers, plan->step, &route);

	if (step == 0)
		return false;
	plan->step = step;
	plan->visited++;
	go_to(plan, &route);
	return true;
}

struct conf_target
plan_target(const struct plan *plan)
{
	if (plan->target != NULL)
		return *plan->target;
	return known_target(plan->conf, plan->entry, plan->channel, plan->model);
}

bool
plan_more(const struct plan *plan, const enum breaker_answer *answers)
{
	struct route route;

	return plan->other || find(plan, answers, plan->step, &route) != 0;
}

void
plan_back(struct plan *plan)
{
	plan->step = plan->conf->channels[plan->first.channel].nfallback + 1;
	plan->other = false;
	go_to(plan, &plan->first);
}

bool
plan_may_try(
    const struct plan *plan, const enum breaker_answer *answers, int64_t used, int64_t max_attempts)
{
	bool is_first = plan->visited <= 1 && plan->channel == plan->first.channel;
	bool keeps_one = is_first && max_attempts > 1 && plan_more(plan, answers);

	return used < max_attempts - (keeps_one ? 1 : 0);
}

bool
plan_has_fallback(
    const struct conf *conf, size_t channel, unsigned wires, const enum breaker_answer *answers)
{
	const struct conf_channel *ch = &conf->channels[channel];

	for (size_t i = 0; i < ch->nfallback; i++)
		if (ch->fallback[i] != channel && answers[ch->fallback[i]] != BREAKER_NO &&
		    speaks(conf, ch->fallback[i], wires))
			return true;
	return false;
}
