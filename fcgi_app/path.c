#include "path.h"

#include <string.h>

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = text_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decode once. False for a broken escape, NUL, backslash or a path that is too long. */
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
		if (c == '\0' || c == '\\' || n + 2 > PATH_MAX_BYTES)
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

/* Where the last "/v1" segment begins that something follows, or NULL. */
static const char *
last_v1(const char *path)
{
	const char *found = NULL;

	for (const char *p = strstr(path, "/v1/"); p != NULL; p = strstr(p + 3, "/v1/"))
		found = p;
	return found;
}

/* The longest tail of `path`, cut at a segment, that is a known route. */
static enum path_kind
match_tail(const char *path, path_known_fn *known, bool raw, const char **route_out)
{
	const char *at = last_v1(path);

	if (at == NULL)
		at = path;
	for (; at != NULL; at = strchr(at + 1, '/')) {
		enum path_kind kind = known(text_span(at));

		if (kind == PATH_UNKNOWN || (raw && kind == PATH_ADMIN))
			continue;
		*route_out = at;
		return kind;
	}
	return PATH_UNKNOWN;
}

/* With a fixed mount: what is behind it, whole. */
static enum path_kind
match_mount(
    const char *path, struct span mount, path_known_fn *known, bool raw, const char **route_out)
{
	enum path_kind kind;

	while (mount.n > 0 && mount.p[mount.n - 1] == '/')
		mount.n--;
	if (strncmp(path, mount.p, mount.n) != 0 || path[mount.n] != '/')
		return PATH_UNKNOWN;
	path += mount.n;
	if (strncmp(path, "/v1/v1/", 7) == 0)
		path += 3;
	kind = known(text_span(path));
	if (raw && kind == PATH_ADMIN)
		return PATH_UNKNOWN;
	*route_out = path;
	return kind;
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
try_candidate(const struct path_vars *vars, struct span raw, bool decode, path_known_fn *known,
    char out[PATH_MAX_BYTES])
{
	char path[PATH_MAX_BYTES];
	const char *route = path;
	enum path_kind kind;

	if (raw.n == 0 || !path_normalise(raw, decode, path))
		return PATH_UNKNOWN;
	kind = vars->mount.n > 0 ? match_mount(path, vars->mount, known, decode, &route)
	                         : match_tail(path, known, decode, &route);
	if (kind != PATH_UNKNOWN || out[0] == '\0')
		memmove(out, route, strlen(route) + 1);
	return kind;
}

enum path_kind
path_find(const struct path_vars *vars, path_known_fn *known, char out[PATH_MAX_BYTES])
{
	char joined[2 * PATH_MAX_BYTES];
	struct span whole = {joined, 0};
	enum path_kind kind = PATH_UNKNOWN;

	out[0] = '\0';
	if (vars->script_name.n + vars->path_info.n < sizeof joined) {
		if (vars->script_name.n > 0)
			memcpy(joined, vars->script_name.p, vars->script_name.n);
		if (vars->path_info.n > 0)
			memcpy(joined + vars->script_name.n, vars->path_info.p, vars->path_info.n);
		whole.n = vars->script_name.n + vars->path_info.n;
	}
	if (vars->mount.n == 0)
		kind = try_candidate(vars, vars->path_info, false, known, out);
	if (kind == PATH_UNKNOWN)
		kind = try_candidate(vars, whole, false, known, out);
	if (kind == PATH_UNKNOWN)
		kind = try_candidate(vars, uri_path(vars->request_uri), true, known, out);
	return kind;
}
