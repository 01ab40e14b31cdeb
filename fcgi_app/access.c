#include "access.h"

static struct span
user_of(const struct conf *conf, const struct exchange *x)
{
	for (size_t i = 0; i < conf->auth.user_variables.n; i++) {
		struct span name = conf->auth.user_variables.at[i], value;

		if (text_starts(name, "HTTP_"))
			continue; /* a client could send it */
		value = exchange_param(x, name.p);
		if (value.n > 0)
			return value;
	}
	return (struct span){"", 0};
}

enum access_answer
access_client(const struct conf *conf, const struct exchange *x, struct span *client_out)
{
	*client_out = user_of(conf, x);
	switch ((enum conf_auth)conf->auth.mode) {
	case CONF_AUTH_OPEN: return ACCESS_OK;
	case CONF_AUTH_KEYS: return ACCESS_UNBUILT;
	case CONF_AUTH_WEB_SERVER: break;
	}
	return client_out->n > 0 ? ACCESS_OK : ACCESS_UNKNOWN;
}

enum access_answer
access_admin(const struct conf *conf, struct span client)
{
	for (size_t i = 0; client.n > 0 && i < conf->auth.admins.n; i++)
		if (text_equal(conf->auth.admins.at[i], client))
			return ACCESS_OK;
	return ACCESS_REFUSED;
}

const char *
access_hint(void)
{
	return "no user: the web server must authenticate the request and pass REMOTE_USER "
	       "(Apache: 'Require valid-user' with an AuthType, or 'Require env REMOTE_USER'; "
	       "lighttpd: auth.require or setenv.add-environment); see auth.mode";
}

struct span
access_origin(const struct conf *conf, const struct exchange *x)
{
	struct span origin = exchange_param(x, "HTTP_ORIGIN");

	for (size_t i = 0; origin.n > 0 && i < conf->server.cors_origins.n; i++)
		if (text_is(conf->server.cors_origins.at[i], "*") ||
		    text_equal(conf->server.cors_origins.at[i], origin))
			return origin;
	return (struct span){"", 0};
}
