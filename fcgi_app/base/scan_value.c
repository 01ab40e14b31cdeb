#include "base/lex.h"
#include "base/scan.h"

#include <string.h>

static const char *
skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

static struct span
inside(struct span raw)
{
	return raw.n < 2 ? (struct span){NULL, 0} : (struct span){raw.p + 1, raw.n - 2};
}

struct span
scan_string(struct arena *arena, struct span raw)
{
	struct span rest = inside(raw), out;
	char *to;

	if (rest.n == 0 || memchr(rest.p, '\\', rest.n) == NULL)
		return rest;
	to = arena_alloc(arena, rest.n);
	out.p = to;
	while (rest.n > 0) {
		size_t used = text_find(rest, SPAN("\\"));

		memcpy(to, rest.p, used);
		to += used;
		rest = text_from(rest, used);
		if (rest.n > 0) {
			to += lex_unescape(rest, to, &used);
			rest = text_from(rest, used);
		}
	}
	out.n = (size_t)(to - out.p);
	return out;
}

bool
scan_is(struct span raw, const char *z)
{
	return raw.n >= 2 && lex_same(inside(raw), text_span(z));
}

bool
scan_i64(const struct scan_value *value, int64_t min, int64_t max, int64_t *out)
{
	struct span s = value->type == SCAN_STRING ? inside(value->raw) : value->raw;
	int64_t v;

	if (value->type != SCAN_STRING && value->type != SCAN_NUMBER)
		return false;
	if (!lex_whole(s, &v) || v < min || v > max)
		return false;
	*out = v;
	return true;
}

size_t
scan_line(struct span text, size_t at)
{
	size_t line = 1;

	for (size_t i = 0; i < at && i < text.n; i++)
		line += text.p[i] == '\n';
	return line;
}

static enum scan_type
type_of(char c)
{
	switch (c) {
	case '{': return SCAN_OBJECT;
	case '[': return SCAN_ARRAY;
	case '"': return SCAN_STRING;
	case 't': return SCAN_TRUE;
	case 'f': return SCAN_FALSE;
	case 'n': return SCAN_NULL;
	default: return SCAN_NUMBER;
	}
}

/* The beginning of the next member or element, or NULL. */
static const char *
next_item(struct span container, size_t at)
{
	const char *end = container.p + container.n, *p = container.p + at;

	if (container.p[0] != '{' && container.p[0] != '[')
		return NULL;
	p = skip_blanks(at == 0 ? p + 1 : p, end);
	if (p < end && *p == ',')
		p = skip_blanks(p + 1, end);
	return p == end || *p == '}' || *p == ']' ? NULL : p;
}

bool
scan_next(struct span container, size_t *at, struct span *name_out, struct scan_value *value_out)
{
	const char *p = container.n == 0 ? NULL : next_item(container, *at), *begin = p, *end;

	if (p == NULL)
		return false;
	end = container.p + container.n;
	*name_out = (struct span){p, 0};
	if (container.p[0] == '{') {
		p = lex_skip(p, end);
		name_out->n = (size_t)(p - begin);
		p = skip_blanks(p, end);
		if (p < end)
			p = skip_blanks(p + 1, end); /* the colon */
	}
	begin = p;
	p = lex_skip(p, end);
	*value_out = (struct scan_value){
	    begin < end ? type_of(*begin) : SCAN_ABSENT, {begin, (size_t)(p - begin)}};
	*at = (size_t)(p - container.p);
	return true;
}
