#include "dialect/estimate.h"

/* The first that fits counts. formats.md G.1; others have a "text-embedding-v3", so those stand here by name. */
static const struct {
	const char *prefix;
	enum estimate_table table;
	bool whole; /* no letter or digit may follow */
} openai[] = {
    {"gpt-4o", ESTIMATE_O200K, false},
    {"gpt-4.1", ESTIMATE_O200K, false},
    {"gpt-4.5", ESTIMATE_O200K, false},
    {"gpt-4", ESTIMATE_CL100K, false},
    {"gpt-3.5", ESTIMATE_CL100K, false},
    {"gpt-35-", ESTIMATE_CL100K, false}, /* as Azure calls it */
    {"gpt-5", ESTIMATE_O200K, false},
    {"gpt-6", ESTIMATE_O200K, false},
    {"gpt-oss", ESTIMATE_O200K, false},
    {"chatgpt-", ESTIMATE_O200K, false},
    {"o1", ESTIMATE_O200K, true},
    {"o3", ESTIMATE_O200K, true},
    {"o4", ESTIMATE_O200K, true},
    {"text-embedding-3-", ESTIMATE_CL100K, false},
    {"text-embedding-ada-", ESTIMATE_CL100K, false},
};

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
	struct estimate_model m = {.table = ESTIMATE_O200K, .percent = 120, .claude = true};
	bool instant = text_has_fold(name, "instant");
	int major = next_number(&name), minor = next_number(&name);

	if (instant || (major >= 0 && major < 3)) {
		m.table = ESTIMATE_CLAUDE2;
		m.percent = 100;
	} else if (major < 0 || major > 4 || (major == 4 && minor >= 7)) {
		m.percent = 155;
	}
	return m;
}

struct span
estimate_bare(struct span model)
{
	size_t at = model.n;

	while (at > 0 && model.p[at - 1] != '/')
		at--;
	model = text_from(model, at);
	return text_starts_fold(model, "ft:") ? text_from(model, 3) : model;
}

static bool
is_joint(struct span name, size_t at)
{
	return at >= name.n || name.p[at] == '-' || name.p[at] == ':' || name.p[at] == '.';
}

struct estimate_model
estimate_model(struct span model)
{
	struct estimate_model out = {.table = ESTIMATE_O200K, .percent = 100};
	size_t at = text_find_fold(model, SPAN("claude"));
	struct span bare = estimate_bare(model);

	if (at < model.n)
		return claude(text_from(model, at));
	for (size_t i = 0; i < NELEM(openai); i++) {
		struct span prefix = text_span(openai[i].prefix);

		if (!text_starts_fold(bare, prefix.p) ||
		    (openai[i].whole && !is_joint(bare, prefix.n)))
			continue;
		out.table = openai[i].table;
		out.openai = true;
		return out;
	}
	if (text_has_fold(model, "deepseek"))
		out.table = ESTIMATE_DEEPSEEK;
	else if (text_has_fold(model, "qwen") || text_has_fold(model, "qwq"))
		out.table = ESTIMATE_QWEN;
	return out;
}
