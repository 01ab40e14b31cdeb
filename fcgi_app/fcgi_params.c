#include "fcgi_params.h"

#include <string.h>

/* One byte, or four of which the first has its high bit set. */
static bool
take_length(struct span *rest, size_t *n_out)
{
	const unsigned char *p = (const unsigned char *)rest->p;
	size_t took = rest->n > 0 && p[0] < 0x80 ? 1 : 4;

	if (rest->n < took)
		return false;
	*n_out = took == 1 ? p[0]
	                   : (size_t)(p[0] & 0x7f) << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 |
	                         (size_t)p[3];
	*rest = text_from(*rest, took);
	return true;
}

static bool
take_pair(struct span *rest, struct span *name, struct span *value)
{
	size_t name_n, value_n;

	if (!take_length(rest, &name_n) || !take_length(rest, &value_n) || name_n > rest->n ||
	    value_n > rest->n - name_n)
		return false;
	*name = (struct span){rest->p, name_n};
	*value = (struct span){rest->p + name_n, value_n};
	*rest = text_from(*rest, name_n + value_n);
	return true;
}

static bool
is_name(struct span name)
{
	return name.n > 0 && memchr(name.p, '=', name.n) == NULL &&
	       memchr(name.p, '\0', name.n) == NULL;
}

enum err
fcgi_params(char *bytes, size_t n, char **out, size_t max, struct why *why)
{
	struct span rest = {bytes, n}, name, value;
	char *to = bytes; /* never beyond what was read */
	size_t count = 0;

	while (rest.n > 0) {
		if (!take_pair(&rest, &name, &value)) {
			err_why(why, "a variable is longer than what came");
			return ERR_BAD_INPUT;
		}
		if (!is_name(name))
			continue;
		if (count + 1 >= max) {
			err_why(why, "more than %zu variables", max - 1);
			return ERR_TOO_BIG;
		}
		out[count++] = to;
		memmove(to, name.p, name.n);
		to[name.n] = '=';
		memmove(to + name.n + 1, value.p, value.n);
		to[name.n + 1 + value.n] = '\0';
		to += name.n + value.n + 2;
	}
	out[count] = NULL;
	return ERR_OK;
}
