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
