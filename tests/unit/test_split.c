#include "dialect/split.h"
#include "lib/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

/* The text in pieces, with '|' between them. NULL: as o200k. */
static const struct {
	const char *what, *o200k, *cl100k;
} rows[] = {
    {"nothing", "", NULL},
    {"words", "Hello|,| world|!", NULL},
    {"a suffix goes with the word, or is one", "don't| I'LL| we've", "don|'t| I|'LL| we|'ve"},
    {"capitals begin a word", "Ab|CDef| GHi| HTTPServer| A", "AbCDef| GHi| HTTPServer| A"},
    {"... also beyond ASCII",
        "\xc3\x80"
        "B| \xc3\xa9|COLE",
        "\xc3\x80"
        "B| \xc3\xa9"
        "COLE"},
    {"a sign before a word", "(foo|\t|.bar|\tbaz", NULL},
    {"digits by threes", "x|123|456|7| |8|.|\xd9\xa1\xd9\xa2\xd9\xa3|\xd9\xa4", NULL},
    {"blanks leave one to the word", "a| | b|   ", NULL},
    {"lines", "a|\n| | b|\n\n|c| ", NULL},
    {"blanks up to the last line", "  \n \t\n|x", NULL},
    {"lines belong to signs", "...\n|x|;\r\n\r\n| | y", NULL},
    {"slashes, too, of o200k", "...\n/\n//| x", "...\n|/\n|//| x"},
    {"a slash alone", "a|/b| /|c", NULL},
    {"accents",
        "\xc3\x9cn\xc3\xaf"
        "c\xc3\xb6"
        "d\xc3\xa9| na\xc3\xafve",
        NULL},
    {"combining marks are of the word, in o200k", "e\xcc\x81t\xcc\xa7", "e|\xcc\x81t|\xcc\xa7"},
    {"scripts in one word",
        "\xe6\x97\xa5\xe6\x9c\xac\xe3\x83\x86|,| \xe4\xb8\xad"
        "abc",
        NULL},
    {"other apostrophes are none", "a|\xe2\x80\x99s", NULL},
    {"the long s is an s", "b'\xc5\xbf|x", "b|'\xc5\xbf|x"},
    {"emoji", "\xf0\x9f\x99\x82\xf0\x9f\x99\x82| ok", NULL},
    {"next line is a blank", "a|  |\xc2\x85|.", NULL},
    {"U+180E is none", " \xe1\xa0\x8e", NULL},
    {"U+FEFF is none", " \xef\xbb\xbf#", NULL},
    {"ideographic blanks", "\xe3\x80\x80|\xe3\x80\x80x", NULL},
    {"a letter of Unicode 15",
        "a\xf0\xb1\x8d\x90"
        "b| x",
        NULL},
    {"a digit of Unicode 16",
        "\xf0\x90\xb5\x80"
        "12|3",
        NULL},
    {"more letters behind a suffix", "it's|x| it's|'ll", "it|'s|x| it|'s|'ll"},
    {"two apostrophes", "''|x", NULL},
    {"controls", "\x01\x1f|a|\x7f\r\n", NULL},
};

static const char *
in_pieces(struct split *split, enum vocab_encoding encoding, struct span text, bool slowly)
{
	static char out[4096];
	struct span piece;
	size_t n = 0;

	split_begin(split, encoding, text);
	while (slowly ? split_next_slowly(split, &piece) : split_next(split, &piece)) {
		assert_true(piece.n > 0 && n + piece.n + 2 < sizeof out);
		if (n > 0)
			out[n++] = '|';
		memcpy(out + n, piece.p, piece.n);
		n += piece.n;
	}
	out[n] = '\0';
	return out;
}

