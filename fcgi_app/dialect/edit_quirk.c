#include "dialect/edit.h"

/* A member of an object: its name and value as they stand. */
static bool
find_member(struct span object, const char *name, struct span *name_out, struct scan_value *value)
{
	size_t at = 0;

	while (scan_next(object, &at, name_out, value))
		if (scan_is(*name_out, name))
			return true;
	return false;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool
edit_remove(struct span body, const char *name, struct edit *edit_out)
{
	struct span key;
	struct scan_value value;
	const char *from, *to;

	if (!find_member(text_trim(body), name, &key, &value))
		return false;
	from = key.p;
	to = value.raw.p + value.raw.n;
	/* valid JSON: a bracket stands at both ends, so neither walk leaves the body */
	for (const char *p = to; is_blank(*p) || *p == ','; p++)
		if (*p == ',') {
			*edit_out = (struct edit){{from, (size_t)(p + 1 - from)}, {"", 0}};
			return true;
		}
	for (const char *p = from - 1; is_blank(*p) || *p == ','; p--)
		if (*p == ',') {
			from = p;
			break;
		}
	*edit_out = (struct edit){{from, (size_t)(to - from)}, {"", 0}};
	return true;
}

bool
edit_rename(struct span body, const char *from, const char *to, struct edit *edit_out)
{
	struct span key;
	struct scan_value value;

	if (!find_member(text_trim(body), from, &key, &value))
		return false;
	/* the quotes stay */
	*edit_out = (struct edit){{key.p + 1, key.n - 2}, text_span(to)};
	return true;
}

size_t
edit_roles(const struct scan_value *messages, struct edit *edits_out, size_t most)
{
	struct scan_value message, role;
	struct span none, key;
	size_t at = 0, n = 0;

	if (messages->type != SCAN_ARRAY)
		return 0;
	while (scan_next(messages->raw, &at, &none, &message)) {
		if (message.type != SCAN_OBJECT || !find_member(message.raw, "role", &key, &role) ||
		    role.type != SCAN_STRING || !scan_is(role.raw, "developer"))
			continue;
		if (n < most)
			edits_out[n] = (struct edit){role.raw, SPAN("\"system\"")};
		n++;
	}
	return n;
}
