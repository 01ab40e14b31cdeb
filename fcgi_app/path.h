/*
 * path - from the web server's variables to the one API path that decides access and route. Pure.
 *
 * Candidates, in this order: PATH_INFO, SCRIPT_NAME with PATH_INFO, the path of REQUEST_URI. With a fixed mount the part
 * behind it counts, else the first candidate that ends in a known route. Under /v1 a route begins at the last "/v1/".
 * REQUEST_URI is raw: it is percent-decoded once, and never leads to an admin route.
 *
 * Normalised: one slash between segments, no dot segments, no trailing slash; NUL, backslash and a path above the root
 * match nothing.
 *
 * Source    SPEC.md section 4.1; hosting.md 7; cases.md HDR-17
 */
#ifndef PATH_H
#define PATH_H

#include "base/text.h"

#define PATH_MAX_BYTES 1024

struct path_vars {
	struct span path_info, script_name, request_uri;
	struct span mount; /* "" = not fixed */
};

enum path_kind { PATH_UNKNOWN, PATH_CLIENT, PATH_ADMIN };
/* What the endpoint table says of a normalised path that begins at its route ("/v1/models/x", "/status"). */
typedef enum path_kind path_known_fn(struct span path);

/*
 * Write the route's path into `out` and give its kind. For PATH_UNKNOWN `out` holds what was looked at, for the message.
 */
enum path_kind path_find(
    const struct path_vars *vars, path_known_fn *known, char out[PATH_MAX_BYTES]);

/* Normalise in place of a copy; false when it must not match anything. */
bool path_normalise(struct span raw, bool decode, char out[PATH_MAX_BYTES]);

#endif
