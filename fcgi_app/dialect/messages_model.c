#include "dialect/messages_model.h"

#define NAME_MAX_BYTES 128
#define BUDGET_MIN 1024      /* formats.md C.2 */
#define BUDGET_MAX 128000    /* formats.md E.7, effort "max" */
#define ROOM_FOR_ANSWER 8192 /* tokens beside the budget where we choose the limit */

#define ADAPTIVE .thinks = MESSAGES_THINKS_ADAPTIVE
#define NEWEST                                                                                     \
	ADAPTIVE, .no_sampling = true, .one_of_two = true, .no_prefill = true, .structured = true, \
	          .xhigh = true, .hosted = true
#define BUDGET .thinks = MESSAGES_THINKS_BUDGET, .one_of_two = true, .hosted = true

/* The first that fits counts. */
static const struct messages_model models[] = {
    {"*claude-fable-*", NEWEST, .always = true},
    {"*claude-mythos-*", NEWEST, .always = true},
    {"*claude-opus-5-5*", NEWEST, .always = true},
    {"*claude-sonnet-5-5*", NEWEST, .always = true},
    {"*claude-opus-4-6*", ADAPTIVE, .one_of_two = true, .no_prefill = true, .structured = true,
        .hosted = true},
    {"*claude-sonnet-4-6*", ADAPTIVE, .one_of_two = true, .no_prefill = true, .structured = true,
        .hosted = true},
    {"*claude-opus-4-7*", NEWEST},
    {"*claude-opus-4-8*", NEWEST},
    {"*claude-opus-4-5*", BUDGET, .structured = true},
    {"*claude-sonnet-4-5*", BUDGET, .structured = true},
    {"*claude-haiku-4-5*", BUDGET, .structured = true},
    {"*claude-opus-4-1*", BUDGET, .structured = true, .max_output = 32000},
    {"*claude-opus-4*", BUDGET, .max_output = 32000},
    {"*claude-sonnet-4*", BUDGET},
    {"*claude-3-7-*", .thinks = MESSAGES_THINKS_BUDGET, .hosted = true},
    {"*claude-3-5-*", .hosted = true, .max_output = 8192},
    {"*claude-3-*", .max_output = 4096},
    {"*claude-*", NEWEST},
    {"*", .thinks = MESSAGES_THINKS_BUDGET},
};

const struct messages_model *
messages_model_of(struct span name)
{
	char plain[NAME_MAX_BYTES];
	size_t n = name.n < sizeof plain ? name.n : sizeof plain, i = 0;

	for (size_t at = 0; at < n; at++)
		plain[at] = name.p[at] == '.' ? '-' : text_lower(name.p[at]);
	while (i + 1 < NELEM(models) &&
	       !text_match(text_span(models[i].pattern), (struct span){plain, n}))
		i++;
	return &models[i];
}

static enum form_effort
effort_of_budget(int64_t budget)
{
	if (budget <= 1024)
		return FORM_EFFORT_LOW;
	if (budget <= 8192)
		return FORM_EFFORT_MEDIUM;
	return budget <= 24576 ? FORM_EFFORT_HIGH : FORM_EFFORT_XHIGH;
}

static int64_t
budget_of_effort(enum form_effort effort)
{
	switch (effort) {
	case FORM_EFFORT_UNSET:
	case FORM_EFFORT_NONE: return 0;
	case FORM_EFFORT_MINIMAL:
	case FORM_EFFORT_LOW: return BUDGET_MIN;
	case FORM_EFFORT_AUTO:
	case FORM_EFFORT_MEDIUM: return 8192;
	case FORM_EFFORT_HIGH: return 24576;
	case FORM_EFFORT_XHIGH: return 32768;
	case FORM_EFFORT_MAX: return BUDGET_MAX;
	}
	return 0;
}

static const char *
effort_name(const struct messages_model *model, enum form_effort effort)
{
	switch (effort) {
	case FORM_EFFORT_UNSET:
	case FORM_EFFORT_NONE:
	case FORM_EFFORT_AUTO: return NULL;
	case FORM_EFFORT_MINIMAL:
	case FORM_EFFORT_LOW: return "low";
	case FORM_EFFORT_MEDIUM: return "medium";
	case FORM_EFFORT_HIGH: return "high";
	case FORM_EFFORT_XHIGH: return model->xhigh ? "xhigh" : "max";
	case FORM_EFFORT_MAX: return "max";
	}
	return NULL;
}

static struct messages_thinking
think_by_budget(int64_t budget, bool stated, bool given, int64_t cap, int64_t *max_tokens)
{
	int64_t most;

	if (budget < BUDGET_MIN)
		budget = BUDGET_MIN;
	if (!given && *max_tokens < budget + ROOM_FOR_ANSWER)
		*max_tokens = budget + ROOM_FOR_ANSWER;
	if (!given && cap >= 0 && *max_tokens > cap)
		*max_tokens = cap;
	/* a budget that the client stated need only be below its limit */
	most = stated ? *max_tokens - 1 : *max_tokens - *max_tokens / 4;
	if (budget > most)
		budget = most;
	if (budget < BUDGET_MIN)
		return (struct messages_thinking){.lost = true};
	return (struct messages_thinking){.kind = MESSAGES_BUDGET, .budget = budget};
}

struct messages_thinking
messages_model_think(const struct messages_model *model, const struct form *form, bool given,
    int64_t cap, int64_t *max_tokens)
{
	enum form_effort effort = form->effort;
	int64_t budget = form->thinking_budget;

	if (effort == FORM_EFFORT_UNSET && budget < 0)
		return (struct messages_thinking){.kind = MESSAGES_UNSAID};
	if (effort == FORM_EFFORT_NONE || budget == 0) {
		if (model->thinks == MESSAGES_THINKS_NEVER || model->always)
			return (struct messages_thinking){.lost = model->always};
		return (struct messages_thinking){.kind = MESSAGES_OFF};
	}
	switch (model->thinks) {
	case MESSAGES_THINKS_NEVER: return (struct messages_thinking){.lost = true};
	case MESSAGES_THINKS_BUDGET:
		return think_by_budget(budget > 0 ? budget : budget_of_effort(effort), budget > 0,
		    given, cap, max_tokens);
	case MESSAGES_THINKS_ADAPTIVE:
		if (budget > 0 && (effort == FORM_EFFORT_AUTO || effort == FORM_EFFORT_UNSET))
			effort = effort_of_budget(budget);
		return (struct messages_thinking){
		    .kind = MESSAGES_ADAPTIVE, .effort = effort_name(model, effort)};
	}
	return (struct messages_thinking){.kind = MESSAGES_UNSAID};
}
