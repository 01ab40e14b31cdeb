#include "reset.h"

#include "reset_head.h"
#include "reset_text.h"

#include <string.h>

#define END_MS INT64_C(253370764800000) /* 9999-01-01T00:00:00Z */

bool
reset_sensible(struct wall_ms at, struct wall_ms now)
{
	return at.v > now.v && at.v < END_MS;
}

static bool
is_limit(struct span name)
{
	if (text_starts(name, "anthropic-"))
		return text_ends(name, "-reset") || text_ends(name, "-remaining") ||
		       text_ends(name, "-status");
	if (text_starts(name, "x-codex-"))
		return text_ends(name, "-reset-after-seconds") || text_ends(name, "-used-percent");
	return text_starts(name, "retry-after") || text_starts(name, "x-ratelimit-re") ||
	       text_starts(name, "ratelimit-re");
}

/* The place for one more, or NULL. A limit pushes the last of the others out. */
static struct reset_header *
place_for(struct reset_headers *headers, bool limit)
{
	if (headers->n < RESET_HEADERS_MAX)
		return &headers->at[headers->n++];
	for (size_t i = headers->n; limit && i-- > 0;)
		if (!is_limit(text_span(headers->at[i].name)))
			return &headers->at[i];
	return NULL;
}

void
reset_keep(struct reset_headers *headers, struct span name, struct span value, struct wall_ms now)
{
	char low[sizeof headers->at[0].name] = "";
	struct reset_header *h;
	bool limit;

	if (name.n == 0 || name.n >= sizeof low)
		return;
	for (size_t i = 0; i < name.n; i++)
		low[i] = text_lower(name.p[i]);
	value = text_trim(value);
	if (text_is((struct span){low, name.n}, "date"))
		date_http(value, now, &headers->date);
	limit = is_limit((struct span){low, name.n});
	if (value.n >= sizeof h->value) {
		if (limit)
			return;
		value.n = text_cut(value, sizeof h->value - 1);
	}
	h = place_for(headers, limit);
	if (h == NULL)
		return;
	*h = (struct reset_header){0};
	memcpy(h->name, low, sizeof low);
	if (value.n > 0)
		memcpy(h->value, value.p, value.n);
}

struct span
reset_header(const struct reset_headers *headers, const char *name)
{
	for (size_t i = 0; i < headers->n; i++)
		if (strcmp(headers->at[i].name, name) == 0)
			return text_span(headers->at[i].value);
	return (struct span){0};
}

/* ------------------------------------------------------------------ fields of the error object */

/* A number or a text that reads like one, an ISO time, or a civil time in the channel's zone. */
static bool
field_value(const struct json *error, const char *path, const struct zone *zone, struct wall_ms now,
    struct wall_ms *out)
{
	struct span text;
	double v;

	if (json_text(error, path, &text))
		return reset_head_value(text, now, 0, out) || reset_text_civil(text, zone, out);
	if (!json_real(error, path, &v) || !(v > 0) || !(v < 1e15))
		return false;
	if (v > 1e12)
		out->v = (int64_t)v;
	else if (v > 1e9)
		out->v = (int64_t)(v * 1000);
	else
		out->v = now.v + (int64_t)(v * 1000 + 0.999);
	return true;
}

struct field {
	const char *path, *source;
};

static const struct field absolute_fields[] = {
    {"resets_at", "field:resets_at"},
    {"reset_at", "field:reset_at"},
    {"resetsAt", "field:resetsAt"},
    {"resetAt", "field:resetAt"},
    {"next_flush_time", "field:next_flush_time"},
};
static const struct field relative_fields[] = {
    {"resets_in_seconds", "field:resets_in_seconds"},
    {"retry_after_seconds", "field:retry_after_seconds"},
    {"retry_after", "field:retry_after"},
    {"retryAfter", "field:retryAfter"},
    {"wait_seconds", "field:wait_seconds"},
    {"metadata.retry_after_seconds", "field:retry_after_seconds"},
};

static struct reset_time
any_field(const struct json *error, const struct field *fields, size_t n, const struct zone *zone,
    struct wall_ms now)
{
	struct wall_ms at;

	for (size_t i = 0; i < n; i++)
		if (field_value(error, fields[i].path, zone, now, &at) && reset_sensible(at, now))
			return (struct reset_time){true, at, fields[i].source};
	return (struct reset_time){0};
}

/* The largest retryDelay among the details. */
static struct reset_time
retry_delay(const struct json *error, struct wall_ms now)
{
	const struct json *details = json_at(error, "details");
	struct reset_time best = {0};
	struct span text;
	int64_t ms;

	for (size_t i = 0; i < json_count(details) && i < 32; i++) {
		struct wall_ms at;

		if (!json_text(json_item(details, i), "retryDelay", &text) ||
		    !date_go_duration(text, &ms) || __builtin_add_overflow(now.v, ms, &at.v) ||
		    !reset_sensible(at, now))
			continue;
		if (!best.stated || at.v > best.at.v)
			best = (struct reset_time){true, at, "field:retryDelay"};
	}
	return best;
}

/* One host puts its own rate-limit headers into the body. */
static struct reset_time
inner_headers(const struct json *error, struct wall_ms now)
{
	static const char path[] = "metadata.headers.X-RateLimit-Reset";
	struct wall_ms at;
	int64_t left;

	if (json_i64(error, "metadata.headers.X-RateLimit-Remaining", &left) && left > 0)
		return (struct reset_time){0};
	if (!field_value(error, path, NULL, now, &at) || !reset_sensible(at, now))
		return (struct reset_time){0};
	return (struct reset_time){true, at, "field:X-RateLimit-Reset"};
}

/* Where money is concerned a point in time says more than a short wait, which proxies add on their own. */
static struct reset_time
in_body(enum reset_kind kind, const struct json *error, struct span text, const struct zone *zone,
    struct wall_ms now)
{
	struct reset_time absolute, wait, found;

	absolute = any_field(error, absolute_fields, NELEM(absolute_fields), zone, now);
	wait = retry_delay(error, now);
	if (kind == RESET_RATE && wait.stated)
		return wait;
	if (absolute.stated)
		return absolute;
	if (!wait.stated)
		wait = any_field(error, relative_fields, NELEM(relative_fields), zone, now);
	if (kind == RESET_RATE && wait.stated)
		return wait;
	found = reset_text_absolute(text, zone, now);
	if (found.stated)
		return found;
	if (wait.stated)
		return wait;
	found = reset_text_relative(text, now);
	return found.stated ? found : inner_headers(error, now);
}

struct reset_time
reset_find(enum reset_kind kind, const struct json *error, struct span text,
    const struct reset_headers *headers, const struct zone *zone, struct wall_ms now)
{
	struct reset_time found = in_body(kind, error, text, zone, now);

	if (found.stated || headers == NULL)
		return found;
	return reset_head_find(headers, now);
}
