/*
 * claim - variables of a request whose value the client chooses: none of them says who he is. Pure.
 *
 * Source    RFC 3875 section 4.1; Apache's util_script.c: an internal redirect puts REDIRECT_ before each name
 */
#ifndef CONF_CLAIM_H
#define CONF_CLAIM_H

#include "base/text.h"

/* A header (HTTP_*), a part of the request line or of the body's description, also after REDIRECT_. */
bool claim_is_clients(struct span name);

#endif
