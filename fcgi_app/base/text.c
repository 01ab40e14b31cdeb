#include "base/text.h"

#include <string.h>

char
text_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

struct span
text_span(const char *z)
{
	return (struct span){z, z == NULL ? 0 : strlen(z)};
}

bool
text_equal(struct span a, struct span b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool
text_is(struct span a, const char *z)
{
	return text_equal(a, text_span(z));
}

static bool
same_fold(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text_lower(a[i]) != text_lower(b[i]))
			return false;
	return true;
}

bool
text_is_fold(struct span a, const char *z)
{
	return a.n == strlen(z) && same_fold(a.p, z, a.n);
}

bool
text_starts(struct span a, const char *z)
{
	size_t n = strlen(z);

	return a.n >= n && memcmp(a.p, z, n) == 0;
}

bool
text_starts_fold(struct span a, const char *z)
{
	size_t n = strlen(z);

	return a.n >= n && same_fold(a.p, z, n);
}

bool
text_ends(struct span a, const char *z)
{
	size_t n = strlen(z);

	return a.n >= n && memcmp(a.p + (a.n - n), z, n) == 0;
}

size_t
text_find(struct span a, struct span needle)
{
	const char *at;

	if (needle.n == 0 || needle.n > a.n)
		return a.n;
	at = needle.n == 1 ? memchr(a.p, needle.p[0], a.n) : memmem(a.p, a.n, needle.p, needle.n);
	return at == NULL ? a.n : (size_t)(at - a.p);
}

size_t
text_find_fold(struct span a, struct span needle)
{
	if (needle.n == 0 || needle.n > a.n)
		return a.n;
	for (size_t i = 0; i + needle.n <= a.n; i++)
		if (text_lower(a.p[i]) == text_lower(needle.p[0]) &&
		    same_fold(a.p + i, needle.p, needle.n))
			return i;
	return a.n;
}

bool
text_has_fold(struct span a, const char *needle)
{
	struct span s = text_span(needle);

	return s.n > 0 && text_find_fold(a, s) < a.n;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct span
text_trim(struct span a)
{
	while (a.n > 0 && is_blank(a.p[0]))
		a = text_from(a, 1);
	while (a.n > 0 && is_blank(a.p[a.n - 1]))
		a.n--;
	return a;
}

struct span
text_from(struct span a, size_t at)
{
	if (at >= a.n)
		return (struct span){a.p == NULL ? NULL : a.p + a.n, 0};
	return (struct span){a.p + at, a.n - at};
}

bool
text_token(struct span *rest, const char *seps, struct span *token_out)
{
	size_t a = 0, b;

	while (a < rest->n && strchr(seps, rest->p[a]) != NULL)
		a++;
	if (a == rest->n)
		return false;
	for (b = a; b < rest->n && strchr(seps, rest->p[b]) == NULL; b++)
		continue;
	*token_out = (struct span){rest->p + a, b - a};
	*rest = text_from(*rest, b);
	return true;
}

bool
text_i64(struct span a, int64_t min, int64_t max, int64_t *out)
{
	bool minus = a.n > 0 && a.p[0] == '-';
	int64_t v = 0;

	if (a.n == (size_t)minus)
		return false;
	for (size_t i = minus; i < a.n; i++) {
		int d = a.p[i] - '0';

		if (d < 0 || d > 9 || __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_sub_overflow(v, d, &v))
			return false; /* built downwards: the minimum has no positive twin */
	}
	if (!minus && __builtin_sub_overflow(0, v, &v))
		return false;
	if (v < min || v > max)
		return false;
	*out = v;
	return true;
}

bool
text_match(struct span pattern, struct span a)
{
	size_t p = 0, i = 0, star = SIZE_MAX, mark = 0;

	while (i < a.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			mark = i;
		} else if (p < pattern.n && pattern.p[p] == a.p[i]) {
			p++;
			i++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			i = ++mark;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

/* May `second` follow `first`? Neither overlong forms, nor surrogates, nor beyond U+10FFFF. */
static bool
utf8_follows(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xe0: return second >= 0xa0 && second <= 0xbf;
	case 0xed: return second >= 0x80 && second <= 0x9f;
	case 0xf0: return second >= 0x90 && second <= 0xbf;
	case 0xf4: return second >= 0x80 && second <= 0x8f;
	default: return second >= 0x80 && second <= 0xbf;
	}
}

/* Length of the well-formed sequence at s[0..n), 0 if there is none. */
static size_t
utf8_step(const unsigned char *s, size_t n)
{
	size_t len;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (n < len || !utf8_follows(s[0], s[1]))
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

bool
text_utf8(struct span a)
{
	const unsigned char *s = (const unsigned char *)a.p;
	size_t i = 0;

	while (i < a.n) {
		uint64_t word;
		size_t step;

		if (i + 8 <= a.n) {
			memcpy(&word, s + i, 8);
			if ((word & 0x8080808080808080ULL) == 0) {
				i += 8;
				continue;
			}
		}
		step = utf8_step(s + i, a.n - i);
		if (step == 0)
			return false;
		i += step;
	}
	return true;
}

size_t
text_cut(struct span a, size_t n)
{
	if (n >= a.n)
		return a.n;
	for (size_t back = 0; back < 4 && back <= n; back++)
		if (((unsigned char)a.p[n - back] & 0xc0) != 0x80)
			return n - back;
	return n;
}

/* C0, DEL and C1: the last is how some terminals spell escape sequences. */
static bool
is_control(const unsigned char *s, size_t step)
{
	return (step == 1 && (s[0] < 0x20 || s[0] == 0x7f)) ||
	       (step == 2 && s[0] == 0xc2 && s[1] < 0xa0);
}

size_t
text_clean(char *dst, size_t cap, struct span a)
{
	size_t n = text_cut(a, cap - 1), i = 0;

	while (i < n) {
		size_t step = utf8_step((const unsigned char *)a.p + i, n - i);

		if (step == 0 || is_control((const unsigned char *)a.p + i, step)) {
			dst[i] = '?';
			if (step == 2)
				dst[i + 1] = '?';
			i += step == 0 ? 1 : step;
			continue;
		}
		memcpy(dst + i, a.p + i, step);
		i += step;
	}
	dst[i] = '\0';
	return i;
}

bool
text_same_secret(struct span a, struct span b)
{
	unsigned char diff = a.n != b.n;

	for (size_t i = 0; i < a.n; i++)
		diff |= (unsigned char)(a.p[i] ^ (b.n == 0 ? 0 : b.p[i % b.n]));
	return diff == 0;
}

size_t
text_distance(struct span a, struct span b, size_t limit)
{
	size_t row[65];

	if (a.n > 64 || b.n > 64)
		return limit + 1;
	for (size_t j = 0; j <= b.n; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			size_t best = diagonal + (text_lower(a.p[i - 1]) != text_lower(b.p[j - 1]));

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[b.n] > limit ? limit + 1 : row[b.n];
}

void
text_hex(const void *bytes, size_t digits, char *dst)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < digits; i++)
		dst[i] = "0123456789abcdef"[i % 2 == 0 ? p[i / 2] >> 4 : p[i / 2] & 15];
}
