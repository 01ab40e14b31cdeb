/*
 * access - who calls, and whether they may. Pure.
 *
 * Identity comes from variables that the web server sets, never from a header (HTTP_*). An empty variable is absent.
 *
 * Source    SPEC.md section 4.2
 */
#ifndef ACCESS_H
#define ACCESS_H

#include "conf/conf.h"
#include "exchange.h"

enum access_answer {
	ACCESS_OK,
	ACCESS_UNKNOWN, /* 401 */
	ACCESS_REFUSED, /* 403 */
	ACCESS_UNBUILT, /* auth.mode "keys" */
};

/* Who calls; `client_out` is empty in the open mode where the server names nobody. */
enum access_answer access_client(
    const struct conf *conf, const struct exchange *x, struct span *client_out);
/* May this client see admin paths? */
enum access_answer access_admin(const struct conf *conf, struct span client);
/* The text of a 401: names the directive that passes the user. */
const char *access_hint(void);
/* The Origin of this request, if the configuration allows it; else empty. */
struct span access_origin(const struct conf *conf, const struct exchange *x);

#endif
