/*
 * fuzz_form_chat - a chat client's body: what can be read and checked can be written for every wire and
 * host, or is refused with a reason; what is written is JSON, and for chat it can be read again.
 */
#include "dialect/form.h"
#include "dialect/read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* A wire may not be there yet. */
extern form_write_fn form_write_messages __attribute__((weak));
extern form_write_fn form_write_responses __attribute__((weak));

static const char *const providers[] = {"openai", "openai-compatible", "deepseek", "zhipu",
    "moonshot", "dashscope", "openrouter", "gemini", "xai", "siliconflow", "anthropic", NULL};

static void
check_again(struct arena *arena, struct span body)
{
	struct why why = {.text = ""};
	struct form form;

	if (form_read_chat(arena, body, &form, &why) != ERR_OK)
		abort();
}

static void
write_one(struct arena *arena, const struct form *form, form_write_fn *write, enum form_wire wire,
    const char *provider)
{
	struct form_target target = {.wire = wire,
	    .model = SPAN("gpt-5"),
	    .channel = SPAN("ch"),
	    .provider = provider,
	    .stream = true,
	    .max_output = 1000};
	struct buf *out = arena_buf(arena, (size_t)1 << 26);
	struct form_loss loss = {.names = NULL};
	struct why why = {.text = ""};
	enum err err;

	if (write == NULL)
		return;
	err = write(arena, form, &target, out, &loss, &why);
	if (err != ERR_OK && why.text[0] == '\0')
		abort();
	if (err != ERR_OK)
		return;
	if (scan_pick(buf_text(out), NULL, NULL, 0, NULL) != ERR_OK)
		abort();
	if (wire == FORM_CHAT)
		check_again(arena, buf_text(out));
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct arena *arena = arena_new((size_t)1 << 28);
	struct span body = {(const char *)bytes, n};
	struct dialect_request request;
	struct why why = {.text = ""};
	struct form form;

	if (dialect_read(&dialect_chat, body, &request, NULL) == ERR_OK &&
	    form_read_chat(arena, body, &form, &why) == ERR_OK &&
	    form_check(&form, &why) == ERR_OK) {
		for (size_t i = 0; i < NELEM(providers); i++)
			for (int from = 0; from < FORM_WIRE__MAX; from++) {
				form.from = (enum form_wire)from;
				write_one(arena, &form, form_write_chat, FORM_CHAT, providers[i]);
			}
		form.from = FORM_CHAT;
		write_one(arena, &form, form_write_messages, FORM_MESSAGES, "anthropic");
		write_one(arena, &form, form_write_responses, FORM_RESPONSES, "openai");
	} else if (n > 0 && why.text[0] != '\0' && !text_utf8(text_span(why.text))) {
		abort();
	}
	arena_free(&arena);
	return 0;
}
