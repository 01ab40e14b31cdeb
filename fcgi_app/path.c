#include "path.h"

#include <string.h>

#define JOINED_BYTES (2 * PATH_MAX_BYTES)

/* One way to see the path. */
struct candidate {
	struct span raw, mount;
	bool decode;    /* percent-decode it */
	size_t admin_n; /* an admin route begins in so many first bytes, 0 = there is none */
	path_known_fn *known;
};

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = text_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Percent-decode once. False for a broken escape, a backslash, a path that is too long, or a control character: a "." in a
 * web server's rule does not match a line's end, so that it would see another path than we do.
 */
static bool
decode_into(struct span raw, bool decode, char *out, size_t *n_out)
{
	size_t n = 0;

	for (size_t i = 0; i < raw.n; i++) {
		char c = raw.p[i];

		if (decode && c == '%') {
			if (i + 2 >= raw.n || hex(raw.p[i + 1]) < 0 || hex(raw.p[i + 2]) < 0)
				return false;
			c = (char)(hex(raw.p[i + 1]) * 16 + hex(raw.p[i + 2]));
			i += 2;
		}
		if ((unsigned char)c < ' ' || c == 0x7f || c == '\\' || n + 2 > PATH_MAX_BYTES)
			return false;
		out[n++] = c;
	}
	*n_out = n;
	return true;
}

bool
path_normalise(struct span raw, bool decode, char out[PATH_MAX_BYTES])
{
	char flat[PATH_MAX_BYTES];
	struct span rest, segment;
	size_t n = 0;

	out[0] = '\0';
	rest.p = flat;
	if (!decode_into(raw, decode, flat, &rest.n))
		return false;
	while (text_token(&rest, "/", &segment)) {
		if (text_is(segment, "."))
			continue;
		if (text_is(segment, "..")) {
			if (n == 0)
				return false;
			while (n > 0 && out[--n] != '/')
				continue;
			out[n] = '\0';
			continue;
		}
		out[n++] = '/';
		memcpy(out + n, segment.p, segment.n);
		n += segment.n;
		out[n] = '\0';
	}
	if (n == 0)
		memcpy(out, "/", 2);
	return true;
}

/* Where the last "/v1/" begins that begins before `end`, or NULL. */
static const char *
last_v1(const char *path, const char *end)
{
	const char *found = NULL;

	for (const char *p = strstr(path, "/v1/"); p != NULL && p < end; p = strstr(p + 3, "/v1/"))
		found = p;
	return found;
}

/* A route of clients may begin anywhere, one of admins only in the first admin_n bytes. */
static enum path_kind
match_at(const struct candidate *c, const char *path, const char *at)
{
	enum path_kind kind = c->known(text_span(at));

	return kind == PATH_ADMIN && (size_t)(at - path) >= c->admin_n ? PATH_UNKNOWN : kind;
}

/* The longest tail of `path`, cut at a segment, that is a known route; below a /v1/ only one that begins at a /v1/. */
static enum path_kind
match_tail(const struct candidate *c, const char *path, const char **route_out)
{
	const char *v1 = last_v1(path, path + strlen(path));
	const char *at = path;
	enum path_kind kind = match_at(c, path, path);

	if (v1 != NULL && kind != PATH_ADMIN) {
		for (at = v1; at != NULL; at = last_v1(path, at))
			if ((kind = match_at(c, path, at)) != PATH_UNKNOWN)
				break;
	} else if (v1 == NULL) {
		while (kind == PATH_UNKNOWN && (at = strchr(at + 1, '/')) != NULL)
			kind = match_at(c, path, at);
	}
	if (kind != PATH_UNKNOWN)
		*route_out = at;
	return kind;
}

/* With a fixed mount: what is behind it, whole. One that ends in /v1 is the API's own /v1, too. */
static enum path_kind
match_mount(const struct candidate *c, const char *path, const char **route_out)
{
	char mount[PATH_MAX_BYTES];
	size_t n;

	if (!path_normalise(c->mount, false, mount))
		return PATH_UNKNOWN;
	n = mount[1] == '\0' ? 0 : strlen(mount);
	if (strncmp(path, mount, n) != 0 || path[n] != '/')
		return PATH_UNKNOWN;
	path += n;
	if (n >= 3 && strcmp(mount + n - 3, "/v1") == 0 &&
	    match_at(c, path - 3, path - 3) == PATH_CLIENT) {
		*route_out = path - 3;
		return PATH_CLIENT;
	}
	while (strncmp(path, "/v1/v1/", 7) == 0)
		path += 3;
	*route_out = path;
	return match_at(c, path, path);
}

