#include "convert_defaults.h"

#include "lib/in_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define CHAT "/v1/chat/completions"
#define MESSAGES "/v1/messages"
#define RESPONSES "/v1/responses"
#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]"

/* "a=1 b=[2]" */
static size_t
list_of(const char *z, struct conf_header *list)
{
	struct span rest = text_span(z), token;
	size_t n = 0;

	while (text_token(&rest, " ", &token)) {
		size_t at = text_find(token, SPAN("="));

		list[n++] = (struct conf_header){
		    arena_copy(arena, (struct span){token.p, at}), text_from(token, at + 1)};
	}
	return n;
}

struct row {
	const char *what, *path, *body, *defaults;
	enum provider_wire wire;
	const char *quirk;
	int64_t max_output;
	const char *want;
};

static struct convert convert;

static struct span
send(const struct row *row)
{
	static struct request rq;
	static struct conf_channel channel;
	struct conf_header list[8];
	struct convert_target target = {.channel = &channel,
	    .model = SPAN("m"),
	    .max_output = row->max_output,
	    .defaults = list,
	    .ndefaults = list_of(row->defaults, list)};
	struct why why = {""};

	rq = (struct request){.id = SPAN("req_1"), .endpoint = endpoint_find(text_span(row->path))};
	if (dialect_read(rq.endpoint->dialect, text_span(row->body), &rq.read, &why) != ERR_OK)
		fail_msg("%s: %s", row->what, why.text);
	if (rq.read.model.type == SCAN_STRING)
		rq.model = scan_string(arena, rq.read.model.raw);
	channel = (struct conf_channel){.name = SPAN("c"),
	    .provider = provider_at(PROVIDER_COMPATIBLE),
	    .wire = row->wire,
	    .quirks.max_tokens = text_span(row->quirk)};
	convert_begin(&convert, arena, &rq, 0);
	if (convert_aim(&convert, &target, &why) != ERR_OK)
		fail_msg("%s: %s", row->what, why.text);
	return convert.way.body;
}

/* The API of the client is the channel's: nothing else differs by a byte. */
static const struct row same[] = {
    {"none", CHAT, "{\"model\":\"m\"," USER "}", "", WIRE_CHAT, "", 0,
        "{\"model\":\"m\"," USER "}"},
    {"as written, in their order", CHAT, " { \"model\":\"m\"," USER "}",
        "temperature=0.70 stop=[\"${x}\"]", WIRE_CHAT, "", 0,
        " {\"temperature\":0.70,\"stop\":[\"${x}\"], \"model\":\"m\"," USER "}"},
    {"what is there stays", CHAT, "{\"model\":\"m\",\"temperature\":1," USER "}",
        "temperature=0.7 top_p=0.5", WIRE_CHAT, "", 0,
        "{\"top_p\":0.5,\"model\":\"m\",\"temperature\":1," USER "}"},
    {"all are there", CHAT, "{\"model\":\"m\",\"temperature\":1," USER "}", "temperature=0.7",
        WIRE_CHAT, "", 0, "{\"model\":\"m\",\"temperature\":1," USER "}"},
    {"null is there", CHAT, "{\"model\":\"m\",\"temperature\":null," USER "}", "temperature=0.7",
        WIRE_CHAT, "", 0, "{\"model\":\"m\",\"temperature\":null," USER "}"},
    {"a name in escapes", CHAT, "{\"model\":\"m\",\"t\\u0065mperature\":1," USER "}",
        "temperature=0.7", WIRE_CHAT, "", 0, "{\"model\":\"m\",\"t\\u0065mperature\":1," USER "}"},
    {"deeper does not count", CHAT, "{\"model\":\"m\",\"metadata\":{\"temperature\":1}," USER "}",
        "temperature=0.7", WIRE_CHAT, "", 0,
        "{\"temperature\":0.7,\"model\":\"m\",\"metadata\":{\"temperature\":1}," USER "}"},
    {"a name that wants quotes", CHAT, "{\"model\":\"m\"," USER "}", "a\"b=1", WIRE_CHAT, "", 0,
        "{\"a\\\"b\":1,\"model\":\"m\"," USER "}"},
    {"the limit under another name", CHAT, "{\"model\":\"m\",\"max_completion_tokens\":3," USER "}",
        "max_tokens=9", WIRE_CHAT, "", 0, "{\"model\":\"m\",\"max_completion_tokens\":3," USER "}"},
    {"the limit under the host's name", CHAT, "{\"model\":\"m\"," USER "}", "max_tokens=9",
        WIRE_CHAT, "max_completion_tokens", 0,
        "{\"max_completion_tokens\":9,\"model\":\"m\"," USER "}"},
    {"the limit under the API's name", RESPONSES, "{\"model\":\"m\",\"input\":\"x\"}",
        "max_tokens=9", WIRE_RESPONSES, "", 0,
        "{\"max_output_tokens\":9,\"model\":\"m\",\"input\":\"x\"}"},
    {"of responses on chat", CHAT, "{\"model\":\"m\"," USER "}", "max_output_tokens=9", WIRE_CHAT,
        "", 0, "{\"max_tokens\":9,\"model\":\"m\"," USER "}"},
    {"messages has one always", MESSAGES, "{\"model\":\"m\",\"max_tokens\":3," USER "}",
        "max_tokens=9 top_k=4", WIRE_MESSAGES, "", 0,
        "{\"top_k\":4,\"model\":\"m\",\"max_tokens\":3," USER "}"},
    {"tokens are counted without", "/v1/messages/count_tokens", "{\"model\":\"m\"," USER "}",
        "top_k=4", WIRE_MESSAGES, "", 0, "{\"model\":\"m\"," USER "}"},
    {"embeddings", "/v1/embeddings", "{\"model\":\"m\",\"input\":\"x\"}", "dimensions=256",
        WIRE_CHAT, "", 0, "{\"dimensions\":256,\"model\":\"m\",\"input\":\"x\"}"},
    {"images", "/v1/images/generations", "{\"model\":\"m\",\"prompt\":\"x\"}", "size=\"1\"",
        WIRE_CHAT, "", 0, "{\"size\":\"1\",\"model\":\"m\",\"prompt\":\"x\"}"},
};

