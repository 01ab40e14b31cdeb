#include "credential.h"

const char *const credential_names[] = {"HTTP_AUTHORIZATION", "REDIRECT_HTTP_AUTHORIZATION",
    "REDIRECT_REDIRECT_HTTP_AUTHORIZATION", "Authorization", NULL};

struct span
credential_authorization(const struct exchange *x)
{
	struct span value = {"", 0};

	for (size_t i = 0; credential_names[i] != NULL && value.n == 0; i++)
		value = text_trim(exchange_param(x, credential_names[i]));
	return value;
}

/* What follows the scheme; empty for another scheme. */
static struct span
bearer(struct span authorization)
{
	static const struct span scheme = {"Bearer", 6};

	if (!text_starts_fold(authorization, scheme.p) || authorization.n == scheme.n ||
	    (authorization.p[scheme.n] != ' ' && authorization.p[scheme.n] != '\t'))
		return (struct span){"", 0};
	return text_trim(text_from(authorization, scheme.n));
}

static bool
is_one_key(struct span key)
{
	for (size_t i = 0; i < key.n; i++)
		if (key.p[i] <= ' ' || key.p[i] > '~' || key.p[i] == ',')
			return false;
	return key.n <= CREDENTIAL_MAX;
}

struct span
credential_key(const struct exchange *x)
{
	struct span key = bearer(credential_authorization(x));

	if (key.n == 0)
		key = text_trim(exchange_param(x, "HTTP_X_API_KEY"));
	if (key.n == 0)
		key = text_trim(exchange_param(x, "HTTP_API_KEY"));
	return is_one_key(key) ? key : (struct span){"", 0};
}
