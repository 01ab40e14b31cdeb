#include "dialect/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "lib/sample.h"

#define LIMIT (1 << 20)

/* One event a line: name, data, flags (d data, c only comments) and the length of its raw bytes. */
static void
show(struct buf *out, const struct sse_event *e)
{
	buf_print(out, "%.*s|", (int)e->name.n, e->name.n > 0 ? e->name.p : "");
	buf_span(out, e->data);
	buf_print(out, "|%s%s%zu\n", e->has_data ? "d" : "", e->comment ? "c" : "", e->raw.n);
}

static void
take_all(struct sse *s, struct buf *shown, struct buf *raw)
{
	struct sse_event e;

	while (sse_next(s, &e)) {
		show(shown, &e);
		buf_span(raw, e.raw);
	}
}

static void
finish(struct sse *s, struct buf *shown, struct buf *raw)
{
	struct sse_event e;

	while (sse_last(s, &e)) {
		show(shown, &e);
		buf_span(raw, e.raw);
	}
}

/* Feed `stream` in pieces that begin where `cut` says, and compare with what is wanted. */
static void
run(const char *what, struct span stream, size_t cut, size_t step, struct span want)
{
	struct buf shown, raw;
	struct sse s;
	size_t at = 0;

	sse_init(&s, LIMIT);
	buf_init(&shown, LIMIT);
	buf_init(&raw, LIMIT);
	while (at < stream.n) {
		size_t n = at < cut ? cut - at : step;

		n = n > stream.n - at ? stream.n - at : n;
		assert_int_equal(sse_feed(&s, (struct span){stream.p + at, n}, NULL), ERR_OK);
		take_all(&s, &shown, &raw);
		assert_int_equal(raw.n + sse_rest(&s).n, at + n);
		at += n;
	}
	finish(&s, &shown, &raw);
	if (!text_equal(buf_text(&shown), want))
		fail_msg("%s, cut at %zu, then by %zu: got\n%.*s\nwant\n%.*s", what, cut, step,
		    (int)shown.n, shown.p == NULL ? "" : shown.p, (int)want.n, want.p);
	if (!text_equal(buf_text(&raw), stream))
		fail_msg("%s, cut at %zu, then by %zu: raw bytes differ", what, cut, step);
	sse_release(&s);
	buf_release(&shown);
	buf_release(&raw);
}

static void
run_all_cuts(const char *what, struct span stream, struct span want)
{
	run(what, stream, 0, stream.n + 1, want);
	run(what, stream, 0, 1, want);
	run(what, stream, 0, 2, want);
	for (size_t cut = 1; cut < stream.n; cut++)
		run(what, stream, cut, stream.n, want);
}

static const struct {
	const char *what, *stream, *want;
} cases[] = {
    {"LF", "data: a\n\ndata: b\n\n", "|a|d9\n|b|d9\n"},
    {"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", "|a|d11\n|b|d11\n"},
    {"CR", "data: a\r\rdata: b\r\r", "|a|d9\n|b|d9\n"},
    {"LF lines, empty line CRLF", "data: a\n\r\ndata: b\n\r\n", "|a|d10\n|b|d10\n"},
    {"CR line, empty line CRLF: the LF opens what follows", "data: a\r\r\ndata: b\r\r\n",
        "|a|d9\n|b|d10\n||c1\n"},
    {"CRLF line, empty line CR", "data: a\r\n\rdata: b\r\n\r", "|a|d10\n|b|d10\n"},
    {"LF line, empty line CR", "data: a\n\rdata: b\n\n", "|a|d9\n|b|d9\n"},
    {"CR between lines of one event", "event: x\rdata: a\r\r", "x|a|d18\n"},
    {"no blank after the colon", "data:a\n\ndata:[DONE]\n\nevent:error\ndata:b\n\n",
        "|a|d8\n|[DONE]|d13\nerror|b|d20\n"},
    {"one blank goes, more belong to the value", "data:   a \n\n", "|  a |d12\n"},
    {"a tab is no blank", "data:\ta\n\n", "|\ta|d9\n"},
    {"several data lines", "data: a\ndata: b\ndata:\ndata: c\n\n", "|a\nb\n\nc|d31\n"},
    {"two joined events", "data: a\ndata: b\n\ndata: c\ndata: d\n\n", "|a\nb|d17\n|c\nd|d17\n"},
    {"only empty data lines", "data:\ndata\n\n", "|\n|d12\n"},
    {"data without colon", "data\n\n", "||d6\n"},
    {"a comment is no data", ": keep-alive\n\n: PROCESSING\n\ndata: a\n\n",
        "||c14\n||c14\n|a|d9\n"},
    {"comment inside an event", ": x\ndata: a\n: y\n\n", "|a|d17\n"},
    {"stray empty lines", "\n\n\ndata: a\n\n\n", "||c1\n||c1\n||c1\n|a|d9\n||c1\n"},
    {"stray CRLF", "\r\n\r\ndata: a\r\n\r\n", "||c2\n||c2\n|a|d11\n"},
    {"BOM",
        "\xef\xbb\xbf"
        "data: a\n\ndata: b\n\n",
        "|a|d12\n|b|d9\n"},
    {"BOM and CRLF",
        "\xef\xbb\xbf"
        "data: a\r\n\r\n",
        "|a|d14\n"},
    {"BOM alone on a line", "\xef\xbb\xbf\ndata: a\n\n", "||c4\n|a|d9\n"},
    {"a BOM later is text",
        "data: a\n\n\xef\xbb\xbf"
        "data: b\n\n",
        "|a|d9\n||12\n"},
    {"two BOMs: the second is text",
        "\xef\xbb\xbf\xef\xbb\xbf"
        "data: b\n\n",
        "||15\n"},
    {"unknown fields", "id: 7\nretry: 10\nfoo: x\ndatax: y\n\n", "||33\n"},
    {"field names have case", "Data: a\nEVENT: b\n\n", "||18\n"},
    {"last event name counts", "event: a\nevent: b\ndata: c\n\n", "b|c|d27\n"},
    {"name alone", "event: ping\n\n", "ping||13\n"},
    {"UTF-8 cut anywhere", "data: 修复🌟é\n\ndata: \\u4f60\n\n", "|修复🌟é|d20\n|\\u4f60|d14\n"},
    {"colons in the value", "data: {\"a\":\"b:c\"}\n\n", "|{\"a\":\"b:c\"}|d19\n"},
    {"last event without empty line", "data: a\n\ndata: b\n", "|a|d9\n|b|d8\n"},
    {"last event without any line end", "data: a\n\ndata: b", "|a|d9\n|b|d7\n"},
    {"last event ends in CR", "data: a\r\n\r\ndata: b\r", "|a|d11\n|b|d8\n"},
    {"last empty line ends in CR", "data: a\r\n\r", "|a|d10\n"},
    {"a body that is no stream", "{\"error\":{\"message\":\"no\"}}", "||26\n"},
    {"nothing", "", ""},
};

