#include "plan.h"

#include "conf/known.h"

void
plan_begin(struct plan *plan, const struct conf *conf, const struct route *first, unsigned wires)
{
	*plan = (struct plan){
	    .conf = conf,
	    .first = *first,
	    .wires = wires,
	    .channel = first->channel,
	    .model = first->model,
	};
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
speaks(const struct conf *conf, size_t channel, unsigned wires)
{
	return (ROUTE_WIRE(conf->channels[channel].wire) & wires) != 0;
}

/* What a fallback channel calls this model. False: it does not serve it. */
static bool
model_at(const struct plan *plan, size_t channel, struct span *model_out)
{
	const struct conf_model *entry = plan->first.entry;

	for (size_t i = 0; entry != NULL && i < entry->ntargets; i++) {
		if (entry->targets[i].channel != channel)
			continue;
		*model_out = entry->targets[i].model;
		return true;
	}
	*model_out = plan->first.model;
	return conf_serves(&plan->conf->channels[channel].models, *model_out);
}

enum plan_pass
plan_step(const struct plan *plan, const enum breaker_answer *answers, size_t step,
    size_t *channel_out, struct span *model_out)
{
	size_t first = plan->first.channel, channel = channel_at(plan->conf, first, step - 1);

	*channel_out = channel;
	*model_out = plan->first.model;
	if (answers[channel] == BREAKER_NO)
		return PLAN_OPEN;
	if (answers[channel] == BREAKER_SPENT)
		return PLAN_SPENT;
	if (is_repeated(plan->conf, first, step - 1))
		return PLAN_REPEATED;
	if (step == 1)
		return PLAN_GOES;
	if (!speaks(plan->conf, channel, plan->wires))
		return PLAN_OTHER_WIRE;
	return model_at(plan, channel, model_out) ? PLAN_GOES : PLAN_NO_MODEL;
}

/* Behind step `from`: the step of the next channel that this request may use, or 0. */
static size_t
find(const struct plan *plan, const enum breaker_answer *answers, size_t from,
    struct span *model_out)
{
	size_t steps = plan->conf->channels[plan->first.channel].nfallback + 1, channel;

	for (size_t step = from + 1; step <= steps; step++)
		if (plan_step(plan, answers, step, &channel, model_out) == PLAN_GOES)
			return step;
	return 0;
}

bool
plan_next(struct plan *plan, const enum breaker_answer *answers)
{
	struct span model;
	size_t step = find(plan, answers, plan->step, &model);

	if (step == 0)
		return false;
	plan->step = step;
	plan->visited++;
	plan->channel = channel_at(plan->conf, plan->first.channel, step - 1);
	plan->model = model;
	return true;
}

struct conf_target
plan_target(const struct plan *plan)
{
	return known_target(plan->conf, plan->first.entry, plan->channel, plan->model);
}

bool
plan_more(const struct plan *plan, const enum breaker_answer *answers)
{
	struct span model;

	return find(plan, answers, plan->step, &model) != 0;
}

void
plan_back(struct plan *plan)
{
	plan->step = plan->conf->channels[plan->first.channel].nfallback + 1;
	plan->channel = plan->first.channel;
	plan->model = plan->first.model;
}

bool
plan_may_try(
    const struct plan *plan, const enum breaker_answer *answers, int64_t used, int64_t max_attempts)
{
	bool keeps_one =
	    plan->channel == plan->first.channel && max_attempts > 1 && plan_more(plan, answers);

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
