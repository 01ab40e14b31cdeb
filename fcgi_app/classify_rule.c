#define PCRE2_CODE_UNIT_WIDTH 8

#include "classify_rule.h"

#include <pcre2.h>

#include <string.h>

#define STEPS_MAX 100000 /* of backtracking, for one text */

bool
classify_rule_code(struct span pattern, struct span code)
{
	if (text_find(pattern, SPAN("*")) < pattern.n)
		return text_match(pattern, code);
	return pattern.n == code.n && (code.n == 0 || text_find_fold(code, pattern) == 0);
}

static bool
any_code(struct span want, const struct locate_error *error)
{
	for (size_t i = 0; i < error->ncodes; i++)
		if (classify_rule_code(want, error->codes[i]))
			return true;
	return false;
}

static bool
regex_matches(struct span regex, struct span text)
{
	PCRE2_SIZE at;
	int fault, rc = PCRE2_ERROR_NOMATCH;
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)regex.p, regex.n,
	    PCRE2_CASELESS | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C, &fault,
	    &at, NULL);
	pcre2_match_data *data;
	pcre2_match_context *limits;

	if (code == NULL)
		return false;
	data = pcre2_match_data_create_from_pattern(code, NULL);
	limits = pcre2_match_context_create(NULL);
	if (data == NULL || limits == NULL)
		die("no memory for a regular expression");
	pcre2_set_match_limit(limits, STEPS_MAX);
	pcre2_set_depth_limit(limits, STEPS_MAX);
	rc = pcre2_match(code, (PCRE2_SPTR)(text.n > 0 ? text.p : ""), text.n, 0, 0, data, limits);
	pcre2_match_context_free(limits);
	pcre2_match_data_free(data);
	pcre2_code_free(code);
	return rc >= 0;
}

static bool
text_matches(struct span want, struct span text)
{
	if (want.n > 2 && want.p[0] == '/' && want.p[want.n - 1] == '/')
		return regex_matches((struct span){want.p + 1, want.n - 2}, text);
	return text_find_fold(text, want) < text.n;
}

static bool
header_matches(struct span want, const struct reset_headers *headers)
{
	size_t colon = text_find(want, SPAN(":"));
	struct span name = text_trim((struct span){want.p, colon});
	struct span value = text_trim(text_from(want, colon + 1));

	for (size_t i = 0; headers != NULL && i < headers->n; i++) {
		struct span have = text_span(headers->at[i].value);

		if (!classify_rule_code(name, text_span(headers->at[i].name)))
			continue;
		if (value.n == 0 || text_find_fold(have, value) < have.n)
			return true;
	}
	return false;
}

bool
classify_rule(const struct conf_rule *rule, const struct classify_rule_view *view)
{
	struct span text = view->error->text;

	if (rule->status != 0 && rule->status != view->status && rule->status != view->effective)
		return false;
	if (rule->code.n > 0 && !any_code(rule->code, view->error))
		return false;
	if (rule->type.n > 0 && !any_code(rule->type, view->error))
		return false;
	if (rule->header.n > 0 && !header_matches(rule->header, view->headers))
		return false;
	if (rule->text.n == 0)
		return true;
	return text_matches(rule->text, text.n > 0 ? text : view->body);
}
