/*
 * fuzz_sse - the first two bytes say how the rest is cut into pieces: the events must be those of
 * the uncut stream, and their raw bytes the stream itself.
 */
#include "dialect/sse.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
note(struct buf *out, const struct sse_event *e)
{
	buf_print(out, "%d%d %zu ", e->has_data, e->comment, e->raw.n);
	buf_span(out, e->name);
	buf_char(out, '|');
	buf_span(out, e->data);
	buf_char(out, '\n');
}

static void
cut(struct span stream, size_t piece, size_t growth, struct buf *seen, struct buf *raw)
{
	struct sse_event e;
	struct sse s;

	sse_init(&s, LIMIT);
	for (size_t at = 0; at < stream.n; at += piece, piece += growth) {
		size_t left = stream.n - at;

		if (sse_feed(&s, (struct span){stream.p + at, left < piece ? left : piece}, NULL) !=
		    ERR_OK)
			abort();
		while (sse_next(&s, &e)) {
			note(seen, &e);
			buf_span(raw, e.raw);
		}
	}
	while (sse_last(&s, &e)) {
		note(seen, &e);
		buf_span(raw, e.raw);
	}
	sse_release(&s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct buf whole, pieces, raw;
	struct span stream;

	if (n < 2 || n > LIMIT)
		return 0;
	stream = (struct span){(const char *)bytes + 2, n - 2};
	buf_init(&whole, SIZE_MAX / 4);
	buf_init(&pieces, SIZE_MAX / 4);
	buf_init(&raw, SIZE_MAX / 4);
	cut(stream, n, 0, &whole, &raw);
	if (!text_equal(buf_text(&raw), stream))
		abort();
	buf_clear(&raw);
	cut(stream, 1 + bytes[0] % 32U, bytes[1] % 4U, &pieces, &raw);
	if (!text_equal(buf_text(&raw), stream) || !text_equal(buf_text(&whole), buf_text(&pieces)))
		abort();
	buf_release(&whole);
	buf_release(&pieces);
	buf_release(&raw);
	return 0;
}
