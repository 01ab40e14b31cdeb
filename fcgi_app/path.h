/*
 * path - from the web server's variables to the one API path that decides access and route. Pure.
 *
 * Candidates, in this order: PATH_INFO, SCRIPT_NAME with PATH_INFO, the path of REQUEST_URI. The first that ends in a known
 * route counts. In a path with "/v1/" a route begins at one, the last that does. With a fixed mount instead: what is
 * behind the mount, whole; a program's own name at the end of SCRIPT_NAME is left out.
 * REQUEST_URI is raw: it is percent-decoded once, and never leads to an admin route. Where the server cut the path in two,
 * no admin route begins deeper than the cut: /llm/x/status is none, as rules for /llm/status do not see it.
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

/* The text of a 404. */
const char *path_hint(struct span path, path_known_fn *known);

/* Normalise in place of a copy; false when it must not match anything. */
bool path_normalise(struct span raw, bool decode, char out[PATH_MAX_BYTES]);

#endif
