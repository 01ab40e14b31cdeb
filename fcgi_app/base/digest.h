/*
 * digest - SHA-256, and HMAC by it.
 *
 * Without OpenSSL's providers: setting them up costs 1.5 ms, which a process for one request (once.h) would pay each time.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "base/text.h"

#define DIGEST_BYTES 32

void digest_sha256(struct span text, unsigned char out[static DIGEST_BYTES]);
/* Its first `digits` hex digits, at most 64; not terminated. */
void digest_hex(struct span text, size_t digits, char *dst);
/* The key has at most 64 bytes. */
void digest_hmac(struct span key, struct span text, unsigned char out[static DIGEST_BYTES]);

#endif
