#include "dialect/split.h"

#include "base/err.h"
#include "base/regex.h"

#include <stdlib.h>

/* White_Space: \s would have U+180E, too. */
#define WS "\\t-\\r\\x{85}\\p{Z}"
#define SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define HIGH "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOW "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BLANKS "[" WS "]*[\\r\\n]+|[" WS "]+(?![^" WS "])|[" WS "]+"

static const struct span expressions[VOCAB__MAX] = {
    [VOCAB_O200K] = SPAN(BEFORE HIGH "*" LOW "+" SUFFIX "?|" BEFORE HIGH "+" LOW "*" SUFFIX
                                     "?|\\p{N}{1,3}| ?[^" WS "\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS),
    [VOCAB_CL100K] =
        SPAN(SUFFIX "|" BEFORE "\\p{L}+|\\p{N}{1,3}| ?[^" WS "\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS),
};

struct split {
	struct regex *by[VOCAB__MAX]; /* NULL: not needed yet */
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
		regex_free(&(*split)->by[i]);
	free(*split);
	*split = NULL;
}

size_t
split_by_expression(struct split *split, enum vocab_encoding encoding, struct span text, size_t at)
{
	struct regex **by = &split->by[encoding];
	size_t n;

	if (*by == NULL)
		*by = regex_new(expressions[encoding]);
	n = regex_length(*by, text, at);
	return n > 0 ? n : text.n - at;
}

size_t
split_next(struct split *split, enum vocab_encoding encoding, struct span text, size_t at)
{
	size_t end = by_hand(text, at, encoding);

	return end > at ? end - at : split_by_expression(split, encoding, text, at);
}
