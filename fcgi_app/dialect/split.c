#include "dialect/split.h"

#include "base/err.h"
#include "base/regex.h"

#include <stdlib.h>
#include <string.h>

/* What Unicode 15 to 17 added; PCRE2 10.42 knows 14. */
#define NEW_HIGH                                                                    \
	"\\x{1c89}\\x{a7cb}-\\x{a7cc}\\x{a7ce}\\x{a7d2}\\x{a7d4}\\x{a7da}\\x{a7dc}" \
	"\\x{10d50}-\\x{10d65}\\x{16ea0}-\\x{16eb8}"
#define NEW_LOW                                                                          \
	"\\x{1c8a}\\x{a7cd}\\x{a7cf}\\x{a7db}\\x{10d70}-\\x{10d85}\\x{16ebb}-\\x{16ed3}" \
	"\\x{1df25}-\\x{1df2a}"
#define NEW_OTHER                                                                              \
	"\\x{88f}\\x{c5c}\\x{cdc}\\x{a7f1}\\x{105c0}-\\x{105f3}\\x{10940}-\\x{10959}"          \
	"\\x{10d4a}-\\x{10d4f}\\x{10d6f}\\x{10ec2}-\\x{10ec7}\\x{1123f}-\\x{11240}"            \
	"\\x{11380}-\\x{11389}\\x{1138b}\\x{1138e}\\x{11390}-\\x{113b5}\\x{113b7}\\x{113d1}"   \
	"\\x{113d3}\\x{11bc0}-\\x{11be0}\\x{11db0}-\\x{11ddb}\\x{11f02}\\x{11f04}-\\x{11f10}"  \
	"\\x{11f12}-\\x{11f33}\\x{1342f}\\x{13441}-\\x{13446}\\x{13460}-\\x{143fa}"            \
	"\\x{16100}-\\x{1611d}\\x{16d40}-\\x{16d6c}\\x{16ff2}-\\x{16ff3}\\x{187f8}-\\x{187ff}" \
	"\\x{18cff}\\x{18d09}-\\x{18d1e}\\x{18d80}-\\x{18df2}\\x{1b132}\\x{1b155}"             \
	"\\x{1e030}-\\x{1e06d}\\x{1e4d0}-\\x{1e4eb}\\x{1e5d0}-\\x{1e5ed}\\x{1e5f0}"            \
	"\\x{1e6c0}-\\x{1e6de}\\x{1e6e0}-\\x{1e6e2}\\x{1e6e4}-\\x{1e6e5}\\x{1e6e7}-\\x{1e6ed}" \
	"\\x{1e6f0}-\\x{1e6f4}\\x{1e6fe}-\\x{1e6ff}\\x{2b739}-\\x{2b73f}\\x{2cea2}-\\x{2cead}" \
	"\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{33479}"
#define NEW_MARK                                                                              \
	"\\x{897}\\x{cf3}\\x{ece}\\x{1acf}-\\x{1add}\\x{1ae0}-\\x{1aeb}\\x{10d69}-\\x{10d6d}" \
	"\\x{10efa}-\\x{10eff}\\x{11241}\\x{113b8}-\\x{113c0}\\x{113c2}\\x{113c5}"            \
	"\\x{113c7}-\\x{113ca}\\x{113cc}-\\x{113d0}\\x{113d2}\\x{113e1}-\\x{113e2}"           \
	"\\x{11b60}-\\x{11b67}\\x{11f00}-\\x{11f01}\\x{11f03}\\x{11f34}-\\x{11f3a}"           \
	"\\x{11f3e}-\\x{11f42}\\x{11f5a}\\x{13440}\\x{13447}-\\x{13455}\\x{1611e}-\\x{1612f}" \
	"\\x{1e08f}\\x{1e4ec}-\\x{1e4ef}\\x{1e5ee}-\\x{1e5ef}\\x{1e6e3}\\x{1e6e6}"            \
	"\\x{1e6ee}-\\x{1e6ef}\\x{1e6f5}"
#define NEW_NUMBER                                                                             \
	"\\x{10d40}-\\x{10d49}\\x{116d0}-\\x{116e3}\\x{11bf0}-\\x{11bf9}\\x{11de0}-\\x{11de9}" \
	"\\x{11f50}-\\x{11f59}\\x{16130}-\\x{16139}\\x{16d70}-\\x{16d79}\\x{16ff4}-\\x{16ff6}" \
	"\\x{1ccf0}-\\x{1ccf9}\\x{1d2c0}-\\x{1d2d3}\\x{1e4f0}-\\x{1e4f9}\\x{1e5f1}-\\x{1e5fa}"

/* White_Space: \s would have U+180E, too. */
#define WS "\\t-\\r\\x{85}\\p{Z}"
#define SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS "[" WS "]*[\\r\\n]+|[" WS "]+(?![^" WS "])|[" WS "]+"

