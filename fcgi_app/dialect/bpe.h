/*
 * bpe - byte-pair encoding of one piece of text: into how many tokens it falls.
 *
 * Rule      a piece that is a token is that token; else, from single bytes on, the two neighbours whose bytes together
 *           have the lowest rank become one, the leftmost of equals first, until no two are a token
 * Long      pieces are cut into windows. A sequence of tokens is the encoding of its text if and only if each two
 *           neighbours are that of theirs: a merge over the border of two would have to be the first one over any border,
 *           so it would happen to these two alone, too. So a cut is right where the tokens at both its sides hold.
 * Time      linear in the bytes, whatever stands in them
 * Again     with a memo the counts of pieces that were merged are remembered by their hashes: conversations come again and
 *           again, and a clause of Chinese is one piece
 * Memory    the caller's room, 3 KB, and its memo, 64 KB
 * Source    formats.md G.1
 */
#ifndef DIALECT_BPE_H
#define DIALECT_BPE_H

#include "dialect/vocab.h"

#define BPE_WINDOW 256

/* Where the tokens of a window begin, and behind the last one its end. */
struct bpe_parts {
	uint16_t at[BPE_WINDOW + 1];
	size_t n;
};

#define BPE_MEMO 2048
#define BPE_MEMO_ROW 4

/* Each the hash of a piece, its last 16 bits replaced by the count. */
struct bpe_memo {
	uint64_t rows[BPE_MEMO][BPE_MEMO_ROW];
};

struct bpe_room {
	uint32_t ranks[BPE_WINDOW];
	struct bpe_parts windows[2], pair;
	struct bpe_memo *memo; /* zeroed before its first use; NULL: none */
};

/* The token ids, as many as there is room for. */
struct bpe_ids {
	uint32_t *at;
	size_t n, cap;
};

/* `ids` may be NULL. */
size_t bpe_count(
    const struct vocab_table *table, struct span piece, struct bpe_room *room, struct bpe_ids *ids);

#endif
