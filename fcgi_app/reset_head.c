#include "reset_head.h"

#include <stdio.h>
#include <string.h>

#define SKEW_MS 30000 /* below it the clocks agree */
#define EPOCH_MS_MIN INT64_C(1000000000000)
#define EPOCH_S_MIN INT64_C(1000000000)
#define UNIFIED "anthropic-ratelimit-unified-"

/* Digits with an optional fraction, in thousandths, rounded up; no sign, no exponent. */
static bool
thousandths(struct span s, int64_t *out)
{
	size_t dot = text_find(s, SPAN("."));
	struct span whole = {s.p, dot}, fraction = text_from(s, dot + 1);
	int64_t v, part = 0;

	if (whole.n == 0 || whole.n > 15 || !text_i64(whole, 0, INT64_C(999999999999999), &v))
		return false;
	if (dot < s.n) {
		size_t used = fraction.n > 6 ? 6 : fraction.n;

		for (size_t i = 0; i < fraction.n; i++)
			if (fraction.p[i] < '0' || fraction.p[i] > '9')
				return false;
		if (used > 0 && !text_i64((struct span){fraction.p, used}, 0, 999999, &part))
			return false;
		for (; used < 6; used++)
			part *= 10;
	}
	*out = v * 1000 + (part + 999) / 1000;
	return true;
}

bool
reset_head_value(struct span value, struct wall_ms now, int64_t skew_ms, struct wall_ms *out)
{
	struct wall_ms t;
	int64_t v;

	value = text_trim(value);
	if (thousandths(value, &v)) {
		if (v / 1000 > EPOCH_MS_MIN)
			t.v = v / 1000 - skew_ms;
		else if (v / 1000 > EPOCH_S_MIN)
			t.v = v - skew_ms;
		else
			t.v = now.v + v;
	} else if (date_go_duration(value, &v)) {
		if (__builtin_add_overflow(now.v, v, &t.v))
			return false;
	} else if (date_rfc3339(value, &t) || date_http(value, now, &t)) {
		t.v -= skew_ms;
	} else {
		return false;
	}
	*out = t;
	return true;
}

static int64_t
skew_of(const struct reset_headers *headers, struct wall_ms now)
{
	int64_t skew = headers->date.v - now.v;

	if (headers->date.v == 0 || (skew <= SKEW_MS && skew >= -SKEW_MS))
		return 0;
	return skew;
}

/* The later of the two, if it makes sense. */
static void
offer(struct reset_time *best, struct wall_ms at, const char *source, struct wall_ms now)
{
	if (reset_sensible(at, now) && (!best->stated || at.v > best->at.v))
		*best = (struct reset_time){true, at, source};
}

static struct reset_time
retry_after(const struct reset_headers *headers, struct wall_ms now)
{
	struct reset_time millis = {0}, seconds = {0};
	struct wall_ms at;
	int64_t v;

	for (size_t i = 0; i < headers->n; i++) {
		struct span name = text_span(headers->at[i].name);
		struct span value = text_span(headers->at[i].value);

		if (text_is(name, "retry-after-ms")) {
			if (thousandths(value, &v))
				offer(&millis, (struct wall_ms){now.v + (v + 999) / 1000},
				    "retry-after-ms", now);
		} else if (text_is(name, "retry-after")) {
			if (thousandths(value, &v))
				offer(&seconds, (struct wall_ms){now.v + v}, "retry-after", now);
			else if (date_http(value, now, &at))
				offer(&seconds, (struct wall_ms){at.v - skew_of(headers, now)},
				    "retry-after", now);
		}
	}
	return millis.stated ? millis : seconds;
}

/* The window of "<UNIFIED><window>-status: rejected", empty if this header is none. */
static struct span
rejected_window(const struct reset_header *header)
{
	struct span name = text_span(header->name), none = {0};
	size_t around = strlen(UNIFIED) + strlen("-status");

	if (name.n <= around || !text_starts(name, UNIFIED) || !text_ends(name, "-status") ||
	    !text_is_fold(text_span(header->value), "rejected"))
		return none;
	name = (struct span){name.p + strlen(UNIFIED), name.n - around};
	return text_is(name, "overage") ? none : name;
}

unsigned
reset_head_windows(const struct reset_headers *headers)
{
	unsigned windows = 0;

	for (size_t i = 0; i < headers->n; i++) {
		struct span window = rejected_window(&headers->at[i]);

		if (text_is(window, "5h") || text_is(window, "7d"))
			windows |= RESET_WINDOW_ACCOUNT;
		else if (window.n > 0)
			windows |= RESET_WINDOW_MODEL;
	}
	return windows;
}

