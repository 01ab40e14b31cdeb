/* SHA256_Init() and its like need no provider; newer names for them do */
#define OPENSSL_API_COMPAT 0x10101000L

#include "base/digest.h"

#include "base/err.h"

#include <openssl/sha.h>

#include <string.h>

#define BLOCK_BYTES 64

_Static_assert(DIGEST_BYTES == SHA256_DIGEST_LENGTH, "SHA-256");

static void
sha256_of_two(struct span a, struct span b, unsigned char *out)
{
	SHA256_CTX ctx;

	if (SHA256_Init(&ctx) != 1 || SHA256_Update(&ctx, a.p, a.n) != 1 ||
	    SHA256_Update(&ctx, b.p, b.n) != 1 || SHA256_Final(out, &ctx) != 1)
		die("SHA-256 is not to be had");
	explicit_bzero(&ctx, sizeof ctx);
}

void
digest_sha256(struct span text, unsigned char out[static DIGEST_BYTES])
{
	sha256_of_two(text, SPAN(""), out);
}

/* RFC 2104 */
void
digest_hex(struct span text, size_t digits, char *dst)
{
	unsigned char digest[DIGEST_BYTES];

	digest_sha256(text, digest);
	text_hex(digest, digits, dst);
}

void
digest_hmac(struct span key, struct span text, unsigned char out[static DIGEST_BYTES])
{
	char inner[BLOCK_BYTES] = {0}, outer[BLOCK_BYTES];
	unsigned char hash[DIGEST_BYTES];

	if (key.n > BLOCK_BYTES)
		die("a key of %zu bytes", key.n);
	memcpy(inner, key.p, key.n);
	for (size_t i = 0; i < BLOCK_BYTES; i++) {
		outer[i] = (char)(inner[i] ^ 0x5c);
		inner[i] = (char)(inner[i] ^ 0x36);
	}
	sha256_of_two((struct span){inner, sizeof inner}, text, hash);
	sha256_of_two((struct span){outer, sizeof outer},
	    (struct span){(const char *)hash, sizeof hash}, out);
	explicit_bzero(inner, sizeof inner);
	explicit_bzero(outer, sizeof outer);
}
