#include "dialect/estimate.h"

static bool
starts(struct span model, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text_starts_fold(model, prefixes[i]))
			return true;
	return false;
}

/* The next number of at most two digits: dates are no versions. */
static int
next_number(struct span *name)
{
	struct span word;

	while (text_token(name, "-._@:/", &word)) {
		int64_t n;

		if (word.n <= 2 && text_i64(word, 0, 99, &n))
			return (int)n;
	}
	return -1;
}

static struct estimate_model
claude(struct span name)
{
	int major = next_number(&name), minor = next_number(&name);
	bool old = text_has_fold(name, "instant") || (major >= 0 && major < 3);

	if (old)
		return (struct estimate_model){ESTIMATE_CLAUDE2, 100, true};
	if (major < 0 || major > 4 || (major == 4 && minor >= 7))
		return (struct estimate_model){ESTIMATE_O200K, 155, true};
	return (struct estimate_model){ESTIMATE_O200K, 120, true};
}

struct estimate_model
estimate_model(struct span model)
{
	static const char *const newer[] = {"gpt-4o", "gpt-4.1", "gpt-4.5"};
	static const char *const older[] = {"gpt-4", "gpt-3.5", "text-embedding-"};
	struct estimate_model out = {ESTIMATE_O200K, 100, false};
	size_t at = text_find_fold(model, SPAN("claude"));

	if (at < model.n)
		return claude(text_from(model, at));
	if (text_has_fold(model, "deepseek"))
		out.table = ESTIMATE_DEEPSEEK;
	else if (text_has_fold(model, "qwen") || text_has_fold(model, "qwq"))
		out.table = ESTIMATE_QWEN;
	else if (starts(model, older, NELEM(older)) && !starts(model, newer, NELEM(newer)))
		out.table = ESTIMATE_CL100K;
	return out;
}
