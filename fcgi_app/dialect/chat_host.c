#include "dialect/chat_host.h"

#define MILLION 1000000

/* clang-format off */
#define EFFORTS_ALL { \
	[FORM_EFFORT_NONE] = "none", [FORM_EFFORT_MINIMAL] = "minimal", [FORM_EFFORT_LOW] = "low", \
	[FORM_EFFORT_MEDIUM] = "medium", [FORM_EFFORT_HIGH] = "high", \
	[FORM_EFFORT_XHIGH] = "xhigh", [FORM_EFFORT_MAX] = "max" }
#define EFFORTS_TO_HIGH(none, minimal) { \
	[FORM_EFFORT_NONE] = none, [FORM_EFFORT_MINIMAL] = minimal, [FORM_EFFORT_LOW] = "low", \
	[FORM_EFFORT_MEDIUM] = "medium", [FORM_EFFORT_HIGH] = "high", \
	[FORM_EFFORT_XHIGH] = "high", [FORM_EFFORT_MAX] = "high" }
#define EFFORTS_LOW_HIGH_MAX { \
	[FORM_EFFORT_MINIMAL] = "low", [FORM_EFFORT_LOW] = "low", [FORM_EFFORT_MEDIUM] = "high", \
	[FORM_EFFORT_HIGH] = "high", [FORM_EFFORT_XHIGH] = "high", [FORM_EFFORT_MAX] = "max" }
#define EFFORTS_LOW_HIGH { \
	[FORM_EFFORT_MINIMAL] = "low", [FORM_EFFORT_LOW] = "low", [FORM_EFFORT_MEDIUM] = "high", \
	[FORM_EFFORT_HIGH] = "high", [FORM_EFFORT_XHIGH] = "high", [FORM_EFFORT_MAX] = "high" }
/* clang-format on */

static const struct chat_host hosts[] = {
    /* unknown hosts first: the common denominator */
    {.name = "openai-compatible",
        .parallel = true,
        .schema = true,
        .strict = true,
        .files = true,
        .top_k = true,
        .max_tokens = "max_tokens",
        .user = "user",
        .efforts = EFFORTS_TO_HIGH(NULL, "low"),
        .replay = CHAT_REPLAY_NONE},
    {.name = "openai",
        .openai = true,
        .developer = true,
        .strict = true,
        .parallel = true,
        .schema = true,
        .files = true,
        .max_tokens = "max_completion_tokens",
        .user = "user",
        .efforts = EFFORTS_ALL,
        .stops = 4},
    {.name = "azure",
        .openai = true,
        .developer = true,
        .strict = true,
        .parallel = true,
        .schema = true,
        .files = true,
        .max_tokens = "max_completion_tokens",
        .user = "user",
        .efforts = EFFORTS_ALL,
        .stops = 4},
    {.name = "deepseek",
        .max_tokens = "max_tokens",
        .user = "user_id",
        .efforts = EFFORTS_LOW_HIGH_MAX,
        .thinking = CHAT_BOTH,
        .replay = CHAT_REPLAY_CALLS,
        .choice = CHAT_CHOICE_UNFORCED},
    {.name = "zhipu",
        .max_tokens = "max_tokens",
        .user = NULL,
        .thinking = CHAT_TYPE,
        .replay = CHAT_REPLAY_ALL,
        .choice = CHAT_CHOICE_AUTO,
        .stops = 1,
        .temperature_min = MILLION / 100,
        .temperature_max = MILLION / 100 * 99,
        .top_p_min = MILLION / 100,
        .top_p_max = MILLION / 100 * 99},
    {.name = "moonshot",
        .schema = true,
        .max_tokens = "max_tokens",
        .efforts = EFFORTS_LOW_HIGH_MAX,
        .thinking = CHAT_KIMI,
        .replay = CHAT_REPLAY_CALLS,
        .choice = CHAT_CHOICE_UNFORCED,
        .temperature_max = MILLION},
    {.name = "dashscope",
        .parallel = true,
        .schema = true,
        .caches = true,
        .top_k = true,
        .max_tokens = "max_tokens",
        .user = NULL,
        .thinking = CHAT_ENABLE,
        .choice = CHAT_CHOICE_UNFORCED,
        .top_p_min = MILLION / 100,
        .top_p_max = MILLION},
    {.name = "siliconflow",
        .schema = true,
        .top_k = true,
        .max_tokens = "max_tokens",
        .thinking = CHAT_ENABLE},
    {.name = "openrouter",
        .parallel = true,
        .strict = true,
        .schema = true,
        .files = true,
        .caches = true,
        .top_k = true,
        .max_tokens = "max_tokens",
        .user = "user",
        .efforts = EFFORTS_ALL,
        .thinking = CHAT_OBJECT},
    {.name = "gemini",
        .strict = true,
        .schema = true,
        .max_tokens = "max_tokens",
        .efforts = EFFORTS_TO_HIGH("none", "minimal")},
    {.name = "xai",
        .strict = true,
        .parallel = true,
        .schema = true,
        .max_tokens = "max_tokens",
        .user = "user",
        .efforts = EFFORTS_LOW_HIGH},
};

