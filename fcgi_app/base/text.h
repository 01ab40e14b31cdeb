/*
 * text - views of bytes: compare, cut, read numbers. No copies, no locale, NUL is a byte like any other.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	const char *p;
	size_t n;
};

#define SPAN(literal) ((struct span){(literal), sizeof(literal) - 1})
#define NELEM(array) (sizeof(array) / sizeof((array)[0]))

struct span text_span(const char *z); /* NULL gives an empty span */
bool text_equal(struct span a, struct span b);
bool text_is(struct span a, const char *z);
/* ASCII letters without case */
bool text_is_fold(struct span a, const char *z);
bool text_starts(struct span a, const char *z);
bool text_starts_fold(struct span a, const char *z);
bool text_ends(struct span a, const char *z);
/* Index of `needle`, or a.n when it is not there. */
size_t text_find(struct span a, struct span needle);
size_t text_find_fold(struct span a, struct span needle);
bool text_has_fold(struct span a, const char *needle);
struct span text_trim(struct span a); /* blanks, tabs, CR, LF at both ends */
struct span text_from(struct span a, size_t at);
/* Cut the next token off *rest; separators are single bytes of `seps`; empty tokens are skipped. */
bool text_token(struct span *rest, const char *seps, struct span *token_out);

/* The whole text as a decimal number within [min, max], or false and *out untouched. */
bool text_i64(struct span a, int64_t min, int64_t max, int64_t *out);

/* `pattern` with '*' for any run of bytes; everything else byte for byte. */
bool text_match(struct span pattern, struct span a);

/* Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool text_utf8(struct span a);
/* The largest n' <= n that does not cut a UTF-8 sequence of `a`. */
size_t text_cut(struct span a, size_t n);

/* Copy for people and logs: control characters become '?', cut at `cap` - 1 bytes on a character, NUL-terminated. */
size_t text_clean(char *dst, size_t cap, struct span a);

/* Time does not depend on where the first difference is. */
bool text_same_secret(struct span a, struct span b);

/* Edit distance, at most `limit` + 1; for "did you mean". */
size_t text_distance(struct span a, struct span b, size_t limit);

char text_lower(char c);

/* Of ASCII; no locale has a say. */
static inline bool
text_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool
text_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The first `digits` hex digits of some bytes, in lower case; not terminated. */
void text_hex(const void *bytes, size_t digits, char *dst);

#endif
