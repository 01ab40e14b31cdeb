#include "dialect/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MB ((size_t)1 << 20)
/* SHA-256 of "ch" begins with 343677762813 */
#define OWN "sl1.m.343677762813."

static const struct {
	const char *what, *text;
	bool marked;
	enum form_wire wire;
	const char *payload;
} opens[] = {
    {"ours", OWN "SIG", true, FORM_MESSAGES, "SIG"},
    {"ours, of chat", "sl1.c.343677762813.[]", true, FORM_CHAT, "[]"},
    {"ours, of responses", "sl1.r.343677762813.x.y", true, FORM_RESPONSES, "x.y"},
    {"ours, empty", OWN, true, FORM_MESSAGES, ""},
    {"nothing", "", false, FORM_CHAT, ""},
    {"the mark alone", "sl1.", false, FORM_CHAT, "sl1."},
    {"cut", "sl1.m.343677762813", false, FORM_CHAT, "sl1.m.343677762813"},
    {"an unknown wire", "sl1.x.343677762813.SIG", false, FORM_CHAT, "sl1.x.343677762813.SIG"},
    {"no dot", "sl1.m,343677762813.SIG", false, FORM_CHAT, "sl1.m,343677762813.SIG"},
    {"no dot at the end", "sl1.m.343677762813,SIG", false, FORM_CHAT, "sl1.m.343677762813,SIG"},
    {"another's", "EqMBCkYIBRgCKkBexample", false, FORM_CHAT, "EqMBCkYIBRgCKkBexample"},
};

static void
test_open(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(opens); i++) {
		struct seal seal = seal_open(text_span(opens[i].text));

		if (seal.marked != opens[i].marked || (seal.marked && seal.wire != opens[i].wire) ||
		    !text_is(seal.payload, opens[i].payload))
			fail_msg("%s: marked %d, payload '%.*s'", opens[i].what, seal.marked,
			    (int)seal.payload.n, seal.payload.p);
	}
}

static const struct {
	const char *what, *text, *channel;
	enum form_wire wire;
	bool fits;
} fits[] = {
    {"its own", OWN "SIG", "ch", FORM_MESSAGES, true},
    {"another channel", OWN "SIG", "ch2", FORM_MESSAGES, false},
    {"another wire", OWN "SIG", "ch", FORM_RESPONSES, false},
    {"not marked", "SIG", "ch", FORM_MESSAGES, false},
    {"nothing", "", "ch", FORM_MESSAGES, false},
};

static void
test_fits(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(fits); i++) {
		struct span payload = SPAN("untouched");
		bool got = seal_fits(
		    text_span(fits[i].text), fits[i].wire, text_span(fits[i].channel), &payload);

		if (got != fits[i].fits || !text_is(payload, got ? "SIG" : "untouched"))
			fail_msg("%s: %d '%.*s'", fits[i].what, got, (int)payload.n, payload.p);
	}
}

static void
test_make(void **state)
{
	struct arena *arena = arena_new(MB);

	(void)state;
	for (int wire = 0; wire < FORM_WIRE__MAX; wire++) {
		struct span text = seal_make(
		                arena, (enum form_wire)wire, SPAN("a channel"), SPAN("x\"y")),
		            payload;

		assert_true(seal_fits(text, (enum form_wire)wire, SPAN("a channel"), &payload));
		assert_true(text_is(payload, "x\"y"));
	}
	assert_true(text_is(seal_make(arena, FORM_MESSAGES, SPAN("ch"), SPAN("SIG")), OWN "SIG"));
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_open),
	    cmocka_unit_test(test_fits),
	    cmocka_unit_test(test_make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
