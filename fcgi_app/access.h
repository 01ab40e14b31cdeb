/*
 * access - who calls, and whether they may. Pure.
 *
 * Identity comes from variables that the web server sets, never from one that a client chooses (conf/claim.h). An empty
 * variable is absent, the first other one counts. A name is never changed or cut, or two clients could become one: what
 * cannot be stored whole, or comes twice and differs, is refused.
 * A 401 carries no WWW-Authenticate: only the web server knows the scheme, and a browser would ask for a password in vain.
 *
 * Source    SPEC.md section 4.2
 */
#ifndef ACCESS_H
#define ACCESS_H

#include "conf/conf.h"
#include "exchange.h"

#define ACCESS_CLIENT_MAX 255 /* bytes; as the ledger keeps */

enum access_answer {
	ACCESS_OK,
	ACCESS_UNKNOWN, /* 401 */
	ACCESS_REFUSED, /* 403 */
	ACCESS_UNFIT,   /* 403: a name that could be taken for another */
	ACCESS_UNBUILT, /* auth.mode "keys" */
};

/* Who calls; `client_out` is empty in the open mode where the server names nobody, and where the name is unfit. */
enum access_answer access_client(
    const struct conf *conf, const struct exchange *x, struct span *client_out);
/* May this client see admin paths? */
enum access_answer access_admin(const struct conf *conf, struct span client);
/* The realm that the request is confined to: the web server's word, else the client's; empty = none was said. */
struct span access_realm(const struct exchange *x);
/* The text of a 401: names the directive that passes the user, for the server of SERVER_SOFTWARE. */
const char *access_hint(struct span server_software);
/* The Origin of this request, if the configuration allows it; else empty. */
struct span access_origin(const struct conf *conf, const struct exchange *x);

#endif
