#include "classify_rule.h"

#include "base/regex.h"

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
