#include "conf/url.h"

#include <stdio.h>
#include <string.h>

static const struct rule {
	const char *schemes[7];
	bool credentials, query;
} rules[] = {
    [URL_BASE] = {.schemes = {"http", "https"}},
    [URL_CALL] = {.schemes = {"http", "https"}, .query = true},
    [URL_PROXY] = {.schemes = {"http", "https", "socks4", "socks4a", "socks5", "socks5h"},
        .credentials = true},
    [URL_REDIS] = {.schemes = {"redis", "rediss"}, .credentials = true},
};

static enum err
refuse(struct why *why, const char *what)
{
	err_why(why, "%s", what);
	return ERR_BAD_INPUT;
}

static bool
is_scheme(const struct rule *rule, struct span scheme)
{
	for (size_t i = 0; i < NELEM(rule->schemes) && rule->schemes[i] != NULL; i++)
		if (text_is(scheme, rule->schemes[i]))
			return true;
	return false;
}

static enum err
check_scheme(const struct rule *rule, struct span scheme, struct why *why)
{
	if (is_scheme(rule, scheme))
		return ERR_OK;
	err_why(why, "must begin with");
	for (size_t i = 0; i < NELEM(rule->schemes) && rule->schemes[i] != NULL; i++)
		snprintf(why->text + strlen(why->text), sizeof why->text - strlen(why->text),
		    "%s %s://", i == 0 ? "" : " or", rule->schemes[i]);
	return ERR_BAD_INPUT;
}

/* host or [v6], then maybe :port */
static enum err
check_host(struct span host, struct why *why)
{
	size_t end;
	int64_t port;

	if (host.n > 0 && host.p[0] == '[') {
		end = text_find(host, SPAN("]"));
		if (end == host.n || end < 3)
			return refuse(why, "has no ']' after its address");
		end++;
	} else {
		end = text_find(host, SPAN(":"));
	}
	if (end == 0)
		return refuse(why, "has no host");
	if (end < host.n &&
	    (host.p[end] != ':' || host.p[end + 1 < host.n ? end + 1 : end] == '-' ||
	        !text_i64(text_from(host, end + 1), 1, 65535, &port)))
		return refuse(why, "has a bad port");
	return ERR_OK;
}

static bool
has(struct span text, char c)
{
	return text_find(text, (struct span){&c, 1}) < text.n;
}

static enum err
check_bytes(const struct rule *rule, struct span url, struct why *why)
{
	for (size_t i = 0; i < url.n; i++)
		if ((unsigned char)url.p[i] <= 0x20 || url.p[i] == 0x7f)
			return refuse(why, "holds a blank or a control character");
	if (has(url, '#'))
		return refuse(why, "must not have a fragment ('#')");
	if (!rule->query && has(url, '?'))
		return refuse(why, "must not have a query ('?')");
	return ERR_OK;
}

enum err
url_check(struct span url, enum url_use use, struct why *why)
{
	const struct rule *rule = &rules[use];
	size_t colon = text_find(url, SPAN("://")), end = 0;
	struct span rest = text_from(url, colon + 3);

	if (check_scheme(rule, (struct span){url.p, colon}, why) != ERR_OK ||
	    check_bytes(rule, url, why) != ERR_OK)
		return ERR_BAD_INPUT;
	while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?')
		end++;
	rest.n = end;
	if (has(rest, '@') && !rule->credentials)
		return refuse(why, "must not hold credentials ('@')");
	while (has(rest, '@'))
		rest = text_from(rest, text_find(rest, SPAN("@")) + 1);
	return check_host(rest, why);
}

struct span
url_trim(struct span url)
{
	while (url.n > 0 && url.p[url.n - 1] == '/')
		url.n--;
	return url;
}