/* Letters, and so on: what stands between the brackets of a class. */
#define HIGH(l, m, o) "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}" l m o "]"
#define LOW(l, m, o) "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}" l m o "]"
#define BEFORE(letter, number) "[^\\r\\n" letter number "]?"
#define DIGITS(number) "[" number "]{1,3}"
#define OTHERS(letter, number) " ?[^" WS letter number "]+"

/* formats.md G.1 */
#define O200K(high, low, letter, number)                         \
	BEFORE(letter, number)                                   \
	high "*" low "+" SUFFIX "?|" BEFORE(letter, number) high \
	    "+" low "*" SUFFIX "?|" DIGITS(number) "|" OTHERS(letter, number) "[\\r\\n/]*|" BLANKS
#define CL100K(letter, number)                                                        \
	SUFFIX "|" BEFORE(letter, number) "[" letter "]+|" DIGITS(number) "|" OTHERS( \
	    letter, number) "[\\r\\n]*|" BLANKS

#define ALL_LETTERS "\\p{L}" NEW_OTHER NEW_HIGH NEW_LOW
#define ALL_NUMBERS "\\p{N}" NEW_NUMBER

enum {
	KNOWN,
	ALL,
	EXPRESSIONS
}; /* what PCRE2 knows; the newer ones, too, which costs twice the time */

static const struct span expressions[VOCAB__MAX][EXPRESSIONS] =
    {
        [VOCAB_O200K] =
            {
                [KNOWN] = SPAN(O200K(HIGH("", "", ""), LOW("", "", ""), "\\p{L}", "\\p{N}")),
                [ALL] = SPAN(O200K(HIGH(NEW_HIGH, NEW_MARK, NEW_OTHER),
                    LOW(NEW_LOW, NEW_MARK, NEW_OTHER), ALL_LETTERS, ALL_NUMBERS)),
            },
        [VOCAB_CL100K] =
            {
                [KNOWN] = SPAN(CL100K("\\p{L}", "\\p{N}")),
                [ALL] = SPAN(CL100K(ALL_LETTERS, ALL_NUMBERS)),
            },
};

struct split {
	struct regex *by[VOCAB__MAX][EXPRESSIONS]; /* NULL: not needed yet */
	enum vocab_encoding encoding;
	struct span text;
	size_t at;
	const struct regex *regex; /* for this text; NULL: not needed yet */
};

/* What a character is for the hand; of what is not ASCII it knows nothing. */
enum class {
	OTHER = '.',
	HIGH_LETTER = 'A',
	LOW_LETTER = 'a',
	DIGIT = '0',
	BLANK = '_',
	LINE = 'n',
	WIDE = 'w',
	END = 'e',
};

static const char classes[] = "........._n__n.................." /* control characters */
                              "_...............0000000000......"
                              ".AAAAAAAAAAAAAAAAAAAAAAAAAA....."
                              ".aaaaaaaaaaaaaaaaaaaaaaaaaa.....";

static enum class class_at(struct span text, size_t at) {
	unsigned char c = at < text.n ? (unsigned char)text.p[at] : 0;

	if (at >= text.n) return END;
	return c < 0x80 ? (enum class)classes[c] : WIDE;
}

static size_t
run(struct span text, size_t at, enum class class)
{
	while (class_at(text, at) == class)
		at++;
	return at;
}

static bool is_letter(enum class class)
{
	return class == HIGH_LETTER || class == LOW_LETTER;
}

/* The hand knows only ASCII: where another character may take part it leaves the piece to the expression. */
#define LEAVE 0

/* Behind "'": 0 for none. */
static size_t
suffix(struct span text, size_t at)
{
	static const char *const two[] = {"re", "ve", "ll"};
	char c = at < text.n ? text_lower(text.p[at]) : '\0';
	struct span rest = at < text.n ? text_from(text, at) : SPAN("");

	if (c == 's' || c == 't' || c == 'm' || c == 'd')
		return 1;
	for (size_t i = 0; i < NELEM(two); i++)
		if (text_starts_fold(rest, two[i]))
			return 2;
	return 0;
}
/* The long s is one without case, so what is not ASCII may be a suffix. */
static bool
may_be_suffix(struct span text, size_t at)
{
	return at < text.n && text.p[at] == '\'' && class_at(text, at + 1) == WIDE;
}

static size_t
word_o200k(struct span text, size_t at)
{
	size_t end = run(text, run(text, at, HIGH_LETTER), LOW_LETTER);

	if (class_at(text, end) == WIDE || may_be_suffix(text, end))
		return LEAVE;
	if (end < text.n && text.p[end] == '\'' && suffix(text, end + 1) > 0)
		end += 1 + suffix(text, end + 1);
	return end;
}

static size_t
word_cl100k(struct span text, size_t at)
{
	while (is_letter(class_at(text, at)))
		at++;
	return class_at(text, at) == WIDE ? LEAVE : at;
}

static size_t
digits(struct span text, size_t at)
{
	size_t end = at;

	while (end < at + 3 && class_at(text, end) == DIGIT)
		end++;
	return end < at + 3 && class_at(text, end) == WIDE ? LEAVE : end;
}