static void
test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++)
		run_all_cuts(cases[i].what, text_span(cases[i].stream), text_span(cases[i].want));
}

static void
test_nul(void **state)
{
	struct span stream = SPAN("data: a\0b\n\n\0\n\n");
	struct span want = SPAN("|a\0b|d11\n||3\n");

	(void)state;
	run_all_cuts("NUL bytes", stream, want);
}

static const char *const samples[] = {
    "streams/openai/chat-stream.resp.sse",
    "streams/azure/chat-stream.resp.sse",
    "streams/kimi/groq-stream.resp.sse",
    "streams/deepseek/chat-stream.resp.sse",
    "streams/openrouter/chat-stream-comments.resp.sse",
};

/* Every line end written as `eol`. */
static void
with_eol(struct buf *out, struct span stream, const char *eol)
{
	for (size_t i = 0; i < stream.n; i++) {
		if (stream.p[i] == '\n')
			buf_z(out, eol);
		else
			buf_char(out, stream.p[i]);
	}
}

static void
run_sample(const char *name, struct span stream)
{
	struct buf shown, raw;
	struct sse s;

	sse_init(&s, LIMIT);
	buf_init(&shown, LIMIT);
	buf_init(&raw, LIMIT);
	assert_int_equal(sse_feed(&s, stream, NULL), ERR_OK);
	take_all(&s, &shown, &raw);
	finish(&s, &shown, &raw);
	assert_true(text_find(buf_text(&shown), SPAN("|[DONE]|d")) < shown.n);
	for (size_t step = 1; step < 8; step++)
		run(name, stream, 0, step, buf_text(&shown));
	for (size_t cut = 1; cut < stream.n; cut += 1 + stream.n / 512)
		run(name, stream, cut, stream.n, buf_text(&shown));
	sse_release(&s);
	buf_release(&shown);
	buf_release(&raw);
}

static void
test_samples(void **state)
{
	static const char *const eols[] = {"\n", "\r\n", "\r"};

	(void)state;
	for (size_t i = 0; i < NELEM(samples); i++) {
		struct buf sample = sample_read(samples[i]);

		for (size_t j = 0; j < NELEM(eols); j++) {
			struct buf stream;

			buf_init(&stream, LIMIT);
			with_eol(&stream, buf_text(&sample), eols[j]);
			run_sample(samples[i], buf_text(&stream));
			buf_release(&stream);
		}
		buf_release(&sample);
	}
}

/* An event of CR lines is out with its last byte: nothing waits for a byte that may never come. */
static void
test_cr_at_once(void **state)
{
	struct sse_event e;
	struct sse s;

	(void)state;
	sse_init(&s, LIMIT);
	assert_int_equal(sse_feed(&s, SPAN("data: a\r\r"), NULL), ERR_OK);
	assert_true(sse_next(&s, &e));
	assert_int_equal(sse_feed(&s, SPAN("data: b\r\n\r"), NULL), ERR_OK);
	assert_false(sse_next(&s, &e));
	assert_int_equal(sse_feed(&s, SPAN("\n"), NULL), ERR_OK);
	assert_true(sse_next(&s, &e));
	assert_int_equal(e.raw.n, 11);
	assert_int_equal(sse_rest(&s).n, 0);
	sse_release(&s);
}

