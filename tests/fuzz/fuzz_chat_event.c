/*
 * fuzz_chat_event - one event's data, as an event and as a plain answer of each API: no figure out of bounds,
 * texts terminated and well formed.
 */
#include "dialect/dialect.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
check(struct dialect_tap *tap, size_t n)
{
	const struct dialect_usage *u = &tap->usage;

	if (memchr(tap->finish, '\0', sizeof tap->finish) == NULL ||
	    memchr(tap->model, '\0', sizeof tap->model) == NULL)
		abort();
	if (!text_utf8(text_span(tap->finish)) || !text_utf8(text_span(tap->model)))
		abort();
	if (tap->content_bytes > n || (u->has_credit && u->credit_micros < 0))
		abort();
	dialect_settle(tap, n);
	if (u->prompt < 0 || u->completion < 0 || u->total != u->prompt + u->completion ||
	    u->cached > u->prompt || u->cached < -1 || u->cache_write < -1 || u->reasoning < -1)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const struct dialect *const all[] = {
	    &dialect_chat, &dialect_messages, &dialect_responses};
	struct span text = {(const char *)bytes, n};
	struct sse_event event = {.raw = text, .data = text, .has_data = true};
	struct dialect_tap tap;

	for (size_t i = 0; i < NELEM(all); i++) {
		dialect_tap_init(&tap);
		(void)all[i]->event(&event, &tap);
		check(&tap, n);
		dialect_tap_init(&tap);
		(void)all[i]->answer(text, &tap);
		check(&tap, n);
	}
	dialect_tap_init(&tap);
	(void)dialect_embeddings.answer(text, &tap);
	check(&tap, n);
	return 0;
}
