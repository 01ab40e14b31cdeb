#include "dialect/edit.h"

#include "base/emit.h"

#include <string.h>

#define USAGE "\"include_usage\":true"
#define STREAM "\"stream\":true"
#define OPTIONS "\"stream_options\":{" USAGE "}"

/* A new first member of an object. `with_comma` is the same text for an object that has others. */
static struct edit
first_member(struct span object, struct span text, struct span with_comma)
{
	struct span inside = text_from(object, 1);
	bool empty = text_starts(text_trim(inside), "}");

	return (struct edit){{inside.p, 0}, empty ? text : with_comma};
}

struct edit
edit_model(struct arena *arena, const struct dialect_request *request, struct span model)
{
	struct buf *b = arena_buf(arena, SIZE_MAX / 2);
	struct span text;

	if (request->model.type != SCAN_ABSENT) {
		emit_quoted(b, model);
		return (struct edit){request->model.raw, buf_text(b)};
	}
	buf_z(b, "\"model\":");
	emit_quoted(b, model);
	text = buf_text(b);
	buf_char(b, ',');
	text.p = b->p;
	return first_member(text_trim(request->body), text, buf_text(b));
}

bool
edit_usage(const struct dialect_request *request, struct edit *edit_out)
{
	const struct scan_value *options = &request->stream_options;

	if (request->include_usage.type == SCAN_TRUE)
		return false;
	if (request->include_usage.type != SCAN_ABSENT)
		*edit_out = (struct edit){request->include_usage.raw, SPAN("true")};
	else if (options->type == SCAN_OBJECT)
		*edit_out = first_member(options->raw, SPAN(USAGE), SPAN(USAGE ","));
	else if (options->type != SCAN_ABSENT)
		*edit_out = (struct edit){options->raw, SPAN("{" USAGE "}")};
	else
		*edit_out =
		    first_member(text_trim(request->body), SPAN(OPTIONS), SPAN(OPTIONS ","));
	return true;
}

bool
edit_stream(const struct dialect_request *request, struct edit *edit_out)
{
	if (request->stream.type == SCAN_TRUE)
		return false;
	if (request->stream.type != SCAN_ABSENT)
		*edit_out = (struct edit){request->stream.raw, SPAN("true")};
	else
		*edit_out = first_member(text_trim(request->body), SPAN(STREAM), SPAN(STREAM ","));
	return true;
}

static void
sort(struct edit *edits, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct edit e = edits[i];
		size_t j = i;

		for (; j > 0 && edits[j - 1].raw.p > e.raw.p; j--)
			edits[j] = edits[j - 1];
		edits[j] = e;
	}
}

void
edit_apply(struct span body, struct edit *edits, size_t n, struct buf *out)
{
	const char *at = body.p, *end = body.p + body.n;

	sort(edits, n);
	for (size_t i = 0; i < n; i++) {
		const struct edit *e = &edits[i];

		if (e->raw.p < at || e->raw.p + e->raw.n > end)
			die("edit %zu overlaps another or lies outside the body", i);
		buf_add(out, at, (size_t)(e->raw.p - at));
		buf_span(out, e->text);
		at = e->raw.p + e->raw.n;
	}
	buf_add(out, at, (size_t)(end - at));
}
