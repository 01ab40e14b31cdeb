#include "reset.h"

#include "reset_head.h"
#include "reset_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define NOW "2026-08-24T12:00:00Z"
#define HEADERS 8

static struct arena *arena;
static struct wall_ms now;

static int
setup(void **state)
{
	(void)state;
	arena = arena_new(4194304);
	assert_true(date_rfc3339(SPAN(NOW), &now));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static void
keep(struct reset_headers *headers, const char *line)
{
	struct span all = text_span(line);
	size_t colon = text_find(all, SPAN(":"));

	reset_keep(headers, (struct span){all.p, colon}, text_from(all, colon + 1), now);
}

struct row {
	const char *what;
	const char *want; /* "+1200" milliseconds from now, a time, or "" for not stated */
	const char *source;
	const char *headers[HEADERS];
	const char *error; /* JSON */
	const char *text;
	const char *zone;
	enum reset_kind kind;
};

static void
show(char out[DATE_TEXT], const struct reset_time *got, const char *want)
{
	out[0] = '\0';
	if (got->stated && want[0] == '+')
		snprintf(out, DATE_TEXT, "+%lld", (long long)(got->at.v - now.v));
	else if (got->stated)
		date_print(got->at, out);
}

static int
check(const struct row *row)
{
	struct reset_headers headers = {0};
	const struct zone *zone = NULL;
	const struct json *error = NULL;
	struct reset_time got;
	struct why why = {.text = ""};
	char text[DATE_TEXT];

	for (size_t i = 0; i < HEADERS && row->headers[i] != NULL; i++)
		keep(&headers, row->headers[i]);
	if (row->zone != NULL &&
	    zone_load(arena, text_span(row->zone), NULL, &zone, &why) != ERR_OK)
		fail_msg("%s: %s", row->what, why.text);
	if (row->error != NULL && json_parse(arena, text_span(row->error), &error, &why) != ERR_OK)
		fail_msg("%s: %s", row->what, why.text);
	got = reset_find(row->kind, error, text_span(row->text), &headers, zone, now);
	show(text, &got, row->want);
	if (strcmp(text, row->want) == 0 &&
	    (!got.stated || row->source == NULL || strcmp(got.source, row->source) == 0))
		return 0;
	print_error("%s: got '%s' from %s, want '%s' from %s\n", row->what, text,
	    got.stated ? got.source : "-", row->want,
	    row->source == NULL ? "anything" : row->source);
	return 1;
}

static int
check_all(const struct row *rows, size_t n)
{
	int bad = 0;

	for (size_t i = 0; i < n; i++)
		bad += check(&rows[i]);
	return bad;
}

static const struct row header_rows[] = {
    {"seconds", "+20000", .source = "retry-after", .headers = {"Retry-After: 20"}},
    {"fraction", "+1500", .source = "retry-after", .headers = {"Retry-After: 1.5"}},
    {"IMF date", "2026-08-24T12:10:00Z", .source = "retry-after",
        .headers = {"Retry-After: Mon, 24 Aug 2026 12:10:00 GMT"}},
    {"RFC 850 date", "2026-08-24T12:10:00Z", .source = "retry-after",
        .headers = {"Retry-After: Monday, 24-Aug-26 12:10:00 GMT"}},
    {"asctime", "2026-08-24T12:10:00Z", .source = "retry-after",
        .headers = {"Retry-After: Mon Aug 24 12:10:00 2026"}},
    {"repeated: the larger", "+30000", .source = "retry-after",
        .headers = {"Retry-After: 5", "Retry-After: 30", "Retry-After: 7"}},
    {"repeated, one is nonsense", "+5000", .source = "retry-after",
        .headers = {"Retry-After: x", "Retry-After: 5"}},
    {"milliseconds first", "+1200", .source = "retry-after-ms",
        .headers = {"retry-after: 20", "retry-after-ms: 1200"}},
    {"milliseconds with fraction", "+1251", .source = "retry-after-ms",
        .headers = {"retry-after-ms: 1250.5"}},
    {"no milliseconds are no statement", "+1000", .source = "retry-after",
        .headers = {"retry-after-ms: 0", "retry-after: 1"}},
    {"before the dimension", "+20000", .source = "retry-after",
        .headers = {"x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0",
            "retry-after: 20"}},
    {"the answer's clock is behind", "+60000", .source = "retry-after",
        .headers = {"Date: Mon, 24 Aug 2026 11:00:00 GMT",
            "Retry-After: Mon, 24 Aug 2026 11:01:00 GMT"}},
    {"the answer's clock is ahead", "+60000", .source = "retry-after",
        .headers = {"Date: Mon, 24 Aug 2026 15:00:00 GMT",
            "Retry-After: Mon, 24 Aug 2026 15:01:00 GMT"}},
    {"a little skew does not matter", "+60000", .source = "retry-after",
        .headers = {"Date: Mon, 24 Aug 2026 12:00:20 GMT",
            "Retry-After: Mon, 24 Aug 2026 12:01:00 GMT"}},
    {"skew does not touch a wait", "+20000", .source = "retry-after",
        .headers = {"Date: Mon, 24 Aug 2026 11:00:00 GMT", "Retry-After: 20"}},
    {"duration, empty", "+360000", .source = "x-ratelimit-reset",
        .headers = {"x-ratelimit-reset-requests: 6m0s", "x-ratelimit-remaining-requests: 0"}},
    {"duration, something left", "",
        .headers = {"x-ratelimit-reset-requests: 6m0s", "x-ratelimit-remaining-requests: 3"}},
    {"duration, nothing said", "+90000", .source = "x-ratelimit-reset",
        .headers = {"x-ratelimit-reset-requests: 90s"}},
    {"the empty dimension, not the other", "+1000", .source = "x-ratelimit-reset",
        .headers = {"x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-requests: 0",
            "x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 100"}},
    {"empty goes before unknown", "+1000", .source = "x-ratelimit-reset",
        .headers = {"x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-requests: 0",
            "x-ratelimit-reset-tokens: 6m0s"}},
    {"both empty: the later", "+360000", .source = "x-ratelimit-reset",
        .headers = {"x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-requests: 0",
            "x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0"}},
    {"bare seconds", "+59000", .source = "x-ratelimit-reset",
        .headers = {"x-ratelimit-reset-tokens: 59"}},
    {"epoch seconds", "2026-12-01T00:00:00Z", .source = "x-ratelimit-reset",
        .headers = {"X-RateLimit-Reset: 1796083200"}},
    {"epoch milliseconds", "2026-12-01T00:00:00Z", .source = "x-ratelimit-reset",
        .headers = {"X-RateLimit-Reset: 1796083200000", "X-RateLimit-Remaining: 0"}},
    {"RFC 3339", "2026-12-01T00:00:00Z", .source = "x-ratelimit-reset",
        .headers = {"x-ratelimit-reset: 2026-12-01T00:00:00Z"}},
    {"draft without x", "+50000", .source = "ratelimit-reset",
        .headers = {"RateLimit-Reset: 50", "RateLimit-Remaining: 0"}},
    {"anthropic, empty", "2026-08-24T12:40:59Z", .source = "anthropic-ratelimit-reset",
        .headers = {"anthropic-ratelimit-tokens-remaining: 0",
            "anthropic-ratelimit-tokens-reset: 2026-08-24T12:40:59Z",
            "anthropic-ratelimit-requests-remaining: 49",
            "anthropic-ratelimit-requests-reset: 2026-08-24T13:00:00Z"}},
    {"anthropic goes before x-ratelimit", "2026-08-24T12:40:59Z",
        .source = "anthropic-ratelimit-reset",
        .headers = {"x-ratelimit-reset-requests: 1s",
            "anthropic-ratelimit-tokens-reset: 2026-08-24T12:40:59Z"}},
    {"retry-after goes before anthropic", "+35000", .source = "retry-after",
        .headers = {"retry-after: 35", "anthropic-ratelimit-tokens-remaining: 0",
            "anthropic-ratelimit-tokens-reset: 2026-08-24T12:40:59Z"}},
    {"unified window", "2026-12-01T00:00:00Z", .source = "anthropic-ratelimit-unified-reset",
        .headers = {"anthropic-ratelimit-unified-status: rejected",
            "anthropic-ratelimit-unified-5h-status: rejected",
            "anthropic-ratelimit-unified-5h-reset: 1796083200"}},
    {"unified: the latest of the rejected", "2026-12-02T00:00:00Z",
        .source = "anthropic-ratelimit-unified-reset",
        .headers = {"anthropic-ratelimit-unified-5h-status: rejected",
            "anthropic-ratelimit-unified-5h-reset: 1796083200",
            "anthropic-ratelimit-unified-7d-status: rejected",
            "anthropic-ratelimit-unified-7d-reset: 1796169600"}},
    {"unified: an allowed window does not count", "2026-12-01T00:00:00Z",
        .source = "anthropic-ratelimit-unified-reset",
        .headers = {"anthropic-ratelimit-unified-5h-status: rejected",
            "anthropic-ratelimit-unified-5h-reset: 1796083200",
            "anthropic-ratelimit-unified-7d-status: allowed_warning",
            "anthropic-ratelimit-unified-7d-reset: 1796169600"}},
    {"unified: retry-after does not shorten it", "2026-12-01T00:00:00Z",
        .source = "anthropic-ratelimit-unified-reset",
        .headers = {"retry-after: 3", "anthropic-ratelimit-unified-5h-status: rejected",
            "anthropic-ratelimit-unified-5h-reset: 1796083200"}},
    {"unified without a window", "2026-12-01T00:00:00Z",
        .source = "anthropic-ratelimit-unified-reset",
        .headers = {"anthropic-ratelimit-unified-status: rejected",
            "anthropic-ratelimit-unified-reset: 1796083200"}},
    {"unified, nothing rejected", "",
        .headers = {"anthropic-ratelimit-unified-status: allowed",
            "anthropic-ratelimit-unified-reset: 1796083200"}},
    {"codex window at 100 %", "+7200000", .source = "x-codex-primary-reset-after-seconds",
        .headers = {"x-codex-primary-used-percent: 100",
            "x-codex-primary-reset-after-seconds: 7200", "x-codex-secondary-used-percent: 60",
            "x-codex-secondary-reset-after-seconds: 400000"}},
    {"codex window below", "",
        .headers = {"x-codex-primary-used-percent: 99",
            "x-codex-primary-reset-after-seconds: 7200"}},
    {"nothing", "", .headers = {"content-type: text/html"}},
};

static void
test_headers(void **state)
{
	(void)state;
	assert_int_equal(check_all(header_rows, NELEM(header_rows)), 0);
}

static const struct row nonsense_rows[] = {
    {"overflow", "", .headers = {"Retry-After: 99999999999999999999"}},
    {"negative", "", .headers = {"Retry-After: -5"}},
    {"exponent", "", .headers = {"Retry-After: 1e3"}},
    {"zero", "", .headers = {"Retry-After: 0"}},
    {"empty", "", .headers = {"Retry-After: "}},
    {"a word", "", .headers = {"Retry-After: soon"}},
    {"infinity", "", .headers = {"Retry-After: inf"}},
    {"not a number", "", .headers = {"Retry-After: nan"}},
    {"hexadecimal", "", .headers = {"Retry-After: 0x10"}},
    {"year 9999", "", .headers = {"x-ratelimit-reset: 9999-12-31T23:59:59Z"}},
    {"far but real", "2100-01-01T00:00:00Z", .source = "x-ratelimit-reset",
        .headers = {"x-ratelimit-reset: 4102444800000"}},
    {"past epoch", "", .headers = {"x-ratelimit-reset: 1500000000"}},
    {"past date", "", .headers = {"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"}},
    {"past RFC 3339", "", .headers = {"anthropic-ratelimit-tokens-reset: 2026-08-24T11:59:59Z"}},
    {"negative duration", "", .headers = {"x-ratelimit-reset-tokens: -1s"}},
    {"minus one", "",
        .headers = {"x-ratelimit-reset-tokens: -1", "x-ratelimit-remaining-tokens: -1"}},
    {"zero duration", "", .headers = {"x-ratelimit-reset-tokens: 0s"}},
    {"duration overflows", "", .headers = {"x-ratelimit-reset-tokens: 9999999999999h"}},
    {"nonsense falls through", "+7000", .source = "x-ratelimit-reset",
        .headers = {"Retry-After: -5", "x-ratelimit-reset-tokens: 7s"}},
    {"field overflows", "", .error = "{\"resets_at\":1e300}"},
    {"field is negative", "", .error = "{\"retry_after\":-3,\"resets_at\":-1}"},
    {"field is of another type", "", .error = "{\"retry_after\":[5],\"resets_at\":{\"a\":1}}"},
    {"field is true", "", .error = "{\"retry_after\":true}"},
    {"text in the past", "", .text = "will reset at 2026-08-24 11:00:00 UTC"},
    {"text, year 9999", "", .text = "will reset at 9999-12-31 00:00:00 UTC"},
    {"text, no such day", "", .text = "will reset at 2026-09-31 00:00:00 UTC"},
    {"text overflows", "", .text = "try again in 99999999999999999999s"},
    {"text overflows by unit", "", .text = "try again in 9999999999999 days"},
    {"text, zero", "", .text = "try again in 0s"},
    {"text, negative", "", .text = "try again in -5s"},
};

static void
test_nonsense(void **state)
{
	(void)state;
	assert_int_equal(check_all(nonsense_rows, NELEM(nonsense_rows)), 0);
}

#define SHANGHAI "Asia/Shanghai"

static const struct row text_rows[] = {
    {"English with zone", "2026-09-18T09:03:52Z", .source = "text:reset at",
        .text =
            "usage exceeds frequency limit, but don't worry, your usage will reset at 2026-09-18 17:03:52 "
            "UTC+8, alternatively, you can switch to the other models"},
    {"Chinese with zone", "2026-09-11T10:33:27Z", .source = "text:reset at",
        .text =
            "您的使用量已超出频率限制，将在 2026-09-11 18:33:27 UTC+8 重置，您也可以切换其他模型继续使用。"},
    {"the zone of the text wins", "2026-09-18T17:03:52Z", .source = "text:reset at",
        .text = "will reset at 2026-09-18 17:03:52 UTC", .zone = SHANGHAI},
    {"GMT", "2026-09-18T17:03:52Z", .text = "will reset at 2026-09-18 17:03:52 GMT.",
        .zone = SHANGHAI},
    {"Z", "2026-09-18T17:03:52Z", .text = "will reset at 2026-09-18T17:03:52Z", .zone = SHANGHAI},
    {"offset", "2026-09-18T15:03:52Z", .text = "resets 2026-09-18T17:03:52+02:00",
        .zone = SHANGHAI},
    {"zone in brackets", "2026-09-18T09:03:52Z",
        .text = "will reset at 2026-09-18 17:03:52 (UTC+08:00)"},
    {"west", "2026-09-18T20:33:52Z", .text = "will reset at 2026-09-18 17:03:52 UTC-3:30"},
    {"the channel's zone", "2026-08-24T23:41:44Z", .source = "text:reset at",
        .text = "已达到 5 小时的使用上限。您的限额将在 2026-08-25 07:41:44 重置。",
        .zone = SHANGHAI},
    {"English, the channel's zone", "2026-09-08T21:38:28Z",
        .text = "Usage limit reached for 5 hour. Your limit will reset at 2026-09-09 05:38:28",
        .zone = SHANGHAI},
    {"no zone at all is UTC", "2026-09-09T05:38:28Z",
        .text = "Your limit will reset at 2026-09-09 05:38:28"},
    {"gap: later", "2027-03-28T01:30:00Z", .text = "resets at 2027-03-28 02:30:00",
        .zone = "Europe/Berlin"},
    {"overlap: later", "2026-10-25T01:30:00Z", .text = "resets at 2026-10-25 02:30:00",
        .zone = "Europe/Berlin"},
    {"date at time", "2026-12-01T00:00:00Z",
        .text = "You will regain access on 2026-12-01 at 00:00 UTC."},
    {"date alone", "2026-12-01T00:00:00Z", .text = "You will regain access on 2026-12-01."},
    {"without seconds", "2026-12-01T08:30:00Z", .text = "available again at 2026-12-01 08:30 UTC"},
    {"fraction", "2026-12-01T08:30:00Z", .text = "until 2026-12-01T08:30:00.000Z"},
    {"a date that is none of ours", "", .text = "API version 2026-12-01-preview is limited"},
    {"the second date", "2026-08-24T15:00:00Z",
        .text =
            "Limit of the window from 2026-08-24 10:00:00 reached, resets at 2026-08-24 15:00:00 UTC"},
    {"after a bar", "2026-12-01T00:00:00Z", .source = "text:limit reached",
        .text = "Claude AI usage limit reached|1796083200"},
    {"Go duration", "+360000", .source = "text:try again in",
        .text = "Please try again in 6m0s. Visit"},
    {"fraction of seconds", "+1200", .text = "Please try again in 1.2s."},
    {"minutes and fraction", "+504500", .text = "try again in 8m24.5s"},
    {"milliseconds", "+20", .text = "try again in 20ms"},
    {"wrong plural", "+1000", .text = "please try again after 1 seconds"},
    {"days and hours", "+93600000", .text = "try again in 1d2h"},
    {"retry in", "+45570", .text = "Please retry in 45.57s."},
    {"retry after", "+20000", .text = "Please retry after 20 seconds."},
    {"wait", "+30000", .text = "Too many requests, please wait for about 30 seconds"},
    {"in words", "+90000", .text = "Try again in 1 minute and 30 seconds"},
    {"Chinese seconds", "+30000", .source = "text:后", .text = "请求过于频繁，请在 30 秒后重试"},
    {"Chinese minutes", "+300000", .source = "text:后", .text = "请5分钟之后再试"},
    {"no unit", "", .text = "please retry after 20"},
    {"other unit", "", .text = "try again in 3 months"},
    {"no wait", "", .text = "Limit 40,000 input tokens per minute, 20s average"},
    {"wait without a number", "", .text = "too many tokens, please wait"},
    {"the second wait", "+5000", .text = "try again in a while, or try again in 5s"},
    {"absolute goes before relative", "2026-12-01T00:00:00Z",
        .text = "try again in 5s; it resets at 2026-12-01 00:00:00 UTC"},
    {"text goes before headers", "+6000", .source = "text:try again in",
        .headers = {"retry-after-ms: 1", "retry-after: 9"}, .text = "try again in 6s"},
    {"nonsense in the text leaves the header", "+9000", .source = "retry-after",
        .headers = {"retry-after: 9"}, .text = "will reset at 2020-01-01 00:00:00 UTC"},
};

static void
test_texts(void **state)
{
	(void)state;
	assert_int_equal(check_all(text_rows, NELEM(text_rows)), 0);
}

static const struct row field_rows[] = {
    {"epoch", "2026-12-01T00:00:00Z", .source = "field:resets_at",
        .error = "{\"resets_at\":1796083200,\"resets_in_seconds\":5400}"},
    {"epoch in milliseconds", "2026-12-01T00:00:00Z", .error = "{\"reset_at\":1796083200000}"},
    {"epoch as text", "2026-12-01T00:00:00Z", .error = "{\"resetsAt\":\"1796083200\"}"},
    {"ISO", "2026-12-01T00:00:00Z", .error = "{\"resets_at\":\"2026-12-01T00:00:00Z\"}"},
    {"civil in the channel's zone", "2026-11-30T16:00:00Z", .source = "field:next_flush_time",
        .error = "{\"next_flush_time\":\"2026-12-01 00:00:00\"}", .zone = SHANGHAI},
    {"seconds", "+5400000", .source = "field:resets_in_seconds",
        .error = "{\"resets_in_seconds\":5400}"},
    {"fraction of seconds", "+2500", .source = "field:retry_after",
        .error = "{\"retry_after\":2.5}"},
    {"seconds as text", "+20000", .error = "{\"retry_after\":\"20\"}"},
    {"duration as text", "+20000", .error = "{\"retry_after\":\"20s\"}"},
    {"retryDelay", "+34000", .source = "field:retryDelay",
        .error = "{\"details\":[{\"@type\":\"x\"},{\"retryDelay\":\"34s\"}]}",
        .text = "Please retry in 45.57s."},
    {"fraction in retryDelay", "+34070", .error = "{\"details\":[{\"retryDelay\":\"34.07s\"}]}"},
    {"a past field leaves the next", "+5400000", .source = "field:resets_in_seconds",
        .error = "{\"resets_at\":1500000000,\"resets_in_seconds\":5400}"},
    {"headers inside the body", "2026-12-01T00:00:00Z", .source = "field:X-RateLimit-Reset",
        .error =
            "{\"metadata\":{\"headers\":{\"X-RateLimit-Remaining\":\"0\",\"X-RateLimit-Reset\":"
            "\"1796083200000\"}}}"},
    {"headers inside the body, something left", "",
        .error =
            "{\"metadata\":{\"headers\":{\"X-RateLimit-Remaining\":\"4\",\"X-RateLimit-Reset\":"
            "\"1796083200000\"}}}"},
    {"rate: the wait", "+5000", .error = "{\"retry_after\":5}",
        .text = "resets at 2026-12-01 00:00 UTC"},
    {"credit: the point in time", "2026-12-01T00:00:00Z", .error = "{\"retry_after\":5}",
        .text = "resets at 2026-12-01 00:00 UTC", .kind = RESET_CREDIT},
    {"credit: the wait if nothing else", "+5000", .error = "{\"retry_after\":5}",
        .kind = RESET_CREDIT},
    {"credit: retry-after if nothing else", "+3600000", .source = "retry-after",
        .headers = {"retry-after: 3600"}, .kind = RESET_CREDIT},
};

static void
test_fields(void **state)
{
	(void)state;
	assert_int_equal(check_all(field_rows, NELEM(field_rows)), 0);
}

static void
test_keep(void **state)
{
	struct reset_headers headers = {0};
	char long_value[400], name[80];

	(void)state;
	keep(&headers, "X-Request-Id:  abc ");
	assert_true(text_is(reset_header(&headers, "x-request-id"), "abc"));
	assert_int_equal(reset_header(&headers, "retry-after").n, 0);
	memset(long_value, 'a', sizeof long_value);
	reset_keep(&headers, SPAN("x-long"), (struct span){long_value, sizeof long_value}, now);
	assert_int_equal(reset_header(&headers, "x-long").n, sizeof headers.at[0].value - 1);
	memset(long_value, '9', sizeof long_value);
	reset_keep(
	    &headers, SPAN("retry-after"), (struct span){long_value, sizeof long_value}, now);
	assert_int_equal(reset_header(&headers, "retry-after").n, 0);
	memset(name, 'n', sizeof name);
	reset_keep(&headers, (struct span){name, sizeof name}, SPAN("v"), now);
	reset_keep(&headers, (struct span){name, 0}, SPAN("v"), now);
	assert_int_equal(headers.n, 2);
	/* full of others: a limit still finds its place, more others do not */
	for (int i = 0; i < 2 * RESET_HEADERS_MAX; i++)
		keep(&headers, i % 2 == 0 ? "x-a: 1" : "x-b: 2");
	assert_int_equal(headers.n, RESET_HEADERS_MAX);
	keep(&headers, "Retry-After: 7");
	keep(&headers, "x-ratelimit-remaining: 0");
	assert_int_equal(headers.n, RESET_HEADERS_MAX);
	assert_true(text_is(reset_header(&headers, "retry-after"), "7"));
	assert_true(text_is(reset_header(&headers, "x-ratelimit-remaining"), "0"));
	for (int i = 0; i < 2 * RESET_HEADERS_MAX; i++)
		keep(&headers, "Retry-After: 8");
	assert_int_equal(headers.n, RESET_HEADERS_MAX);
	keep(&headers, "Date: Mon, 24 Aug 2026 11:00:00 GMT");
	assert_int_equal(headers.date.v, now.v - 3600000);
}

static void
test_windows(void **state)
{
	struct reset_headers headers = {0};

	(void)state;
	assert_int_equal(reset_head_windows(&headers), 0);
	keep(&headers, "anthropic-ratelimit-unified-status: rejected");
	keep(&headers, "anthropic-ratelimit-unified-overage-status: rejected");
	assert_int_equal(reset_head_windows(&headers), 0);
	keep(&headers, "anthropic-ratelimit-unified-7d_opus-status: rejected");
	assert_int_equal(reset_head_windows(&headers), RESET_WINDOW_MODEL);
	keep(&headers, "anthropic-ratelimit-unified-7d-status: rejected");
	assert_int_equal(reset_head_windows(&headers), RESET_WINDOW_MODEL | RESET_WINDOW_ACCOUNT);
	assert_false(reset_head_tokens_only(&headers));
	keep(&headers, "anthropic-ratelimit-input-tokens-remaining: 0");
	assert_true(reset_head_tokens_only(&headers));
	keep(&headers, "anthropic-ratelimit-requests-remaining: 0");
	assert_false(reset_head_tokens_only(&headers));
}

/* Hostile texts cost time in proportion to their length, and nothing is read beyond them. */
static void
test_hostile(void **state)
{
	static const char *const seeds[] = {"1s", "try again in ", "2026-12-01 ", "1",
	    "again in 1d", "后", "UTC+", "2026-12-01T00:00:00.", "limit reached|"};
	char text[8192];

	(void)state;
	for (size_t i = 0; i < NELEM(seeds); i++) {
		size_t len = strlen(seeds[i]);

		for (size_t at = 0; at < sizeof text; at += len)
			memcpy(
			    text + at, seeds[i], at + len <= sizeof text ? len : sizeof text - at);
		for (size_t n = 0; n < 64; n++) {
			char *exact = malloc(n + 1);

			assert_non_null(exact);
			memcpy(exact, text, n);
			reset_find(RESET_RATE, NULL, (struct span){exact, n}, NULL, NULL, now);
			free(exact);
		}
		reset_find(RESET_RATE, NULL, (struct span){text, sizeof text}, NULL, NULL, now);
	}
}

static void
test_host_zone(void **state)
{
	static const char *const hosts[] = {"Asia/Tokyo", "America/New_York", "UTC"};

	for (size_t i = 0; i < NELEM(hosts); i++) {
		setenv("TZ", hosts[i], 1);
		tzset();
		test_headers(state);
		test_texts(state);
		test_fields(state);
	}
	unsetenv("TZ");
	tzset();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_headers),
	    cmocka_unit_test(test_nonsense),
	    cmocka_unit_test(test_texts),
	    cmocka_unit_test(test_fields),
	    cmocka_unit_test(test_keep),
	    cmocka_unit_test(test_windows),
	    cmocka_unit_test(test_hostile),
	    cmocka_unit_test(test_host_zone),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
