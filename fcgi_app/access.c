#include "access.h"

#include "conf/claim.h"
#include "store/ledger.h"

_Static_assert(ACCESS_CLIENT_MAX <= LEDGER_NAME_MAX, "the ledger would cut a client's name");

/* A server that sends a variable twice: empty ones do not count, two different ones are nobody's name. */
static bool
user_value(const struct exchange *x, struct span name, struct span *value_out)
{
	*value_out = (struct span){"", 0};
	for (char **p = x->params; p != NULL && *p != NULL; p++) {
		struct span line = text_span(*p), value;

		if (!text_starts(line, name.p) || line.n <= name.n || line.p[name.n] != '=')
			continue;
		value = text_from(line, name.n + 1);
		if (value.n == 0 || text_equal(value, *value_out))
			continue;
		if (value_out->n > 0)
			return false;
		*value_out = value;
	}
	return true;
}

/*
 * Variables that a server sets although it refused or did not look: REDIRECT_REMOTE_USER is also the name of a failed login
 * when an ErrorDocument leads here; a certificate that did not pass still has a subject; nginx takes $remote_user, which
 * stands in its fastcgi_params, from the request unseen, and sets no AUTH_TYPE.
 */
static bool
is_vouched(const struct exchange *x, struct span name)
{
	struct span verified = exchange_param(x, "SSL_CLIENT_VERIFY");

	if (claim_is_clients(name))
		return false;
	if (text_starts(name, "REDIRECT_") && !text_is(exchange_param(x, "REDIRECT_STATUS"), "200"))
		return false;
	if (text_starts(name, "SSL_CLIENT_") && verified.n > 0 && !text_is(verified, "SUCCESS"))
		return false;
	return !text_is(name, "REMOTE_USER") || exchange_param(x, "AUTH_TYPE").n > 0 ||
	       !text_starts_fold(exchange_param(x, "SERVER_SOFTWARE"), "nginx");
}

/* A name that can be stored whole and be told from any other by eye. */
static bool
is_name(struct span user)
{
	for (size_t i = 0; i < user.n; i++) {
		unsigned char c = (unsigned char)user.p[i];
		bool c1 = c == 0xc2 && i + 1 < user.n && (unsigned char)user.p[i + 1] < 0xa0;

		if (c < ' ' || c == 0x7f || c1)
			return false;
	}
	return user.n <= ACCESS_CLIENT_MAX && text_utf8(user) && !text_is(user, LEDGER_OTHER);
}

enum access_answer
access_client(const struct conf *conf, const struct exchange *x, struct span *client_out)
{
	struct span user = {"", 0};

	*client_out = user;
	for (size_t i = 0; i < conf->auth.user_variables.n && user.n == 0; i++) {
		struct span name = conf->auth.user_variables.at[i];

		if (is_vouched(x, name) && !user_value(x, name, &user))
			return ACCESS_UNFIT;
	}
	if (!is_name(user))
		return ACCESS_UNFIT;
	*client_out = user;
	switch ((enum conf_auth)conf->auth.mode) {
	case CONF_AUTH_OPEN: return ACCESS_OK;
	case CONF_AUTH_KEYS: return ACCESS_UNBUILT;
	case CONF_AUTH_WEB_SERVER: break;
	}
	return user.n > 0 ? ACCESS_OK : ACCESS_UNKNOWN;
}

enum access_answer
access_admin(const struct conf *conf, struct span client)
{
	for (size_t i = 0; client.n > 0 && i < conf->auth.admins.n; i++)
		if (text_equal(conf->auth.admins.at[i], client))
			return ACCESS_OK;
	return ACCESS_REFUSED;
}

struct span
access_realm(const struct exchange *x)
{
	struct span realm = exchange_param(x, "SLUICE_REALM");

	return realm.n > 0 ? realm : exchange_param(x, "HTTP_X_SLUICE_REALM");
}

const char *
access_hint(struct span server_software)
{
	static const struct {
		const char *server, *hint;
	} hints[] = {
	    {"apache",
	        "no user: Apache must authenticate the request and pass REMOTE_USER ('AuthType Basic' "
	        "with 'Require valid-user', 'SSLUserName SSL_CLIENT_S_DN_CN', or a RewriteRule with "
	        "'[E=REMOTE_USER:...]' and 'Require env REMOTE_USER')"},
	    {"litespeed",
	        "no user: LiteSpeed must authenticate the request and pass REMOTE_USER ('AuthType "
	        "Basic' with 'Require valid-user')"},
	    {"lighttpd",
	        "no user: lighttpd must authenticate the request and pass REMOTE_USER ('auth.require', "
	        "'ssl.verifyclient.username', or 'setenv.set-environment' in a token's block)"},
	    {"nginx",
	        "no user: nginx must authenticate the request ('auth_basic' with 'fastcgi_param "
	        "AUTH_TYPE Basic'), as without AUTH_TYPE its REMOTE_USER is whatever the request "
	        "says"},
	};

	for (size_t i = 0; i < NELEM(hints); i++)
		if (text_starts_fold(server_software, hints[i].server))
			return hints[i].hint;
	return "no user: the web server must authenticate the request and pass REMOTE_USER "
	       "(Apache: 'Require valid-user' with an AuthType, or 'Require env REMOTE_USER'; "
	       "lighttpd: 'auth.require' or 'setenv.set-environment'; nginx: 'auth_basic')";
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
