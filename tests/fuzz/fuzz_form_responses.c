/*
 * fuzz_form_responses - a Responses client's body: what can be read and checked can be written for every
 * wire, or is refused with a reason; what is written is JSON, and for its own wire it can be read and
 * checked again.
 */
#include "dialect/flow.h"
#include "dialect/read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const struct form_target targets[FORM_WIRE__MAX] = {
    [FORM_CHAT] = {.wire = FORM_CHAT, .provider = "deepseek", .stream = true, .max_output = -1},
    [FORM_MESSAGES] = {.wire = FORM_MESSAGES, .provider = "anthropic", .max_output = 1000},
    [FORM_RESPONSES] = {.wire = FORM_RESPONSES, .provider = "openai", .max_output = 1000},
};

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
write_one(struct arena *arena, const struct form *form, enum form_wire wire)
{
	struct form_target target = targets[wire];
	struct buf *out = arena_buf(arena, (size_t)1 << 26);
	struct form_loss loss = {.names = NULL};
	struct why why = {.text = ""};
	struct form again;
	enum err err;

	target.model = SPAN("gpt-5");
	target.channel = SPAN("ch");
	err = flow_wires[wire].write(arena, form, &target, out, &loss, &why);
	must(err == ERR_OK || (why.text[0] != '\0' && text_utf8(text_span(why.text))));
	if (err != ERR_OK)
		return;
	must(scan_pick(buf_text(out), NULL, NULL, 0, NULL) == ERR_OK);
	if (wire == FORM_RESPONSES)
		must(form_read_responses(arena, buf_text(out), &again, &why) == ERR_OK);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct arena *arena = arena_new((size_t)1 << 28);
	struct span body = {(const char *)bytes, n};
	struct dialect_request request;
	struct why why = {.text = ""};
	struct form form;

	if (dialect_read(&dialect_responses, body, &request, NULL) == ERR_OK &&
	    form_read_responses(arena, body, &form, &why) == ERR_OK &&
	    form_check(&form, &why) == ERR_OK)
		for (int wire = 0; wire < FORM_WIRE__MAX; wire++)
			write_one(arena, &form, (enum form_wire)wire);
	must(text_utf8(text_span(why.text)));
	arena_free(&arena);
	return 0;
}
