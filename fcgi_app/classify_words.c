#include "classify_words.h"

#define STAR_MAX_BYTES 60
#define MODEL_MIN_BYTES 2 /* a shorter name is in every text */

static bool
is_word(char c)
{
	char low = text_lower(c);

	return (low >= 'a' && low <= 'z') || text_is_digit(c);
}

/* ------------------------------------------------------------------ patterns */

/* How many bytes of `text` one sign of a pattern takes; 0 if it does not match. */
static size_t
step(char sign, struct span text)
{
	size_t n = 0;

	if (text.n == 0)
		return 0;
	if (sign != '#')
		return text_lower(sign) == text_lower(text.p[0]);
	if (!text_is_digit(text.p[0]))
		return 0;
	while (n < text.n && (text_is_digit(text.p[n]) || text.p[n] == ','))
		n++;
	return n;
}

static bool
match_here(struct span pattern, struct span text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, mark = 0, end = 0;

	while (p < pattern.n) {
		size_t n;

		if (pattern.p[p] == '*') {
			star = p++;
			mark = t;
			end = t + STAR_MAX_BYTES < text.n ? t + STAR_MAX_BYTES : text.n;
			continue;
		}
		n = step(pattern.p[p], text_from(text, t));
		if (n > 0) {
			p++;
			t += n;
			continue;
		}
		if (star == SIZE_MAX || mark >= end || text.p[mark] == '\n')
			return false;
		t = ++mark;
		p = star + 1;
	}
	return true;
}

static bool
match_phrase(struct span phrase, struct span text)
{
	if (phrase.n == 0)
		return false;
	if (phrase.p[0] == '^')
		return match_here(text_from(phrase, 1), text);
	for (size_t i = 0; i < text.n; i++) {
		if (i > 0 && is_word(phrase.p[0]) && is_word(text.p[i - 1]))
			continue;
		if (match_here(phrase, text_from(text, i)))
			return true;
	}
	return false;
}

bool
classify_words_match(struct span text, const char *pattern, struct span *which_out)
{
	struct span rest = text_span(pattern), phrase;

	while (text_token(&rest, "|", &phrase))
		if (match_phrase(phrase, text)) {
			if (which_out != NULL)
				*which_out = phrase;
			return true;
		}
	return false;
}

/* ------------------------------------------------------------------ what the caller sent */

/* A quote opens where no word ends: the apostrophe of "don't" is none. */
static bool
opens(struct span text, size_t i)
{
	char c = text.p[i];

	if (c != '\'' && c != '"' && c != '`')
		return false;
	return i == 0 || !is_word(text.p[i - 1]);
}

/* Behind the quote that closes the one at `i`; the end of the text if none does. */
static size_t
closes(struct span text, size_t i)
{
	for (size_t j = i + 1; j < text.n; j++)
		if (text.p[j] == text.p[i] && (j + 1 == text.n || !is_word(text.p[j + 1])))
			return j + 1;
	return text.n;
}

static void
without_model(struct buf *out, struct span text, struct span model)
{
	size_t at;

	while (model.n >= MODEL_MIN_BYTES && (at = text_find(text, model)) < text.n) {
		buf_span(out, (struct span){text.p, at});
		text = text_from(text, at + model.n);
	}
	buf_span(out, text);
}

struct classify_words
classify_words(struct arena *arena, struct span text, struct span model)
{
	struct buf *bare = arena_buf(arena, text.n), *plain = arena_buf(arena, text.n);
	struct classify_words words;
	size_t head = SIZE_MAX;
	size_t i = 0;

	without_model(bare, text, model);
	text = buf_text(bare);
	while (i < text.n) {
		if (!opens(text, i)) {
			buf_char(plain, text.p[i++]);
			continue;
		}
		if (head == SIZE_MAX)
			head = plain->n;
		i = closes(text, i);
	}
	words.plain = buf_text(plain);
	words.head = words.plain;
	if (head < words.head.n)
		words.head.n = head;
	return words;
}

bool
classify_words_name(struct span text, struct span model)
{
	size_t at, from = 0;

	if (model.n < MODEL_MIN_BYTES)
		return false;
	while (from < text.n && (at = text_find(text_from(text, from), model)) < text.n - from) {
		size_t begin = from + at, end = begin + model.n;

		if ((begin == 0 || !is_word(text.p[begin - 1])) &&
		    (end == text.n || !is_word(text.p[end])))
			return true;
		from = begin + 1;
	}
	return false;
}