static size_t
others(struct span text, size_t at, enum vocab_encoding encoding)
{
	at = run(text, at, OTHER);
	if (class_at(text, at) == WIDE)
		return LEAVE;
	while (class_at(text, at) == LINE ||
	       (encoding == VOCAB_O200K && at < text.n && text.p[at] == '/'))
		at++;
	return at;
}

/* Up to the last line's end; else all but the last, which goes with what follows. */
static size_t
blanks(struct span text, size_t at)
{
	size_t end = at, line = 0;
	enum class class;

	for (;; end++) {
		class = class_at(text, end);
		if (class == LINE)
			line = end + 1;
		else if (class != BLANK)
			break;
	}
	if (class == WIDE)
		return LEAVE;
	if (line > 0)
		return line;
	return class == END || end == at + 1 ? end : end - 1;
}

/* Where a word begins: here, or behind one sign that goes with it. */
static size_t
word_begin(struct span text, size_t at)
{
	enum class class = class_at(text, at);

	return is_letter(class) || class == LINE ? at : at + 1;
}

/* Where the piece ends. What is in one with what follows has been looked at before. */
static size_t
no_suffix(struct span text, size_t at, enum vocab_encoding encoding)
{
	enum class class = class_at(text, at), next = class_at(text, at + 1);
	size_t word = word_begin(text, at);

	if (is_letter(class_at(text, word)))
		return encoding == VOCAB_O200K ? word_o200k(text, word) : word_cl100k(text, word);
	if (class_at(text, word) == WIDE)
		return LEAVE;
	if (text.p[at] == ' ' && next == OTHER)
		return others(text, at + 1, encoding);
	return class == OTHER ? others(text, at, encoding) : blanks(text, at);
}

static size_t
by_hand(struct span text, size_t at, enum vocab_encoding encoding)
{
	enum class class = class_at(text, at);

	if (class == WIDE)
		return LEAVE;
	if (class == DIGIT)
		return digits(text, at);
	if (encoding == VOCAB_CL100K && text.p[at] == '\'') {
		size_t n = suffix(text, at + 1);

		if (n > 0)
			return at + 1 + n;
		if (may_be_suffix(text, at))
			return LEAVE;
	}
	return no_suffix(text, at, encoding);
}

struct split *
split_new(void)
{
	struct split *split = calloc(1, sizeof *split);

	if (split == NULL)
		die("no memory");
	return split;
}

void
split_free(struct split **split)
{
	if (*split == NULL)
		return;
	for (size_t i = 0; i < VOCAB__MAX; i++)
		for (size_t k = 0; k < EXPRESSIONS; k++)
			regex_free(&(*split)->by[i][k]);
	free(*split);
	*split = NULL;
}

/* May there be characters that PCRE2 does not know? Those of four bytes, and of three where some are new. */
static bool
is_rare(struct span text)
{
	static const char *const begins[] = {
	    "\xe0\xa2", "\xe0\xb1", "\xe0\xb3", "\xe0\xbb", "\xe1\xab", "\xe1\xb2", "\xea\x9f"};

	for (size_t at = 0; at + 1 < text.n; at++) {
		unsigned char c = (unsigned char)text.p[at];

		if (c >= 0xf0)
			return true;
		if (c != 0xe0 && c != 0xe1 && c != 0xea)
			continue;
		for (size_t i = 0; i < NELEM(begins); i++)
			if (memcmp(begins[i], text.p + at, 2) == 0)
				return true;
	}
	return false;
}

void
split_begin(struct split *split, enum vocab_encoding encoding, struct span text)
{
	split->encoding = encoding;
	split->text = text;
	split->at = 0;
	split->regex = NULL;
}

static const struct regex *
regex_of(struct split *split)
{
	size_t which = is_rare(split->text) ? ALL : KNOWN;
	struct regex **by = &split->by[split->encoding][which];

	if (*by == NULL)
		*by = regex_new(expressions[split->encoding][which]);
	return *by;
}

/* Where the piece ends. Some alternative fits any character, so nothing is left but too many steps. */
static size_t
by_expression(struct split *split)
{
	size_t n;

	if (split->regex == NULL)
		split->regex = regex_of(split);
	n = regex_length(split->regex, split->text, split->at);
	return n > 0 ? split->at + n : split->text.n;
}

static bool
take(struct split *split, size_t end, struct span *piece_out)
{
	*piece_out = (struct span){split->text.p + split->at, end - split->at};
	split->at = end;
	return true;
}

bool
split_next(struct split *split, struct span *piece_out)
{
	size_t end;

	if (split->at == split->text.n)
		return false;
	end = by_hand(split->text, split->at, split->encoding);
	return take(split, end == LEAVE ? by_expression(split) : end, piece_out);
}

bool
split_next_slowly(struct split *split, struct span *piece_out)
{
	return split->at < split->text.n && take(split, by_expression(split), piece_out);
}
