/*
 * fuzz_form_messages - a Messages request into the one form and back, as if it came from each wire:
 * what is written is JSON that the dialect takes, and the same again when it is read and written
 * once more.
 */
#include "dialect/form.h"
#include "dialect/read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static bool
convert(struct arena *arena, struct span body, enum form_wire from, struct buf *out)
{
	static const char *const models[] = {"claude-opus-4-7", "claude-sonnet-4-5", "glm-4.6"};
	struct form_target target = {.wire = FORM_MESSAGES,
	    .model = text_span(models[from]),
	    .channel = SPAN("an"),
	    .provider = "anthropic",
	    .max_output = -1};
	struct form_loss loss = {NULL};
	struct why why = {""};
	struct form form;

	if (form_read_messages(arena, body, &form, &why) != ERR_OK)
		return false;
	form.from = from;
	return form_check(&form, &why) == ERR_OK &&
	       form_write_messages(arena, &form, &target, out, &loss, &why) == ERR_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct span body = {(const char *)bytes, n};
	struct dialect_request request;

	if (dialect_read(&dialect_messages, body, &request, NULL) != ERR_OK)
		return 0;
	for (size_t from = 0; from < FORM_WIRE__MAX; from++) {
		struct arena *arena = arena_new(SIZE_MAX / 4);
		struct buf *out = arena_buf(arena, SIZE_MAX / 4);
		struct buf *again = arena_buf(arena, SIZE_MAX / 4);
		struct why why = {""};

		if (convert(arena, body, (enum form_wire)from, out)) {
			if (dialect_read(&dialect_messages, buf_text(out), &request, &why) !=
			    ERR_OK)
				abort();
			if (from == FORM_MESSAGES &&
			    (!convert(arena, buf_text(out), FORM_MESSAGES, again) ||
			        !text_equal(buf_text(out), buf_text(again))))
				abort();
		}
		arena_free(&arena);
	}
	return 0;
}