static struct span
uri_path(struct span uri)
{
	size_t end = text_find(uri, SPAN("?"));

	/* absolute form: only the path of it counts */
	if (text_starts_fold(uri, "http://") || text_starts_fold(uri, "https://")) {
		size_t slashes = text_find(uri, SPAN("//"));
		struct span host = text_from((struct span){uri.p, end}, slashes + 2);

		return text_from(host, text_find(host, SPAN("/")));
	}
	return (struct span){uri.p, end};
}

static enum path_kind
try_candidate(const struct candidate *c, char out[PATH_MAX_BYTES])
{
	char path[PATH_MAX_BYTES];
	const char *route = path;
	enum path_kind kind;

	if (c->raw.n == 0 || !path_normalise(c->raw, c->decode, path))
		return PATH_UNKNOWN;
	kind = c->mount.n > 0 ? match_mount(c, path, &route) : match_tail(c, path, &route);
	if (kind != PATH_UNKNOWN || out[0] == '\0')
		memmove(out, route, strlen(route) + 1);
	return kind;
}

/* Two variables as one; empty when they are too long. */
static struct span
join(char *dst, struct span a, struct span b)
{
	if (a.n + b.n > JOINED_BYTES)
		return (struct span){dst, 0};
	if (a.n > 0)
		memcpy(dst, a.p, a.n);
	if (b.n > 0)
		memcpy(dst + a.n, b.p, b.n);
	return (struct span){dst, a.n + b.n};
}

/* SCRIPT_NAME without the program's own name, which a rewrite put there; empty when it has none. */
static struct span
script_folder(struct span name)
{
	if (!text_ends(name, ".fcgi") && !text_ends(name, ".cgi"))
		return (struct span){"", 0};
	while (name.n > 0 && name.p[name.n - 1] != '/')
		name.n--;
	return name;
}

/* Where an admin route may begin in SCRIPT_NAME with PATH_INFO: where the server cut them, only before the cut. */
static size_t
whole_admin_n(const struct path_vars *vars)
{
	char script[PATH_MAX_BYTES];

	if (vars->path_info.n == 0 || vars->script_name.n == 0)
		return SIZE_MAX;
	return path_normalise(vars->script_name, false, script) ? strlen(script) : 0;
}

enum path_kind
path_find(const struct path_vars *vars, path_known_fn *known, char out[PATH_MAX_BYTES])
{
	char joined[JOINED_BYTES], beside[JOINED_BYTES];
	struct span folder = script_folder(vars->script_name);
	struct candidate tries[] = {
	    {.raw = vars->path_info, .admin_n = vars->script_name.n > 0 ? 1 : SIZE_MAX},
	    {.raw = join(joined, vars->script_name, vars->path_info),
	        .admin_n = whole_admin_n(vars)},
	    {.raw = uri_path(vars->request_uri), .decode = true},
	};
	enum path_kind kind = PATH_UNKNOWN;

	out[0] = '\0';
	if (vars->mount.n > 0)
		tries[0].raw = folder.n > 0 ? join(beside, folder, vars->path_info) : folder;
	for (size_t i = 0; i < NELEM(tries) && kind == PATH_UNKNOWN; i++) {
		tries[i].mount = vars->mount;
		tries[i].known = known;
		kind = try_candidate(&tries[i], out);
	}
	return kind;
}

const char *
path_hint(struct span path, path_known_fn *known)
{
	char full[JOINED_BYTES];

	for (size_t at = 0; at < path.n; at++) {
		struct span tail = text_from(path, at);

		if (tail.p[0] == '/' && known(join(full, SPAN("/v1"), tail)) == PATH_CLIENT)
			return "unknown path: it lacks /v1, which belongs at the end of the "
			       "client's base URL";
	}
	return "unknown path";
}
