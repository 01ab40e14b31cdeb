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
	KEY_HEADER = 1,   /* one row: format, uuid, next channel number */
	KEY_CHANNEL = 2,  /* per channel: name, next account number */
	KEY_TEXT = 3,     /* hashed: a configured name -> its number */
	KEY_HOT = 4,      /* channel, shard: 31 account rows of 64 bytes */
	KEY_STAT = 5,     /* channel, account: totals and the last error */
	KEY_NOTE = 6,     /* channel, account: texts: reason, rule, disabled reason */
	KEY_SLOT = 7,     /* shard: 31 slot rows of 64 bytes */
	KEY_PAIR = 8,     /* hashed: cooldown of one model on one account */
	KEY_EVENT = 9,    /* sequence: the journal */
	KEY_TALLY = 10,   /* one row of counters */
	KEY_CURSOR = 11,  /* channel: where the round robins stand */
	KEY_BREAKER = 12, /* channel: its three-state breaker */
	KEY_PRICE = 13,   /* channel, model, shard: 120 smoothed prices */
	KEY_LEDGER = 14,  /* day, hashed: sums of one client, channel, account and model */
	KEY_QUOTA = 15,   /* channel, shard: 40 quota rows of 48 bytes */
	KEY_STICKY = 16,  /* hashed: session and channel -> account */
	KEY_BOUND = 17,   /* channel, shard: sessions bound to each account */
	KEY_QUEUE = 18,   /* channel: who waits for a lease */
	KEY_JOB = 19,     /* job: when it is due, who runs it */
	/* of `book` alone: kept.h */
	KEY_KEPT = 20,      /* number: how old a kept text is; 0: sums */
	KEY_KEPT_NAME = 21, /* hashed: client and name -> number */
	KEY_KEPT_TEXT = 22, /* number, piece: bytes */
	/* of both */
	KEY_TARGET = 23, /* channel, hash of a model: how that model does there */
	KEY_TASK = 24,   /* hashed: session -> kind of its work */
	/* of `book` alone: talk.h */
	KEY_TALK = 25,      /* number: one conversation; 0: sums */
	KEY_TALK_NAME = 26, /* hashed: session -> number */
	KEY_TALK_TURN = 27, /* number, place: bytes */
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
