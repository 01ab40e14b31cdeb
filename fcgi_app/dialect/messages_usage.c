#include "dialect/messages.h"

enum { INPUT, OUTPUT, READ, WRITE, WRITE_5M, WRITE_1H, THINKING, PROMPT, COMPLETION, USAGE__MAX };

static const char *const paths[USAGE__MAX] = {
    [INPUT] = "input_tokens",
    [OUTPUT] = "output_tokens",
    [READ] = "cache_read_input_tokens",
    [WRITE] = "cache_creation_input_tokens",
    [WRITE_5M] = "cache_creation.ephemeral_5m_input_tokens",
    [WRITE_1H] = "cache_creation.ephemeral_1h_input_tokens",
    [THINKING] = "output_tokens_details.thinking_tokens",
    /* faces of other hosts that forgot to rename them */
    [PROMPT] = "prompt_tokens",
    [COMPLETION] = "completion_tokens",
};

static bool
figure(const struct scan_value *v, int64_t *out)
{
	return scan_i64(v, 0, MESSAGES_TOKENS_MAX, out);
}

static int64_t
positive(int64_t n)
{
	return n > 0 ? n : 0;
}

static void
read_written(const struct scan_value v[USAGE__MAX], struct dialect_usage *usage)
{
	int64_t short_lived = 0, long_lived = 0;

	if (figure(&v[WRITE], &usage->cache_write))
		return;
	figure(&v[WRITE_5M], &short_lived);
	figure(&v[WRITE_1H], &long_lived);
	if (short_lived + long_lived > 0)
		usage->cache_write = short_lived + long_lived;
}

/* The prompt is kept as a sum; what is not in this object comes from the sum as it was. */
static bool
read_prompt(const struct scan_value v[USAGE__MAX], struct dialect_usage *usage)
{
	int64_t input = -1, cached = usage->cached, written = usage->cache_write;
	bool seen;

	if (usage->prompt >= 0)
		input = usage->prompt - positive(cached) - positive(written);
	seen = figure(&v[INPUT], &input) || figure(&v[PROMPT], &input);
	figure(&v[READ], &usage->cached);
	read_written(v, usage);
	if (input < 0 && usage->cached <= 0 && usage->cache_write <= 0)
		return seen;
	usage->prompt = positive(input) + positive(usage->cached) + positive(usage->cache_write);
	return true;
}

void
messages_usage(const struct scan_value *object, struct dialect_usage *usage)
{
	static struct scan_plan *plan;
	struct scan_value v[USAGE__MAX];
	bool seen;

	if (object->type != SCAN_OBJECT)
		return;
	if (plan == NULL) {
		plan = scan_plan_new(paths, USAGE__MAX);
		scan_plan_lax(plan);
	}
	if (scan_run(plan, object->raw, v, NULL) != ERR_OK)
		return; /* was part of a document that could be read */
	seen = read_prompt(v, usage);
	seen |=
	    figure(&v[OUTPUT], &usage->completion) || figure(&v[COMPLETION], &usage->completion);
	figure(&v[THINKING], &usage->reasoning);
	usage->seen |= seen;
}
