/*
 * vocab - the rank tables of OpenAI's encodings in one file that is mapped, read only, and so is in memory once for all
 * processes.
 *
 * File      a header of 256 bytes; for each encoding a hash table: a tag of 1 byte for each slot, which most searches in
 *           vain do not get beyond, slots of 8 bytes, and the bytes of all tokens; and the ranks of all tokens of two
 *           bytes. Numbers are in the order of the machine that made it. vocab_make.c makes it, of OpenAI's published
 *           tables
 * Trust     vocab_open() looks at the header alone, in constant time; a search stays within the file whatever stands in
 *           it. That every bit is as it was made is vocab_whole(), which reads all.
 * Replacing a new file takes the name of the old one; nothing writes into one that may be mapped. If somebody does, and
 *           cuts it, it is lost (guard.h): searches find nothing, and vocab_is_lost()
 * Errors    ERR_NOT_FOUND, ERR_IO; ERR_BAD_INPUT not such a file, cut, or damaged
 * Source    formats.md G.1, G.2
 */
#ifndef DIALECT_VOCAB_H
#define DIALECT_VOCAB_H

#include "base/err.h"
#include "base/text.h"

#include <stdint.h>

enum vocab_encoding { VOCAB_O200K, VOCAB_CL100K, VOCAB__MAX };

#define VOCAB_NONE UINT32_MAX
#define VOCAB_LONGEST 255        /* bytes of a token */
#define VOCAB_BYTES_MAX 16777216 /* of all tokens of an encoding: 24 bits */
#define VOCAB_SLOTS_MAX 4194304
#define VOCAB_PROBES_MAX 64
#define VOCAB_VERSION 1

/* Of an encoding in the file. Offsets from its beginning, multiples of 8. */
struct vocab_extent {
	uint64_t tags_at, slots_at, pairs_at, bytes_at;
	uint32_t slots; /* a power of two */
	uint32_t bytes;
	uint32_t tokens;
	uint32_t longest;
	uint32_t probes; /* slots that a search looks at, at most */
	uint32_t spare;
};

struct vocab_header {
	char magic[8];
	uint32_t order; /* of bytes: VOCAB_ORDER, as this machine writes it */
	uint32_t version;
	uint64_t size; /* of the file */
	uint64_t sum;  /* vocab_sum() of all behind the header */
	struct vocab_extent extents[VOCAB__MAX];
	char spare[256 - 32 - 56 * VOCAB__MAX - 8];
	uint64_t head_sum; /* of all before */
};
_Static_assert(sizeof(struct vocab_header) == 256, "as it stands in the file");

#define VOCAB_MAGIC "slcTOKEN"
#define VOCAB_ORDER 0x01020304u

struct vocab_slot {
	uint32_t rank;
	uint32_t at_len; /* offset in the bytes << 8 | length */
};

struct vocab_table {
	const unsigned char *tags; /* 0: the slot is free */
	const struct vocab_slot *slots;
	const uint32_t *pairs; /* by the first byte and the second, VOCAB_NONE for no token */
	const char *bytes;
	uint32_t mask, nbytes, longest, probes;
};

struct vocab {
	struct span file;
	struct vocab_table tables[VOCAB__MAX];
};

enum err vocab_open(const char *path, struct vocab *vocab_out, struct why *why) MUST_CHECK;
void vocab_close(struct vocab *vocab);
/* What was found since it was opened may be wrong. */
bool vocab_is_lost(const struct vocab *vocab);
/* Of bytes in memory, at an address that is a multiple of 8; they must stay. */
enum err vocab_read(struct span file, struct vocab *vocab_out, struct why *why) MUST_CHECK;
/* Is every bit as it was made? Reads all of it: a few milliseconds. */
bool vocab_whole(const struct vocab *vocab);

/* The rank of these bytes, n > 0, or VOCAB_NONE. */
uint32_t vocab_rank(const struct vocab_table *table, const char *p, size_t n);

/* Of these two bytes. */
static inline uint32_t
vocab_pair(const struct vocab_table *table, const char *p)
{
	return table->pairs[(unsigned)(unsigned char)p[0] << 8 | (unsigned char)p[1]];
}

/* For the one who makes the file. */
uint64_t vocab_hash(const char *p, size_t n);
unsigned char vocab_tag(uint64_t hash);
#define VOCAB_PAIRS 65536
uint64_t vocab_sum(const void *bytes, size_t n);

#endif
