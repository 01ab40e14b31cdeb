#include "address.h"

#define DEPLOYMENTS "/deployments"
#define API_VERSION "api-version=2024-10-21" /* the newest that is no preview */

/* A segment of a path that leaves it nowhere. */
static struct span
segment(struct arena *arena, struct span name)
{
	static const char plain[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	struct buf *b = arena_buf(arena, name.n * 3 + 2);

	if (text_is(name, ".") || text_is(name, "..") || name.n == 0)
		return SPAN("_");
	for (size_t i = 0; i < name.n; i++) {
		struct span byte = {name.p + i, 1};

		if (text_find(SPAN(plain), byte) < sizeof plain - 1)
			buf_span(b, byte);
		else
			buf_print(b, "%%%02X", (unsigned)(unsigned char)name.p[i]);
	}
	return buf_text(b);
}

/* Those speak of no deployment. */
static bool
is_of_resource(struct span path)
{
	return text_is(path, "/models") || text_starts(path, "/responses");
}

/* The path of a URL without its host; empty for a bare one. */
static struct span
path_of(struct span url)
{
	struct span rest = text_from(url, text_find(url, SPAN("://")) + 3);

	return text_from(rest, text_find(rest, SPAN("/")));
}

static struct span
before(struct span text, struct span end)
{
	return (struct span){text.p, text_find(text, end)};
}

/* "https://host/openai/deployments/NAME" without what stands behind "/openai". */
static struct span
classic_root(struct span base)
{
	return before(base, SPAN(DEPLOYMENTS));
}

static char *
classic(
    struct arena *arena, struct span base, struct span query, struct span path, struct span model)
{
	struct span root = classic_root(base);
	struct span name = text_from(base, root.n + sizeof DEPLOYMENTS); /* with its slash */
	bool has_version = text_find(query, SPAN("api-version=")) < query.n;
	struct span parts[] = {
	    root,
	    text_ends(root, "/openai") ? SPAN("") : SPAN("/openai"),
	    is_of_resource(path) ? SPAN("") : SPAN(DEPLOYMENTS "/"),
	    is_of_resource(path) ? SPAN("")
	    : name.n > 0         ? name
	                         : segment(arena, model),
	    path,
	    SPAN("?"),
	    query,
	    has_version    ? SPAN("")
	    : query.n == 0 ? SPAN(API_VERSION)
	                   : SPAN("&" API_VERSION),
	};

	return arena_join(arena, parts, NELEM(parts));
}

static char *
azure(struct arena *arena, struct span url, struct span path, struct span model)
{
	struct span base = before(url, SPAN("?"));
	struct span query = text_from(url, base.n + 1);
	struct span own = path_of(base), root;

	while (text_ends(base, "/"))
		base.n--;
	if (text_find(own, SPAN(DEPLOYMENTS)) < own.n ||
	    (text_find(query, SPAN("api-version=")) < query.n && !text_ends(base, "/v1")))
		return classic(arena, base, query, path, model);
	root = own.n <= 1                   ? SPAN("/openai/v1")
	       : text_ends(base, "/openai") ? SPAN("/v1")
	                                    : SPAN("");
	return arena_join(
	    arena, (struct span[]){base, root, path, query.n > 0 ? SPAN("?") : SPAN(""), query}, 5);
}

char *
address_join(
    struct arena *arena, const struct conf_channel *channel, const char *path, struct span model)
{
	if (channel->provider->id == PROVIDER_AZURE)
		return azure(arena, channel->base_url, text_span(path), model);
	return arena_join(arena, (struct span[]){channel->base_url, text_span(path)}, 2);
}
