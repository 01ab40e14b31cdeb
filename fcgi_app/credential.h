/*
 * credential - the key that a client presents, in all spellings of CGI. Pure.
 *
 * Apache hides Authorization from programs. What lets it through gives it different names: CGIPassAuth and SetEnvIf
 * HTTP_AUTHORIZATION, a rewrite that also changes the URL REDIRECT_HTTP_AUTHORIZATION, FcgidPassHeader Authorization.
 * The key goes nowhere but into a comparison: never into a log, an answer or a request to an upstream.
 *
 * Source    hosting.md 2; SPEC.md section 4.2; RFC 6750 section 2.1
 */
#ifndef CREDENTIAL_H
#define CREDENTIAL_H

#include "exchange.h"

#define CREDENTIAL_MAX 1024 /* bytes; a longer key is none */

/* Under which variables Authorization may come; the first that is set counts. NULL behind the last. */
extern const char *const credential_names[];

/* The Authorization header as it came, by the first name that has one; empty when the server passes none. */
struct span credential_authorization(const struct exchange *x);
/*
 * The key: of Authorization: Bearer, else x-api-key, else api-key; points into the variables. Empty when none is there,
 * and when the first that is there cannot be one key: blanks, commas (two headers made one), bytes outside of ASCII.
 */
struct span credential_key(const struct exchange *x);

#endif