static void
test_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(same); i++) {
		struct span got = send(&same[i]);

		if (!text_is(got, same[i].want))
			fail_msg("%s: got %.*s", same[i].what, (int)got.n, got.p);
	}
}

/* On another API: `want` is part of the body, or with '!' is not. */
static const struct row other[] = {
    {"as written", CHAT, "{\"model\":\"m\"," USER "}", "top_k=4 metadata={\"a\":1}", WIRE_MESSAGES,
        "", 0, "{\"top_k\":4,\"metadata\":{\"a\":1},\"model\":\"m\""},
    {"the client's own wins", CHAT, "{\"model\":\"m\",\"temperature\":0.2," USER "}",
        "temperature=0.7", WIRE_MESSAGES, "", 0, "!0.7"},
    {"also what is dropped on the way", CHAT, "{\"model\":\"m\",\"logit_bias\":{}," USER "}",
        "logit_bias={\"1\":1}", WIRE_MESSAGES, "", 0, "!logit_bias"},
    {"the limit where one is needed", CHAT, "{\"model\":\"m\"," USER "}",
        "max_completion_tokens=77", WIRE_MESSAGES, "", 0, "\"max_tokens\":77"},
    {"the limit before the model's", CHAT, "{\"model\":\"m\"," USER "}", "max_tokens=77",
        WIRE_MESSAGES, "", 5000, "\"max_tokens\":77"},
    {"never above the model's", CHAT, "{\"model\":\"m\"," USER "}", "max_tokens=7000",
        WIRE_MESSAGES, "", 5000, "\"max_tokens\":5000"},
    {"nor on chat, where it is no loss", RESPONSES, "{\"model\":\"m\",\"input\":\"x\"}",
        "max_output_tokens=7000", WIRE_CHAT, "", 5000, "\"max_tokens\":5000"},
    {"the client's limit wins", CHAT, "{\"model\":\"m\",\"max_tokens\":3," USER "}",
        "max_tokens=77", WIRE_MESSAGES, "", 0, "\"max_tokens\":3"},
    {"and stands once", CHAT, "{\"model\":\"m\",\"max_tokens\":3," USER "}", "max_tokens=77",
        WIRE_RESPONSES, "", 0, "!77"},
    {"on responses", MESSAGES, "{\"model\":\"m\",\"max_tokens\":30," USER "}",
        "max_tokens=77 verbosity=1", WIRE_RESPONSES, "", 0, "\"verbosity\":1"},
};

static void
test_other(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(other); i++) {
		bool wants = other[i].want[0] != '!';
		struct span part = text_span(other[i].want + (wants ? 0 : 1)),
		            got = send(&other[i]);

		if ((text_find(got, part) < got.n) != wants)
			fail_msg("%s: got %.*s", other[i].what, (int)got.n, got.p);
		/* what no client asked for is not lost */
		assert_int_equal(
		    text_find(convert.way.dropped, SPAN("max")), convert.way.dropped.n);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_same, in_arena_begin, in_arena_end),
	    cmocka_unit_test_setup_teardown(test_other, in_arena_begin, in_arena_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