static size_t
count_until_error(struct span stream, size_t step, size_t max, enum err *err_out)
{
	struct sse_event e;
	struct sse s;
	size_t n = 0;

	sse_init(&s, max);
	*err_out = ERR_OK;
	for (size_t at = 0; at < stream.n && *err_out == ERR_OK; at += step) {
		size_t left = stream.n - at;

		*err_out =
		    sse_feed(&s, (struct span){stream.p + at, left < step ? left : step}, NULL);
		while (sse_next(&s, &e))
			n++;
	}
	if (*err_out == ERR_OK)
		*err_out = sse_feed(&s, (struct span){0}, NULL);
	assert_true(*err_out == ERR_OK || !sse_last(&s, &e));
	sse_release(&s);
	return n;
}

static void
test_limit(void **state)
{
	static const struct {
		const char *what, *stream;
		size_t max, events;
		enum err err;
	} rows[] = {
	    {"exactly the maximum", "data: abc\n\n", 11, 1, ERR_OK},
	    {"one byte more", "data: abcd\n\n", 11, 0, ERR_TOO_BIG},
	    {"without an end", "data: aaaaaaaaaaaaaaaaaaaaaaa", 11, 0, ERR_TOO_BIG},
	    {"many small ones", "data: a\n\ndata: b\n\ndata: c\n\n", 11, 3, ERR_OK},
	    {"the second", "data: a\n\ndata: bbbbbbbbb\n\ndata: c\n\n", 11, 1, ERR_TOO_BIG},
	    {"of several lines", "data: a\ndata: b\n\n", 11, 0, ERR_TOO_BIG},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		for (size_t step = 1; step < 64; step++) {
			enum err err;
			size_t n =
			    count_until_error(text_span(rows[i].stream), step, rows[i].max, &err);

			if (err != rows[i].err || n != rows[i].events)
				fail_msg("%s, by %zu: got %zu events, err %d; want %zu, %d",
				    rows[i].what, step, n, (int)err, rows[i].events,
				    (int)rows[i].err);
		}
	}
}

static void
test_clear(void **state)
{
	struct sse_event e;
	struct why why = {.text = ""};
	struct sse s;

	(void)state;
	sse_init(&s, 16);
	assert_int_equal(sse_feed(&s, SPAN("data: aaaaaaaaaaaaaaaaaaaaa"), &why), ERR_TOO_BIG);
	assert_non_null(strstr(why.text, "16 bytes"));
	sse_clear(&s);
	assert_int_equal(sse_feed(&s,
	                     SPAN("\xef\xbb\xbf"
	                          "data: a\n\n"),
	                     &why),
	    ERR_OK);
	assert_true(sse_next(&s, &e));
	assert_true(text_is(e.data, "a"));
	sse_release(&s);
}

static double
seconds_for(size_t bytes, size_t piece, const char *unit)
{
	struct timespec a, b;
	struct sse_event e;
	struct buf stream;
	struct sse s;
	size_t events = 0;

	buf_init(&stream, bytes + 64);
	while (stream.n < bytes)
		buf_z(&stream, unit);
	buf_z(&stream, "\r\r");
	sse_init(&s, bytes + 64);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	for (size_t at = 0; at < stream.n; at += piece) {
		size_t left = stream.n - at;

		assert_int_equal(
		    sse_feed(&s, (struct span){stream.p + at, left < piece ? left : piece}, NULL),
		    ERR_OK);
		while (sse_next(&s, &e))
			events++;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	assert_true(events > 0);
	sse_release(&s);
	buf_release(&stream);
	return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* Quadratic work would take minutes here. */
static void
test_linear(void **state)
{
	static const struct {
		const char *what, *unit;
		size_t bytes, piece;
	} rows[] = {
	    {"one long line", "data: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	        32 << 20, 16384},
	    {"one long line, small pieces", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 4 << 20,
	        7},
	    {"many data lines", "data: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", 16 << 20,
	        16384},
	    {"CR lines", "data: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r", 8 << 20, 16384},
	    {"CR events, one piece", "data: a\r\r", 8 << 20, 16 << 20},
	    {"LF events, one piece", "data: a\n\n", 8 << 20, 16 << 20},
	    {"empty lines", "\n", 1 << 20, 16384},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		double s = seconds_for(rows[i].bytes, rows[i].piece, rows[i].unit);

		if (s > 5)
			fail_msg("%s: %.3f s", rows[i].what, s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_nul),
	    cmocka_unit_test(test_samples),
	    cmocka_unit_test(test_cr_at_once),
	    cmocka_unit_test(test_limit),
	    cmocka_unit_test(test_clear),
	    cmocka_unit_test(test_linear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