const struct chat_host *
chat_host_of(const char *provider)
{
	for (size_t i = 0; provider != NULL && i < NELEM(hosts); i++)
		if (text_is(text_span(provider), hosts[i].name))
			return &hosts[i];
	return &hosts[0];
}

bool
chat_host_is_reasoner(
    const struct chat_host *host, const struct form_target *target, const struct form *form)
{
	static const char *const heads[] = {"o1", "o3", "o4", "gpt-5", "gpt-6"};

	if (!host->openai || form->effort == FORM_EFFORT_NONE ||
	    text_has_fold(target->model, "chat"))
		return false;
	for (size_t i = 0; i < NELEM(heads); i++)
		if (text_starts_fold(target->model, heads[i]))
			return true;
	return false;
}

/* The effort that was asked for, or the one whose budget is the next above the one given. */
static enum form_effort
effort_of(const struct form *form)
{
	static const struct {
		int64_t budget;
		enum form_effort effort;
	} steps[] = {
	    {0, FORM_EFFORT_NONE},
	    {512, FORM_EFFORT_MINIMAL},
	    {1024, FORM_EFFORT_LOW},
	    {8192, FORM_EFFORT_MEDIUM},
	    {24576, FORM_EFFORT_HIGH},
	};

	if ((form->effort != FORM_EFFORT_UNSET && form->effort != FORM_EFFORT_AUTO) ||
	    form->thinking_budget < 0)
		return form->effort;
	for (size_t i = 0; i < NELEM(steps); i++)
		if (form->thinking_budget <= steps[i].budget)
			return steps[i].effort;
	return FORM_EFFORT_XHIGH;
}

bool
chat_host_thinks(
    const struct chat_host *host, const struct form_target *target, const struct form *form)
{
	enum form_effort effort = effort_of(form);

	if (effort != FORM_EFFORT_UNSET)
		return effort != FORM_EFFORT_NONE;
	if (text_has_fold(target->model, "reason") || text_has_fold(target->model, "think"))
		return true;
	/* current models of DeepSeek think by themselves; its old name stands for one that does not */
	return host->thinking == CHAT_BOTH && !text_is(target->model, "deepseek-chat");
}

static bool
write_word(const struct chat_host *host, enum form_effort effort, struct emit *e, const char *key)
{
	const char *word = effort < FORM_EFFORT_AUTO ? host->efforts[effort] : NULL;

	if (word != NULL)
		emit_z(e, key, word);
	return word != NULL || effort == FORM_EFFORT_AUTO; /* thinking is what they do anyway */
}

static void
write_type(enum form_effort effort, struct emit *e)
{
	emit_object(e, "thinking");
	emit_z(e, "type", effort == FORM_EFFORT_NONE ? "disabled" : "enabled");
	emit_end(e);
}

static void
write_enable(const struct form *form, enum form_effort effort, struct emit *e)
{
	static const int64_t budgets[] = {[FORM_EFFORT_MINIMAL] = 512,
	    [FORM_EFFORT_LOW] = 1024,
	    [FORM_EFFORT_MEDIUM] = 8192,
	    [FORM_EFFORT_HIGH] = 24576,
	    [FORM_EFFORT_XHIGH] = 32768};

	emit_bool(e, "enable_thinking", effort != FORM_EFFORT_NONE);
	if (effort == FORM_EFFORT_NONE)
		return;
	if (form->thinking_budget > 0)
		emit_i64(e, "thinking_budget", form->thinking_budget);
	else if (effort < NELEM(budgets))
		emit_i64(e, "thinking_budget", budgets[effort]);
}

static void
write_object(
    const struct chat_host *host, const struct form *form, enum form_effort effort, struct emit *e)
{
	emit_object(e, "reasoning");
	if (form->thinking_budget > 0 && effort != FORM_EFFORT_NONE)
		emit_i64(e, "max_tokens", form->thinking_budget);
	else if (effort == FORM_EFFORT_AUTO || effort == FORM_EFFORT_NONE)
		emit_bool(e, "enabled", effort == FORM_EFFORT_AUTO);
	else
		(void)write_word(host, effort, e, "effort");
	emit_end(e);
}

bool
chat_host_thinking(const struct chat_host *host, const struct form_target *target,
    const struct form *form, struct emit *e)
{
	enum form_effort effort = effort_of(form);

	if (effort == FORM_EFFORT_UNSET)
		return true;
	switch (host->thinking) {
	case CHAT_EFFORT: return write_word(host, effort, e, "reasoning_effort");
	case CHAT_TYPE: write_type(effort, e); return true;
	case CHAT_BOTH:
		write_type(effort, e);
		if (effort != FORM_EFFORT_NONE)
			(void)write_word(host, effort, e, "reasoning_effort");
		return true;
	case CHAT_KIMI:
		if (text_has_fold(target->model, "k3"))
			return write_word(host, effort, e, "reasoning_effort");
		write_type(effort, e);
		return true;
	case CHAT_ENABLE: write_enable(form, effort, e); return true;
	case CHAT_OBJECT: write_object(host, form, effort, e); return true;
	}
	return true;
}
