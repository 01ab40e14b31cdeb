/*
 * reset - the time an upstream states for "try again", from headers, body fields and texts.
 *
 * Order of trust: body fields and text, retry-after-ms, Retry-After, anthropic-ratelimit-*-reset, x-ratelimit-reset-*.
 * Nonsense (negative, overflow, past, year 9999) is "not stated". Independent of the host's zone and locale.
 *
 * Source    SPEC.md section 6; formats.md A.7, C.9, F.13, F.14; cases.md COOL-01, COOL-06
 */
#ifndef RESET_H
#define RESET_H

#include "base/json.h"
#include "base/zone.h"

/*
 * The headers of an answer, gathered by the header callback of the final block. Those that tell of limits come first:
 * when there is no room left they replace the others, which are kept for the channel's own rules. A value is cut at its
 * end, but a limit's value that does not fit is dropped.
 */
#define RESET_HEADERS_MAX 40
struct reset_header {
	char name[64]; /* lower case */
	char value[96];
};
struct reset_headers {
	size_t n;
	struct reset_header at[RESET_HEADERS_MAX];
	struct wall_ms date; /* the answer's Date, 0 = none */
};

/* Keep this header if there is room for it; see above. `now` only reads two-digit years. */
void reset_keep(
    struct reset_headers *headers, struct span name, struct span value, struct wall_ms now);
/* The value of a kept header (the first of that name), or an empty span. */
struct span reset_header(const struct reset_headers *headers, const char *name);

struct reset_time {
	bool stated;
	struct wall_ms at;
	const char *source; /* static: "retry-after", "text:reset at", "field:resets_at" ... */
};

enum reset_kind { RESET_RATE, RESET_CREDIT };

/*
 * `error` is the located error object (may be NULL), `text` the message(s) joined, `zone` the channel's for times
 * without one. Times in `headers` count from now, or from the answer's Date where the two differ by over 30 s.
 */
struct reset_time reset_find(enum reset_kind kind, const struct json *error, struct span text,
    const struct reset_headers *headers, const struct zone *zone, struct wall_ms now);

/* Lies ahead, and before the year 9999: anything else an upstream states is nonsense. */
bool reset_sensible(struct wall_ms at, struct wall_ms now);

#endif
