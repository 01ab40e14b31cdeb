/*
 * seal - the check behind each row of `book`: its key and its bytes, so that damage on the disk is seen.
 *
 * Layout    the row's bytes, then 8 bytes of seal. Part of the format: never change it.
 * Strength  any damage within 8 bytes that lie together is seen; other damage but once in 2^64
 */
#ifndef STORE_SEAL_H
#define STORE_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SEAL_BYTES sizeof(uint64_t)

static inline uint64_t
seal_of(uint64_t key, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint64_t h = 0xcbf29ce484222325ULL ^ key;

	for (size_t left = n; left > 0;) {
		uint64_t word = 0;
		size_t k = left < sizeof word ? left : sizeof word;

		memcpy(&word, p, k);
		h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 29;
		p += k;
		left -= k;
	}
	return (h ^ n) * 0x100000001b3ULL;
}

/* `n` counts the seal too. */
static inline bool
seal_holds(uint64_t key, const void *bytes, size_t n)
{
	uint64_t seal;

	if (n < SEAL_BYTES)
		return false;
	memcpy(&seal, (const unsigned char *)bytes + n - SEAL_BYTES, sizeof seal);
	return seal == seal_of(key, bytes, n - SEAL_BYTES);
}

#endif
