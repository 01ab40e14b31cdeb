#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
hex(const unsigned char *digest, char out[2 * DIGEST_BYTES + 1])
{
	for (size_t i = 0; i < DIGEST_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* FIPS 180-4 */
static void
test_sha256(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		unsigned char digest[DIGEST_BYTES];
		char got[2 * DIGEST_BYTES + 1];

		digest_sha256(text_span(rows[i].text), digest);
		hex(digest, got);
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("'%s': got %s, want %s", rows[i].text, got, rows[i].want);
	}
}

/* RFC 4231, cases 1 to 3, and a key of a whole block. */
static void
test_hmac(void **state)
{
	char key[3][64];
	char dd[50];
	const struct {
		struct span key, text;
		const char *want;
	} rows[] = {
	    {{key[0], 20}, SPAN("Hi There"),
	        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
	    {SPAN("Jefe"), SPAN("what do ya want for nothing?"),
	        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
	    {{key[1], 20}, {dd, sizeof dd},
	        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
	    {{key[2], 64}, SPAN("x"),
	        "f91c4c403625fb06910ef93999265bbd2d62baeaec6ff36455498cc124fe3e66"},
	};

	(void)state;
	memset(key[0], 0x0b, sizeof key[0]);
	memset(key[1], 0xaa, sizeof key[1]);
	memset(key[2], 'k', sizeof key[2]);
	memset(dd, 0xdd, sizeof dd);
	for (size_t i = 0; i < NELEM(rows); i++) {
		unsigned char digest[DIGEST_BYTES];
		char got[2 * DIGEST_BYTES + 1];

		digest_hmac(rows[i].key, rows[i].text, digest);
		hex(digest, got);
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("row %zu: got %s, want %s", i, got, rows[i].want);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sha256),
	    cmocka_unit_test(test_hmac),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
