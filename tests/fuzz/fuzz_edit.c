/*
 * fuzz_edit - a request body: what is accepted can be edited, stays valid, and loses nothing.
 */
#include "dialect/edit.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
edit(struct arena *arena, const struct dialect *d, struct span body)
{
	struct dialect_request r, again;
	struct edit edits[2];
	struct buf *out = arena_buf(arena, SIZE_MAX / 4);
	size_t n = 0;

	if (dialect_read(d, body, &r, NULL) != ERR_OK)
		return;
	edits[n++] = edit_model(arena, &r, SPAN("other/model"));
	if (d->usage_option && edit_usage(&r, &edits[n]))
		n++;
	edit_apply(body, edits, n, out);
	if (dialect_read(d, buf_text(out), &again, NULL) != ERR_OK ||
	    !scan_is(again.model.raw, "other/model") || out->n + r.model.raw.n + 8 < body.n)
		abort();
	if (d->usage_option && edit_usage(&again, &edits[0]))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct span body = {(const char *)bytes, n};
	struct arena *arena = arena_new(16 << 20);

	edit(arena, &dialect_chat, body);
	edit(arena, &dialect_moderations, body);
	arena_free(&arena);
	return 0;
}
