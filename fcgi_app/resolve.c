#include "resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define ADDRESSES_MAX 8

/* host, or host:port, of a URL that the configuration has checked. */
static struct span
authority_of(struct span url)
{
	struct span rest = text_from(url, text_find(url, SPAN("://")) + 3);
	size_t at;

	rest.n = text_find(rest, SPAN("/"));
	rest.n = text_find(rest, SPAN("?"));
	while ((at = text_find(rest, SPAN("@"))) < rest.n)
		rest = text_from(rest, at + 1);
	return rest;
}

static struct span
default_port(struct span url, bool is_proxy)
{
	if (text_starts_fold(url, "https:"))
		return SPAN("443");
	return is_proxy ? SPAN("1080") : SPAN("80"); /* what libcurl takes */
}

static bool
add_address(struct buf *b, const struct addrinfo *info)
{
	char text[INET6_ADDRSTRLEN];

	switch (info->ai_family) {
	case AF_INET: {
		struct sockaddr_in in;

		memcpy(&in, info->ai_addr, sizeof in);
		if (inet_ntop(AF_INET, &in.sin_addr, text, sizeof text) == NULL)
			return false;
		buf_print(b, ",%s", text);
		return true;
	}
	case AF_INET6: {
		struct sockaddr_in6 in6;

		memcpy(&in6, info->ai_addr, sizeof in6);
		if (inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof text) == NULL)
			return false;
		buf_print(b, ",[%s]", text);
		return true;
	}
	default: return false;
	}
}

const char *
resolve_entry(struct arena *arena, struct span url, bool is_proxy)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	struct span host = authority_of(url), port = default_port(url, is_proxy);
	size_t colon = text_find(host, SPAN(":"));
	struct buf *b = arena_buf(arena, 4096);
	struct addrinfo *infos;
	unsigned n = 0;

	if (colon < host.n) {
		port = text_from(host, colon + 1);
		host.n = colon;
	}
	if (getaddrinfo(arena_z(arena, host), NULL, &hints, &infos) != 0)
		return NULL;
	for (const struct addrinfo *i = infos; i != NULL && n < ADDRESSES_MAX; i = i->ai_next)
		n += add_address(b, i);
	freeaddrinfo(infos);
	if (n == 0)
		return NULL;
	return arena_join(arena,
	    (struct span[]){SPAN("+"), host, SPAN(":"), port, SPAN(":"), text_from(buf_text(b), 1)},
	    6);
}
