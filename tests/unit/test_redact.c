#include "redact.h"

#include "lib/in_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define R "[redacted]"

static const struct {
	const char *what, *key, *text, *want;
} cases[] = {
    {"no key in it", "sk-secret", "a text without it", "a text without it"},
    {"nothing at all", "sk-secret", "", ""},
    {"raw", "sk-secret", "bad key sk-secret!", "bad key " R "!"},
    {"raw, alone", "sk-secret", "sk-secret", R},
    {"twice", "sk-secret", "sk-secret sk-secret", R " " R},
    {"glued together", "sk-secret", "sk-secretsk-secret", R R},
    {"half a key is no key", "sk-secret", "sk-secre", "sk-secre"},
    {"another case is no key", "sk-secret", "SK-SECRET", "SK-SECRET"},
    {"after its own beginning", "aabaab", "aaaabaab", "aa" R},
    {"URL-encoded", "sk/se+cret=", "?key=sk%2Fse%2Bcret%3D&x", "?key=" R "&x"},
    {"URL-encoded and raw", "sk/se+cret=", "sk%2Fse%2Bcret%3D sk/se+cret=", R " " R},
    {"base64, no padding", "sk-secret", "Basic c2stc2VjcmV0", "Basic " R},
    {"base64, one =", "sk-secre", "c2stc2VjcmU=", R},
    {"base64, two =", "sk-secr", "c2stc2Vjcg==", R},
    {"base64 with something behind it", "sk-secre", "c2stc2VjcmU6eA==", R "cmU6eA=="},
    {"base64 twice", "sk-secret", "c2stc2VjcmV0,c2stc2VjcmV0", R "," R},
    {"bytes that are no text", "\xff\xfe\x01zzz", "<\xff\xfe\x01zzz>", "<" R ">"},
    {"a short key would match words", "none", "there is none", "there is none"},
    {"the shortest that is looked for", "secret", "a secret", "a " R},
    {"no key", "", "text", "text"},
};

static void
test_forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct secret key = {text_span(cases[i].key)};
		struct span text = text_span(cases[i].text), got;
		struct redact redact;

		redact_init(&redact, arena, &key);
		got = redact_apply(&redact, arena, text);
		if (!text_is(got, cases[i].want))
			fail_msg("%s: got '%.*s'", cases[i].what, (int)got.n, got.p);
		if (text_is(text, cases[i].want) && got.p != text.p)
			fail_msg("%s: copied although nothing is in it", cases[i].what);
		arena_reset(arena);
	}
}

/* However often a key stands in a text, all of it is found and nothing is lost between. */
static void
test_dense(void **state)
{
	struct secret key = {SPAN("secret")};
	struct buf *b = arena_buf(arena, 1 << 20), *want = arena_buf(arena, 1 << 20);
	struct redact redact;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		buf_z(b, "secret");
		buf_z(want, R);
		if (i % 7 == 0) {
			buf_add(b, "\0x", 2);
			buf_add(want, "\0x", 2);
		}
	}
	redact_init(&redact, arena, &key);
	assert_true(text_equal(redact_apply(&redact, arena, buf_text(b)), buf_text(want)));
	arena_reset(arena);
}

static void
test_all(void **state)
{
	struct conf_account first[] = {
	    {.key = {SPAN("sk-1-first")}}, {.key = {SPAN("sk-2-first")}}};
	struct conf_account second[] = {{.key = {SPAN("sk-second/1")}}};
	struct conf_channel channels[] = {{.accounts = first, .naccounts = 2}, {.naccounts = 0},
	    {.accounts = second, .naccounts = 1}};
	struct conf conf = {.channels = channels, .nchannels = 3};
	struct span got = redact_all(&conf, arena,
	    SPAN("sk-1-first sk-2-first sk-second/1 sk-second%2F1 c2stMi1maXJzdA== sk-third-1"));

	(void)state;
	if (!text_is(got, R " " R " " R " " R " " R " sk-third-1"))
		fail_msg("got '%.*s'", (int)got.n, got.p);
	arena_reset(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_forms),
	    cmocka_unit_test(test_dense),
	    cmocka_unit_test(test_all),
	};

	return cmocka_run_group_tests(tests, in_arena_begin, in_arena_end);
}