static void
pieces(void **state)
{
	struct split *split = split_new();

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++)
		for (int e = 0; e < VOCAB__MAX; e++) {
			const char *want = e == VOCAB_CL100K && rows[i].cl100k != NULL
			                       ? rows[i].cl100k
			                       : rows[i].o200k;
			char text[256];
			size_t n = 0;

			for (const char *p = want; *p != '\0'; p++)
				if (*p != '|')
					text[n++] = *p;
			for (int slowly = 0; slowly < 2; slowly++) {
				const char *got = in_pieces(
				    split, (enum vocab_encoding)e, (struct span){text, n}, slowly);

				if (strcmp(got, want) != 0)
					fail_msg("%s, encoding %d: '%s', want '%s'", rows[i].what,
					    e, got, want);
			}
		}
	split_free(&split);
}

/* Signs that decide something, and some that the hand leaves to the expression. */
static const char *const atoms[] = {"a", "b", "S", "T", "'s", "'T", "'re", "'VE", "'lL", "'", " ",
    "  ", "\t", "\n", "\r\n", "\v", "\f", "0", "12", "345", "/", "//", "-", "...", "\x01", "\x7f",
    "word", "Word", "WORD", "\xc3\xa9", "\xc3\x80", "\xc5\xbf", "\xc2\xa0", "\xc2\x85", "\xcc\x81",
    "\xe4\xbd\xa0", "\xe3\x80\x80", "\xd9\xa1", "\xe2\x85\xa7", "\xf0\x9f\x99\x82",
    "\xf0\xb1\x8d\x90", "\xc7\x85", "\xca\xb0", "\xef\xbb\xbf"};

/* The hand cuts as the expression does. */
static void
by_hand(void **state)
{
	struct split *split = split_new();
	unsigned long long seed = 3;

	(void)state;
	for (int i = 0; i < 40000; i++) {
		enum vocab_encoding e = (enum vocab_encoding)(i % VOCAB__MAX);
		/* most of them ASCII alone */
		unsigned of = i % 4 == 0 ? NELEM(atoms) : 30, n = 1 + ranks_random(&seed, 12);
		char text[128], want[4096];
		size_t length = 0;

		for (unsigned k = 0; k < n; k++) {
			const char *atom = atoms[ranks_random(&seed, of)];
			size_t size = strlen(atom);

			memcpy(text + length, atom, size);
			length += size;
		}
		snprintf(want, sizeof want, "%s",
		    in_pieces(split, e, (struct span){text, length}, true));
		if (strcmp(in_pieces(split, e, (struct span){text, length}, false), want) != 0)
			fail_msg("text %d, encoding %d: '%s'", i, (int)e, want);
	}
	split_free(&split);
}

/* Long runs of anything, also of what expressions go back over. */
static void
linear(void **state)
{
	static const char *const units[] = {"a", "A", "\xc3\x80", "\xc3\xa9", "\xe4\xbd\xa0", " ",
	    "\n", " \n", "\xe3\x80\x80", "\xc2\x85", "'", "'s", "/", "\n/", "\xc3\x80\xc3\xa9", "1",
	    "\xf0\x9f\x99\x82", "\xc3\x80\xe4\xbd\xa0", "\xe3\x80\x80\n"};
	const size_t n = 1 << 20;
	struct split *split = split_new();
	char *text = malloc(n + 1);

	(void)state;
	assert_non_null(text);
	for (size_t u = 0; u < NELEM(units); u++) {
		size_t k = strlen(units[u]), whole = n - n % k, sum = 0;
		clock_t begin = clock();
		struct span piece;

		for (size_t i = 0; i < whole; i++)
			text[i] = units[u][i % k];
		text[whole] = 'x';
		split_begin(split, VOCAB_O200K, (struct span){text, whole + 1});
		while (split_next(split, &piece))
			sum += piece.n;
		assert_int_equal(sum, whole + 1);
		if (clock() - begin > CLOCKS_PER_SEC)
			fail_msg("'%s' takes too long", units[u]);
	}
	free(text);
	split_free(&split);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pieces),
	    cmocka_unit_test(by_hand),
	    cmocka_unit_test(linear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
