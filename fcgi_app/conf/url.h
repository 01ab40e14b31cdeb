/*
 * url - addresses in the configuration, checked as far as a mistake would send a key astray.
 */
#ifndef CONF_URL_H
#define CONF_URL_H

#include "base/err.h"
#include "base/text.h"

enum url_use {
	URL_BASE,  /* http, https; no credentials, query or fragment */
	URL_CALL,  /* http, https; a query may follow */
	URL_PROXY, /* http, https, socks4, socks4a, socks5, socks5h; credentials may stand in it */
	URL_REDIS, /* redis, rediss; credentials may stand in it */
};

enum err url_check(struct span url, enum url_use use, struct why *why) MUST_CHECK;
/* Without slashes at its end. */
struct span url_trim(struct span url);

#endif
