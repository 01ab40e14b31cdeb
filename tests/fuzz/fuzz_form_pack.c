/*
 * fuzz_form_pack - bytes as a packed turn: refused with a reason, or packed again to a text that stays the same. And as
 * a request of each API, whose turns are packed and unpacked: every writer writes the same of both.
 */
#include "dialect/flow.h"
#include "dialect/form_pack.h"
#include "dialect/read.h"

#include <stdlib.h>

#define ARENA_BYTES ((size_t)1 << 30)
#define OUT_BYTES ((size_t)1 << 26)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static struct form_turn
through(struct arena *arena, const struct form_turn *turn)
{
	struct buf *text = arena_buf(arena, OUT_BYTES), *again = arena_buf(arena, OUT_BYTES);
	struct form_turn back;

	form_pack(turn, text);
	must(form_unpack(arena, buf_text(text), &back, NULL) == ERR_OK);
	form_pack(&back, again);
	must(text_equal(buf_text(text), buf_text(again)));
	return back;
}

static void
turns(struct span text)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct form_turn turn;
	struct why why = {""};

	if (form_unpack(arena, text, &turn, &why) == ERR_OK)
		(void)through(arena, &turn);
	else
		must(why.text[0] != '\0');
	arena_free(&arena);
}

static struct span
written(struct arena *arena, const struct form *form, enum form_wire wire)
{
	static const char *const providers[FORM_WIRE__MAX] = {"openai", "anthropic", "openai"};
	struct form_target target = {.wire = wire,
	    .model = SPAN("m"),
	    .channel = SPAN("c"),
	    .provider = providers[wire],
	    .max_output = -1};
	struct buf *out = arena_buf(arena, OUT_BYTES);
	struct form_loss loss = {.names = NULL};
	struct why why;

	return flow_wires[wire].write(arena, form, &target, out, &loss, &why) == ERR_OK
	           ? buf_text(out)
	           : SPAN("refused");
}

static void
requests(struct span body, enum form_wire wire)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct dialect_request request;
	struct form form, packed;

	if (dialect_read(flow_wires[wire].dialect, body, &request, NULL) == ERR_OK &&
	    flow_wires[wire].read(arena, body, &form, NULL) == ERR_OK &&
	    form_check(&form, NULL) == ERR_OK) {
		packed = form;
		packed.turns = arena_alloc(arena, form.nturns * sizeof *packed.turns);
		for (size_t i = 0; i < form.nturns; i++)
			packed.turns[i] = through(arena, &form.turns[i]);
		for (int to = 0; to < FORM_WIRE__MAX; to++)
			must(text_equal(written(arena, &form, (enum form_wire)to),
			    written(arena, &packed, (enum form_wire)to)));
	}
	arena_free(&arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct span text = {(const char *)bytes, n};

	turns(text);
	for (int wire = 0; wire < FORM_WIRE__MAX; wire++)
		requests(text, (enum form_wire)wire);
	return 0;
}
