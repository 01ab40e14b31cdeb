#include "dialect/bpe.h"

#include <string.h>

#define TRIES 16 /* cuts that are tried; of those in real text the first holds */

/* What is worked on: the table and the caller's room. */
struct work {
	const struct vocab_table *table;
	struct bpe_room *room;
	struct bpe_ids *ids;
};

static uint32_t
rank_of(const struct vocab_table *t, const char *p, const uint16_t *at)
{
	size_t n = (size_t)(at[2] - at[0]);

	return n <= t->longest ? vocab_rank(t, p + at[0], n) : VOCAB_NONE;
}

/* ranks[i] is that of part i and the one behind it. */
static size_t
lowest(const uint32_t *ranks, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++)
		if (ranks[i] < ranks[best])
			best = i;
	return best;
}

static void
merge(const struct work *w, const char *p, size_t n, struct bpe_parts *out)
{
	const struct vocab_table *t = w->table;
	uint32_t *ranks = w->room->ranks;
	uint16_t *at = out->at;
	size_t left = n;

	for (size_t i = 0; i <= n; i++)
		at[i] = (uint16_t)i;
	for (size_t i = 0; i + 1 < n; i++)
		ranks[i] = vocab_pair(t, p + i);
	while (left > 1) {
		size_t i = lowest(ranks, left - 1);

		if (ranks[i] == VOCAB_NONE)
			break;
		memmove(at + i + 1, at + i + 2, (left - i - 1) * sizeof *at);
		left--;
		if (i + 1 < left) {
			memmove(ranks + i + 1, ranks + i + 2, (left - i - 2) * sizeof *ranks);
			ranks[i] = rank_of(t, p, at + i);
		}
		if (i > 0)
			ranks[i - 1] = rank_of(t, p, at + i - 1);
	}
	out->n = left;
}

/* Do the tokens of these lengths stay as they are next to each other? */
static bool
holds(const struct work *w, const char *p, size_t first, size_t second)
{
	struct bpe_parts *pair = &w->room->pair;

	if (first + second > BPE_WINDOW)
		return false;
	merge(w, p, first + second, pair);
	return pair->n == 2 && pair->at[1] == first;
}

static void
note(const struct work *w, const char *p, const uint16_t *at, size_t n)
{
	struct bpe_ids *ids = w->ids;

	for (size_t i = 0; ids != NULL && i < n && ids->n < ids->cap; i++)
		ids->at[ids->n++] = vocab_rank(w->table, p + at[i], (size_t)(at[i + 1] - at[i]));
}

static size_t
window_of(size_t n)
{
	return n < BPE_WINDOW ? n : BPE_WINDOW;
}

/* How many tokens of `here` stand; `next` is the window behind them. Where no cut holds the earliest tried is taken. */
static size_t
cut(const struct work *w, struct span piece, const struct bpe_parts *here, struct bpe_parts *next)
{
	size_t k = here->n - here->n / 4, least = k > TRIES ? k - TRIES : 0;

	for (;; k--) {
		size_t at = here->at[k], last = at - here->at[k - 1];

		merge(w, piece.p + at, window_of(piece.n - at), next);
		if (k - 1 <= least || holds(w, piece.p + at - last, last, next->at[1]))
			return k;
	}
}

/* Are the bytes behind a step those that led to it, as far as cut() looked? Then it is the next one, too: runs of one sign. */
static bool
repeats(struct span piece, size_t step)
{
	return piece.n >= step + 2 * BPE_WINDOW &&
	       memcmp(piece.p, piece.p + step, 2 * BPE_WINDOW) == 0;
}

static size_t
count_long(const struct work *w, struct span piece)
{
	struct bpe_parts *here = &w->room->windows[0], *next = &w->room->windows[1];
	size_t n = 0;

	merge(w, piece.p, BPE_WINDOW, here);
	while (piece.n > BPE_WINDOW) {
		size_t k = cut(w, piece, here, next), step = here->at[k];
		struct bpe_parts *was = here;
		bool again = true;

		while (again) {
			note(w, piece.p, here->at, k);
			n += k;
			again = repeats(piece, step);
			piece = text_from(piece, step);
		}
		here = next;
		next = was;
	}
	note(w, piece.p, here->at, here->n);
	return n + here->n;
}

#define COUNT_MASK UINT64_C(0xffff)

/*
 * Both encodings share the memo. Nothing but the hash tells pieces apart here, and that of the table alone is the same for
 * some of different lengths: " =========" and "#========".
 */
static uint64_t
memo_hash(const struct vocab_table *table, struct span piece)
{
	return vocab_hash(piece.p, piece.n) ^ (uintptr_t)table * 0x9e3779b97f4a7c15u ^
	       piece.n * 0xd6e8feb86659fd93u;
}

/* 0: not remembered. */
static size_t
recall(const struct bpe_memo *memo, uint64_t hash)
{
	const uint64_t *row = memo->rows[hash % BPE_MEMO];

	for (size_t i = 0; i < BPE_MEMO_ROW; i++)
		if (((row[i] ^ hash) & ~COUNT_MASK) == 0)
			return (size_t)(row[i] & COUNT_MASK);
	return 0;
}

/* In place of the oldest there. */
static void
remember(struct bpe_memo *memo, uint64_t hash, size_t count)
{
	uint64_t *row = memo->rows[hash % BPE_MEMO];

	memmove(row + 1, row, (BPE_MEMO_ROW - 1) * sizeof *row);
	row[0] = (hash & ~COUNT_MASK) | count;
}

static size_t
count_anew(const struct work *w, struct span piece)
{
	struct bpe_parts *parts = &w->room->windows[0];

	if (piece.n > BPE_WINDOW)
		return count_long(w, piece);
	merge(w, piece.p, piece.n, parts);
	note(w, piece.p, parts->at, parts->n);
	return parts->n;
}

static size_t
count_again(const struct work *w, struct span piece)
{
	uint64_t hash = memo_hash(w->table, piece);
	size_t n = recall(w->room->memo, hash);

	if (n == 0) {
		n = count_anew(w, piece);
		remember(w->room->memo, hash, n);
	}
	return n;
}

size_t
bpe_count(
    const struct vocab_table *table, struct span piece, struct bpe_room *room, struct bpe_ids *ids)
{
	const struct work w = {table, room, ids};
	struct bpe_parts *parts = &room->windows[0];

	if (piece.n == 0)
		return 0;
	if (piece.n <= table->longest && vocab_rank(table, piece.p, piece.n) != VOCAB_NONE) {
		parts->at[0] = 0;
		parts->at[1] = (uint16_t)piece.n;
		note(&w, piece.p, parts->at, 1);
		return 1;
	}
	if (room->memo == NULL || ids != NULL || piece.n > COUNT_MASK)
		return count_anew(&w, piece);
	return count_again(&w, piece);
}
