#include "dialect/bpe.h"
#include "lib/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define LONGEST 3000

static struct vocab vocab;
static struct bpe_room *room;
static struct bpe_memo *memo;

static int
setup(void **state)
{
	struct why why;

	(void)state;
	room = calloc(1, sizeof *room);
	memo = calloc(1, sizeof *memo);
	if (room != NULL && memo != NULL && vocab_open(ranks_path(), &vocab, &why) == ERR_OK)
		return 0;
	fprintf(stderr, "%s (make tokenizer)\n", why.text);
	return -1;
}

static int
teardown(void **state)
{
	(void)state;
	vocab_close(&vocab);
	free(room);
	free(memo);
	return 0;
}

static uint32_t
rank_of(const struct vocab_table *t, const char *p, const size_t *at, size_t i, size_t n)
{
	return i + 1 >= n || at[i + 2] - at[i] > t->longest
	           ? VOCAB_NONE
	           : vocab_rank(t, p + at[i], at[i + 2] - at[i]);
}

/* The rule as it is written down, over the whole piece. */
static size_t
by_rule(const struct vocab_table *t, struct span piece, uint32_t *ids)
{
	static size_t at[LONGEST + 1];
	static uint32_t ranks[LONGEST];
	size_t n = piece.n;

	for (size_t i = 0; i <= n; i++)
		at[i] = i;
	for (size_t i = 0; i < n; i++)
		ranks[i] = rank_of(t, piece.p, at, i, n);
	if (n <= t->longest && vocab_rank(t, piece.p, n) != VOCAB_NONE) {
		at[1] = n;
		n = 1;
	}
	while (n > 1) {
		size_t best = 0;

		for (size_t i = 1; i < n; i++)
			if (ranks[i] < ranks[best])
				best = i;
		if (ranks[best] == VOCAB_NONE)
			break;
		for (size_t i = best + 1; i < n; i++) {
			at[i] = at[i + 1];
			ranks[i - 1] = ranks[i];
		}
		n--;
		ranks[best] = rank_of(t, piece.p, at, best, n);
		if (best > 0)
			ranks[best - 1] = rank_of(t, piece.p, at, best - 1, n);
	}
	for (size_t i = 0; i < n; i++)
		ids[i] = vocab_rank(t, piece.p + at[i], at[i + 1] - at[i]);
	return n;
}

/* What a piece is made of: of so many of these letters, each so often. */
static const struct {
	const char *what, *letters;
	unsigned longest, repeat;
	int pieces;
} kinds[] = {
    {"short words", "etaoinshrdlu", 20, 1, 2000},
    {"one letter", "a", 1500, 1, 5},
    {"two letters", "ab", 1500, 1, 8},
    {"letters", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", 900, 1, 12},
    {"runs of letters", "xyzXYZ", 900, 40, 8},
    {"blanks", " \t\n", 900, 30, 8},
    {"signs", "=-_*/#.<>(){}[]", 900, 9, 8},
    {"bytes of Chinese", "\xe4\xe5\xe6\xe8\xbd\xa0\xa5\xb8\x96\x8c", 900, 1, 12},
    {"halves of emoji", "\xf0\x9f\x99\x82\x8d\xef\xb8\x8f", 900, 2, 8},
    {"words that come again", "the of and in that is", 900, 1, 8},
};

static void
windows(void **state)
{
	static char text[LONGEST];
	static uint32_t want[LONGEST], ids[LONGEST];
	unsigned long long seed = 7;

	(void)state;
	for (size_t k = 0; k < NELEM(kinds); k++)
		for (int i = 0; i < kinds[k].pieces; i++) {
			const struct vocab_table *t = &vocab.tables[i % VOCAB__MAX];
			struct bpe_ids got = {ids, 0, LONGEST};
			unsigned n = 1 + ranks_random(&seed, kinds[k].longest);
			struct span piece = {text, 0};
			size_t count;
			bool bad;

			while (piece.n < n) {
				unsigned letter =
				    ranks_random(&seed, (unsigned)strlen(kinds[k].letters));
				unsigned often = 1 + ranks_random(&seed, kinds[k].repeat);

				for (; often > 0 && piece.n < n; often--)
					text[piece.n++] = kinds[k].letters[letter];
			}
			count = by_rule(t, piece, want);
			room->memo = NULL;
			bad = bpe_count(t, piece, room, NULL) != count;
			room->memo = memo; /* the first time, then again */
			bad |= bpe_count(t, piece, room, NULL) != count ||
			       bpe_count(t, piece, room, NULL) != count ||
			       bpe_count(t, piece, room, &got) != count || got.n != count ||
			       memcmp(ids, want, count * sizeof *ids) != 0;
			if (bad)
				fail_msg("%s, piece %d of %u bytes: not %zu tokens", kinds[k].what,
				    i, n, count);
		}
}

/* Pieces that differ in their first byte and their length alone are not taken for each other. */
static void
told_apart(void **state)
{
	static uint32_t want[LONGEST];
	char text[40];

	(void)state;
	for (unsigned first = 1; first < 256; first++)
		for (size_t n = 4; n < sizeof text; n++) {
			const struct vocab_table *t = &vocab.tables[first % VOCAB__MAX];
			struct span piece = {text, n};
			size_t count, got;

			memset(text, first % 3 == 0 ? '=' : '\xbd', n);
			text[0] = (char)first;
			count = by_rule(t, piece, want);
			got = bpe_count(t, piece, room, NULL);
			if (got != count)
				fail_msg(
				    "%02x and %zu more: %zu, want %zu", first, n - 1, got, count);
		}
}

/* More ids than there is room for. */
static void
room_for_ids(void **state)
{
	uint32_t two[2] = {0, 0};
	struct bpe_ids ids = {two, 0, 1};

	(void)state;
	assert_int_equal(bpe_count(&vocab.tables[0], SPAN("1234567890"), room, &ids), 4);
	assert_int_equal(ids.n, 1);
	assert_int_equal(two[1], 0);
	assert_int_equal(bpe_count(&vocab.tables[0], SPAN(""), room, &ids), 0);
}

/* A quarter of a megabyte that is one piece; what took its square would take minutes. */
static void
linear(void **state)
{
	static const char *const units[] = {"a", "ab", "zq", "\xe4\xbd\xa0", " ", "=-", "aAbB"};
	const size_t n = 1 << 18;
	char *text = malloc(n);

	(void)state;
	assert_non_null(text);
	for (size_t u = 0; u < NELEM(units); u++) {
		size_t k = strlen(units[u]);
		clock_t begin = clock();

		for (size_t i = 0; i < n; i++)
			text[i] = units[u][i % k];
		(void)bpe_count(&vocab.tables[0], (struct span){text, n}, room, NULL);
		if (clock() - begin > CLOCKS_PER_SEC)
			fail_msg("'%s' takes too long", units[u]);
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(windows),
	    cmocka_unit_test(told_apart),
	    cmocka_unit_test(room_for_ids),
	    cmocka_unit_test(linear),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