static struct reset_time
unified(const struct reset_headers *headers, struct wall_ms now)
{
	struct reset_time best = {0};
	int64_t skew = skew_of(headers, now);
	char name[sizeof headers->at[0].name + 8];
	struct wall_ms at;

	for (size_t i = 0; i < headers->n; i++) {
		struct span window = rejected_window(&headers->at[i]);

		snprintf(name, sizeof name, UNIFIED "%.*s-reset", (int)window.n,
		    window.n > 0 ? window.p : "");
		if (window.n > 0 && reset_head_value(reset_header(headers, name), now, skew, &at))
			offer(&best, at, "anthropic-ratelimit-unified-reset", now);
	}
	if (!best.stated && text_is_fold(reset_header(headers, UNIFIED "status"), "rejected") &&
	    reset_head_value(reset_header(headers, UNIFIED "reset"), now, skew, &at))
		offer(&best, at, "anthropic-ratelimit-unified-reset", now);
	return best;
}

enum left { LEFT_NONE, LEFT_UNKNOWN, LEFT_SOME };

/* What remains of the dimension whose reset header is `name`: its twin says "remaining" in place of "reset". */
static enum left
left_of(const struct reset_headers *headers, const char *name)
{
	char twin[sizeof headers->at[0].name + 8];
	const char *at = strstr(name, "reset");
	int64_t v;

	if (at == NULL)
		return LEFT_UNKNOWN;
	snprintf(
	    twin, sizeof twin, "%.*sremaining%s", (int)(at - name), name, at + strlen("reset"));
	if (!thousandths(reset_header(headers, twin), &v))
		return LEFT_UNKNOWN;
	return v == 0 ? LEFT_NONE : LEFT_SOME;
}

/* The latest reset among the dimensions of a family; empty ones go before those of which nothing is known. */
static struct reset_time
dimensions(
    const struct reset_headers *headers, const char *prefix, const char *source, struct wall_ms now)
{
	struct reset_time empty = {0}, unknown = {0};
	struct wall_ms at;

	for (size_t i = 0; i < headers->n; i++) {
		const struct reset_header *h = &headers->at[i];
		enum left left;

		if (!text_starts(text_span(h->name), prefix) || strstr(h->name, "reset") == NULL ||
		    text_starts(text_span(h->name), UNIFIED))
			continue;
		left = left_of(headers, h->name);
		if (left == LEFT_SOME ||
		    !reset_head_value(text_span(h->value), now, skew_of(headers, now), &at))
			continue;
		offer(left == LEFT_NONE ? &empty : &unknown, at, source, now);
	}
	return empty.stated ? empty : unknown;
}

bool
reset_head_tokens_only(const struct reset_headers *headers)
{
	static const char *const tokens[] = {"anthropic-ratelimit-tokens-reset",
	    "anthropic-ratelimit-input-tokens-reset", "anthropic-ratelimit-output-tokens-reset"};

	if (left_of(headers, "anthropic-ratelimit-requests-reset") == LEFT_NONE)
		return false;
	for (size_t i = 0; i < NELEM(tokens); i++)
		if (left_of(headers, tokens[i]) == LEFT_NONE)
			return true;
	return false;
}

/* Windows of a subscription that are used up. */
static struct reset_time
codex(const struct reset_headers *headers, struct wall_ms now)
{
	static const struct {
		const char *used, *reset;
	} windows[] = {
	    {"x-codex-primary-used-percent", "x-codex-primary-reset-after-seconds"},
	    {"x-codex-secondary-used-percent", "x-codex-secondary-reset-after-seconds"},
	};
	struct reset_time best = {0};
	int64_t used, after;

	for (size_t i = 0; i < NELEM(windows); i++)
		if (thousandths(reset_header(headers, windows[i].used), &used) && used >= 100000 &&
		    thousandths(reset_header(headers, windows[i].reset), &after))
			offer(&best, (struct wall_ms){now.v + after}, windows[i].reset, now);
	return best;
}

struct reset_time
reset_head_find(const struct reset_headers *headers, struct wall_ms now)
{
	struct reset_time best = retry_after(headers, now), window = unified(headers, now);

	if (window.stated && (!best.stated || window.at.v > best.at.v))
		return window;
	if (!best.stated)
		best = dimensions(headers, "anthropic-", "anthropic-ratelimit-reset", now);
	if (!best.stated)
		best = codex(headers, now);
	if (!best.stated)
		best = dimensions(headers, "x-ratelimit-reset", "x-ratelimit-reset", now);
	if (!best.stated)
		best = dimensions(headers, "ratelimit-reset", "ratelimit-reset", now);
	return best;
}
