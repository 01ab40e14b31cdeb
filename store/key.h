/*
 * key - build and split the 8-byte integer keys of `live`.
 *
 * Layout    kind (8 bits) | channel (16 bits) | rest (40 bits). Kinds keep their number for ever; a walk
 *           over one kind, or one kind of one channel, is a walk over a range of keys.
 *           Hashed rows (texts, pairs) use kind | 56 bits of hash and keep the full key in the value; a
 *           collision is resolved by trying the next key.
 */
#ifndef STORE_KEY_H
#define STORE_KEY_H

#include <stdint.h>

enum key_kind {
	KEY_HEADER = 1,  /* one row: format, uuid, next channel number */
	KEY_CHANNEL = 2, /* per channel: name, next account number */
	KEY_TEXT = 3,    /* hashed: a configured name -> its number */
	KEY_HOT = 4,     /* channel, shard: 31 account rows of 64 bytes */
	KEY_STAT = 5,    /* channel, account: totals and the last error */
	KEY_NOTE = 6,    /* channel, account: texts: reason, rule, disabled reason */
	KEY_SLOT = 7,    /* shard: 31 slot rows of 64 bytes */
	KEY_PAIR = 8,    /* hashed: cooldown of one model on one account */
	KEY_EVENT = 9,   /* sequence: the journal */
	KEY_TALLY = 10,  /* one row of counters */
	KEY_CURSOR = 11, /* channel: fallback probe, cursors */
};

static inline uint64_t
key_of(enum key_kind kind, uint16_t channel, uint64_t rest)
{
	return (uint64_t)kind << 56 | (uint64_t)channel << 40 | (rest & 0xffffffffffULL);
}

static inline uint64_t
key_hashed(enum key_kind kind, uint64_t hash)
{
	return (uint64_t)kind << 56 | (hash & 0xffffffffffffffULL);
}

static inline uint64_t
key_last_of(enum key_kind kind)
{
	return (uint64_t)kind << 56 | 0xffffffffffffffULL;
}

static inline uint64_t
key_rest(uint64_t key)
{
	return key & 0xffffffffffULL;
}

/* FNV-1a, the hash of all hashed rows. Part of the format: never change it. */
static inline uint64_t
key_hash(uint64_t seed, const void *bytes, uint64_t n)
{
	const unsigned char *p = bytes;
	uint64_t h = seed ? seed : 0xcbf29ce484222325ULL;

	for (uint64_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	return h;
}

#endif
