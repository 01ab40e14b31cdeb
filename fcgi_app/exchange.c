#include "exchange.h"

#include <string.h>

struct span
exchange_param(const struct exchange *x, const char *name)
{
	size_t n = strlen(name);

	for (char **p = x->params; p != NULL && *p != NULL; p++)
		if ((*p)[0] == name[0] && strncmp(*p, name, n) == 0 && (*p)[n] == '=')
			return text_span(*p + n + 1);
	return (struct span){"", 0};
}

int64_t
exchange_length(const struct exchange *x)
{
	int64_t n = -1;

	if (!text_i64(text_trim(exchange_param(x, "CONTENT_LENGTH")), 0, INT64_MAX, &n))
		return -1;
	return n;
}
