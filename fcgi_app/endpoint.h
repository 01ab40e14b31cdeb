/*
 * endpoint - the one table of what is served where, for whom and by which methods.
 *
 * Source    SPEC.md section 4.1
 */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include "dialect/dialect.h"
#include "dialect/form.h"
#include "path.h"

enum endpoint_who { ENDPOINT_ANYONE, ENDPOINT_CLIENT, ENDPOINT_ADMIN };

enum endpoint_work {
	ENDPOINT_FORWARD, /* to an upstream, in the format of `dialect` */
	ENDPOINT_MODELS,  /* the list, or one of it */
	ENDPOINT_RECALL,  /* kept responses */
	ENDPOINT_HEALTHZ,
	ENDPOINT_STATUS,
	ENDPOINT_DOCTOR, /* for the operator's sluicectl, see doctor.h */
};

enum endpoint_method {
	ENDPOINT_GET = 1,
	ENDPOINT_POST = 2,
	ENDPOINT_DELETE = 4
}; /* HEAD goes with GET */

struct endpoint {
	const char *path;
	bool below;       /* serves paths below it, too: "/v1/models/" */
	unsigned methods; /* bits of enum endpoint_method */
	enum endpoint_who who;
	enum endpoint_work work;
	const struct dialect *dialect; /* of what is forwarded, and of error documents */
	enum form_wire wire;           /* of that */
	bool converts;                 /* channels of the other wires can serve it, too */
};

/* The row for a route, or NULL. */
const struct endpoint *endpoint_find(struct span path);
/* For path_find(). */
enum path_kind endpoint_known(struct span path);
/* "GET, HEAD" */
const char *endpoint_allow(const struct endpoint *endpoint);
bool endpoint_takes(const struct endpoint *endpoint, struct span method);

#endif
