#include "dialect/sse.h"

#include <string.h>

#define KEEP_BYTES 65536 /* kept between streams */
#define BOM "\xef\xbb\xbf"

void
sse_init(struct sse *s, size_t max_event_bytes)
{
	*s = (struct sse){.max = max_event_bytes};
	/* the limit is on one event and sse_feed() keeps it: what came after the event is on top */
	buf_init(&s->bytes, SIZE_MAX / 4);
	buf_init(&s->joined, SIZE_MAX / 4);
}

void
sse_release(struct sse *s)
{
	buf_release(&s->bytes);
	buf_release(&s->joined);
	sse_init(s, s->max);
}

void
sse_clear(struct sse *s)
{
	struct buf bytes, joined;

	buf_shrink(&s->bytes, KEEP_BYTES);
	buf_shrink(&s->joined, KEEP_BYTES);
	bytes = s->bytes;
	joined = s->joined;
	*s = (struct sse){.bytes = bytes, .joined = joined, .max = s->max};
}

/* Nonzero where a byte of `word` is `c` (the classic zero-byte test: exact in its lowest set bit). */
static uint64_t
bytes_equal(uint64_t word, unsigned char c)
{
	uint64_t x = word ^ (0x0101010101010101ULL * c);

	return (x - 0x0101010101010101ULL) & ~x & 0x8080808080808080ULL;
}

/* Where the line ends: index of the first CR or LF, or n. One loop for both keeps CR-only streams linear. */
static size_t
line_end(const char *p, size_t n)
{
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		uint64_t word;

		memcpy(&word, p + i, 8);
		if ((bytes_equal(word, '\n') | bytes_equal(word, '\r')) != 0)
			break;
	}
	while (i < n && p[i] != '\n' && p[i] != '\r')
		i++;
	return i;
}

static bool
line_is_empty(const struct sse *s, size_t end)
{
	const char *p = s->bytes.p + s->line;

	if (end == s->line)
		return true;
	return !s->begun && s->line == s->start && end - s->line == 3 && memcmp(p, BOM, 3) == 0;
}

/* The byte after a CR is known: true if the event is over. */
static bool
settle_cr(struct sse *s)
{
	bool over = s->empty_cr;

	s->after_cr = s->empty_cr = false;
	if (s->bytes.p[s->scanned] == '\n') {
		s->line = ++s->scanned;
		s->cr_alone = false;
	}
	return over;
}

/* Look on for the end of the event at `start`. */
static bool
find_end(struct sse *s)
{
	while (s->scanned < s->bytes.n) {
		size_t at;
		bool empty;

		if (s->after_cr) {
			if (settle_cr(s))
				return true;
			continue;
		}
		at = s->scanned + line_end(s->bytes.p + s->scanned, s->bytes.n - s->scanned);
		s->scanned = at;
		if (at == s->bytes.n)
			return false;
		empty = line_is_empty(s, at);
		s->line = ++s->scanned;
		if (s->bytes.p[at] == '\n') {
			s->cr_alone = false;
			if (empty)
				return true;
			continue;
		}
		s->after_cr = true;
		if (empty && s->cr_alone)
			return true;
		s->empty_cr = empty;
		s->cr_alone = true;
	}
	return false;
}

/* Look for the end of the event at `start`, unless it is known, and judge the size. */
static void
advance(struct sse *s)
{
	if (s->end == 0 && !s->over && find_end(s))
		s->end = s->scanned;
	if ((s->end > 0 ? s->end : s->bytes.n) - s->start > s->max)
		s->over = true;
}

static void
drop_taken(struct sse *s)
{
	size_t n = s->start;

	if (n == 0)
		return;
	buf_drop(&s->bytes, n);
	s->start = 0;
	s->line -= n;
	s->scanned -= n;
	s->end -= s->end > 0 ? n : 0;
}

enum err
sse_feed(struct sse *s, struct span bytes, struct why *why)
{
	if (!s->over) {
		drop_taken(s);
		buf_span(&s->bytes, bytes);
		advance(s);
	}
	if (s->over || s->bytes.over) {
		err_why(why, "an event of the stream is larger than %zu bytes", s->max);
		return ERR_TOO_BIG;
	}
	return ERR_OK;
}

static void
add_data(struct sse *s, struct sse_event *event, struct span value)
{
	if (!event->has_data) {
		event->has_data = true;
		event->data = value;
		return;
	}
	if (event->data.p != s->joined.p || s->joined.p == NULL) {
		buf_clear(&s->joined);
		buf_span(&s->joined, event->data);
	}
	buf_char(&s->joined, '\n');
	buf_span(&s->joined, value);
	event->data = buf_text(&s->joined);
}

static void
read_line(struct sse *s, struct sse_event *event, struct span line)
{
	const char *colon;
	struct span name = line, value = {line.p + line.n, 0};

	if (line.p[0] == ':')
		return;
	event->comment = false;
	colon = memchr(line.p, ':', line.n);
	if (colon != NULL) {
		name.n = (size_t)(colon - line.p);
		value = text_from(line, name.n + 1);
		if (value.n > 0 && value.p[0] == ' ')
			value = text_from(value, 1);
	}
	if (text_is(name, "data"))
		add_data(s, event, value);
	else if (text_is(name, "event"))
		event->name = value;
}

static void
read_event(struct sse *s, struct span raw, struct sse_event *event_out)
{
	struct span rest = raw;

	*event_out = (struct sse_event){.raw = raw, .comment = true};
	if (!s->begun && text_starts(rest, BOM))
		rest = text_from(rest, 3);
	s->begun = true;
	/* CRLF counts as two ends here: the empty line between them says nothing */
	while (rest.n > 0) {
		size_t n = line_end(rest.p, rest.n);

		if (n > 0)
			read_line(s, event_out, (struct span){rest.p, n});
		rest = text_from(rest, n + 1);
	}
}

static void
take(struct sse *s, size_t end, struct sse_event *event_out)
{
	read_event(s, (struct span){s->bytes.p + s->start, end - s->start}, event_out);
	s->start = end;
	s->end = 0;
}

bool
sse_next(struct sse *s, struct sse_event *event_out)
{
	advance(s);
	if (s->end == 0 || s->over)
		return false;
	take(s, s->end, event_out);
	return true;
}

bool
sse_last(struct sse *s, struct sse_event *event_out)
{
	if (sse_next(s, event_out))
		return true;
	if (s->over || s->start == s->bytes.n)
		return false;
	take(s, s->bytes.n, event_out);
	return true;
}

struct span
sse_rest(const struct sse *s)
{
	return text_from(buf_text(&s->bytes), s->start);
}
