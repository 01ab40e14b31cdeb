#include "dialect/value.h"

#include <string.h>

bool
value_says(const struct scan_value *v)
{
	switch (v->type) {
	case SCAN_ABSENT:
	case SCAN_NULL:
	case SCAN_FALSE: return false;
	case SCAN_TRUE: return true;
	case SCAN_NUMBER: return !text_is(v->raw, "0");
	case SCAN_STRING: return v->raw.n > 2;
	case SCAN_ARRAY:
	case SCAN_OBJECT: return text_trim((struct span){v->raw.p + 1, v->raw.n - 2}).n > 0;
	}
	return false;
}

size_t
value_bytes(const struct scan_value *v)
{
	size_t n;

	if (v->type != SCAN_STRING)
		return 0;
	n = v->raw.n - 2;
	for (size_t i = 1; i + 1 < v->raw.n; i++) {
		const char *at = memchr(v->raw.p + i, '\\', v->raw.n - 1 - i);

		if (at == NULL)
			break;
		i = (size_t)(at - v->raw.p) + 1;
		n -= v->raw.p[i] == 'u' ? 3 : 1;
	}
	return n;
}

void
value_copy(char *dst, size_t cap, const struct scan_value *v)
{
	char plain[256];
	size_t n = 0;

	if (v->type != SCAN_STRING)
		return;
	for (size_t i = 1; i + 1 < v->raw.n && n < sizeof plain; i++) {
		char c = v->raw.p[i];

		if (c == '\\') {
			c = v->raw.p[++i];
			if (c != '/' && c != '\\' && c != '"')
				c = '?';
		}
		plain[n++] = c;
	}
	text_clean(dst, cap, (struct span){plain, n});
}

struct scan_value
value_member(const struct scan_value *object, const char *name)
{
	struct scan_value v, found = {.type = SCAN_ABSENT};
	struct span key;
	size_t at = 0;

	if (object->type == SCAN_OBJECT)
		while (scan_next(object->raw, &at, &key, &v))
			if (scan_is(key, name))
				found = v;
	return found;
}
