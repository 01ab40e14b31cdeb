#include "base/lex.h"

#include <string.h>
#ifdef __SSE2__
#	include <emmintrin.h>
#endif

static const char *
refuse(struct lex_fault *fault, const char *at, const char *what)
{
	*fault = (struct lex_fault){what, at};
	return NULL;
}

static bool
is_ascii(char c)
{
	return ((unsigned char)c & 0x80) == 0;
}

/* One digit or more. */
static const char *
read_digits(const char *p, const char *end, struct lex_fault *fault)
{
	const char *first = p;

	while (p < end && text_is_digit(*p))
		p++;
	return p == first ? refuse(fault, p, "a digit was expected") : p;
}

static const char *
read_exponent(const char *p, const char *end, struct lex_fault *fault)
{
	if (p == NULL || p == end || (*p != 'e' && *p != 'E'))
		return p;
	p++;
	if (p < end && (*p == '+' || *p == '-'))
		p++;
	return read_digits(p, end, fault);
}

const char *
lex_number(const char *p, const char *end, struct lex_fault *fault)
{
	const char *first = p < end && *p == '-' ? p + 1 : p;

	p = read_digits(first, end, fault);
	if (p == NULL)
		return NULL;
	if (*first == '0' && p - first > 1)
		return refuse(fault, first, "a number must not begin with 0");
	if (p < end && *p == '.')
		p = read_digits(p + 1, end, fault);
	return read_exponent(p, end, fault);
}

/* What is written behind the 'e'. Far beyond what matters it may be off. */
static int64_t
read_power(struct span s)
{
	bool minus = s.n > 0 && s.p[0] == '-';
	size_t i = s.n > 0 && !text_is_digit(s.p[0]) ? 1 : 0;
	int64_t v = 0;

	for (; i < s.n && v < INT32_MAX; i++)
		v = v * 10 + (s.p[i] - '0');
	return minus ? -v : v;
}

/* The digits of `s`, but a dot, with the point moved before the digit number `point`; negative, as the minimum has no
 * positive twin. */
static bool
read_shifted(struct span s, int64_t point, int64_t *out)
{
	int64_t v = 0, k = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '.')
			continue;
		if (k++ >= point) {
			if (s.p[i] != '0')
				return false;
			continue;
		}
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_sub_overflow(v, s.p[i] - '0', &v))
			return false;
	}
	for (; v != 0 && k < point; k++)
		if (__builtin_mul_overflow(v, 10, &v))
			return false;
	*out = v;
	return true;
}

bool
lex_whole(struct span s, int64_t *out)
{
	bool minus = s.n > 0 && s.p[0] == '-';
	struct lex_fault fault;
	size_t e, dot;
	int64_t v;

	if (s.n == 0 || lex_number(s.p, s.p + s.n, &fault) != s.p + s.n)
		return false;
	s = text_from(s, minus);
	for (e = 0; e < s.n && s.p[e] != 'e' && s.p[e] != 'E'; e++)
		continue;
	for (dot = 0; dot < e && s.p[dot] != '.'; dot++)
		continue;
	if (!read_shifted(
	        (struct span){s.p, e}, (int64_t)dot + read_power(text_from(s, e + 1)), &v))
		return false;
	if (!minus && __builtin_sub_overflow(0, v, &v))
		return false;
	*out = v;
	return true;
}

size_t
lex_plain(struct span s)
{
	const uint64_t ones = 0x0101010101010101U, tops = 0x8080808080808080U;
	size_t i = 0;

	for (; s.n - i >= 8; i += 8) {
		uint64_t v, quote, backslash;

		memcpy(&v, s.p + i, 8);
		quote = v ^ ones * '"';
		backslash = v ^ ones * '\\';
		/* among bytes below 0x80, x - n has its top bit set where x < n */
		if (((v | (v - ones * ' ') | (quote - ones) | (backslash - ones)) & tops) != 0)
			break;
	}
	while (i < s.n && is_ascii(s.p[i]) && s.p[i] >= ' ' && s.p[i] != '"' && s.p[i] != '\\')
		i++;
	return i;
}

size_t
lex_utf8(struct span s)
{
	unsigned char lead = (unsigned char)s.p[0];
	size_t n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	return n <= s.n && text_utf8((struct span){s.p, n}) ? n : 0;
}

static int
hex_digit(char c)
{
	if (text_is_digit(c))
		return c - '0';
	c = text_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number in the \uXXXX at the beginning of `s`, or -1. */
static long
hex_unit(struct span s)
{
	long unit = 0;

	if (s.n < 6 || s.p[0] != '\\' || s.p[1] != 'u')
		return -1;
	for (size_t i = 2; i < 6; i++) {
		int digit = hex_digit(s.p[i]);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

static const char *
read_escape(const char *p, const char *end, struct lex_seen *seen, struct lex_fault *fault)
{
	long unit;

	seen->escape = true;
	if (end - p < 2)
		return refuse(fault, end, "the text ends inside a string");
	if (p[1] != 'u') {
		if (p[1] == '\0' || strchr("\"\\/bfnrt", p[1]) == NULL)
			return refuse(fault, p, "unknown escape in a string");
		return p + 2;
	}
	unit = hex_unit((struct span){p, (size_t)(end - p)});
	if (unit < 0)
		return refuse(fault, p, "\\u needs four hexadecimal digits");
	seen->nul |= unit == 0;
	return p + 6;
}

/* The run of bytes beyond ASCII that begins at p; checked as a whole, which is quicker than one by one. */
static const char *
read_utf8(const char *p, const char *end, struct lex_fault *fault)
{
	struct span run = {p, 0};
	size_t step;

	while (p + run.n < end && !is_ascii(p[run.n]))
		run.n++;
	if (text_utf8(run))
		return p + run.n;
	while ((step = lex_utf8(run)) > 0)
		run = text_from(run, step);
	return refuse(fault, run.p, "invalid UTF-8");
}

const char *
lex_string(const char *p, const char *end, struct lex_seen *seen_out, struct lex_fault *fault)
{
	*seen_out = (struct lex_seen){false, false};
	while (p != NULL) {
		p += lex_plain((struct span){p, (size_t)(end - p)});
		if (p == end)
			p = refuse(fault, p, "the text ends inside a string");
		else if (*p == '"')
			return p + 1;
		else if (*p == '\\')
			p = read_escape(p, end, seen_out, fault);
		else if (!is_ascii(*p))
			p = read_utf8(p, end, fault);
		else
			p = refuse(fault, p, "raw control character in a string");
	}
	return NULL;
}

static size_t
put_utf8(long c, char out[4])
{
	static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(leads[n] | c);
	return n;
}

size_t
lex_unescape(struct span s, char out[4], size_t *used_out)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	long unit = hex_unit(s), low;

	if (unit < 0) {
		const char *at = s.n > 1 && s.p[1] != '\0' ? strchr(from, s.p[1]) : NULL;

		*used_out = s.n > 1 ? 2 : 1;
		out[0] = at != NULL ? to[at - from] : s.p[*used_out - 1];
		return 1;
	}
	*used_out = 6;
	if (unit < 0xd800 || unit > 0xdfff)
		return put_utf8(unit, out);
	low = unit < 0xdc00 ? hex_unit(text_from(s, 6)) : -1;
	if (low < 0xdc00 || low > 0xdfff)
		return put_utf8(0xfffd, out);
	*used_out = 12;
	return put_utf8(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00), out);
}

bool
lex_same(struct span inner, struct span want)
{
	while (inner.n > 0) {
		char c[4] = {inner.p[0]};
		size_t used = 1, n = 1;

		if (c[0] == '\\')
			n = lex_unescape(inner, c, &used);
		if (want.n < n || memcmp(want.p, c, n) != 0)
			return false;
		want = text_from(want, n);
		inner = text_from(inner, used);
	}
	return want.n == 0;
}

/* Behind the string that begins at p: a quote ends it unless an odd number of backslashes stands before. */
static const char *
skip_string(const char *p, const char *end)
{
	const char *quote = p;

	while ((quote = memchr(quote + 1, '"', (size_t)(end - quote - 1))) != NULL) {
		const char *q = quote;

		while (q - 1 > p && q[-1] == '\\')
			q--;
		if ((quote - q) % 2 == 0)
			return quote + 1;
	}
	return end;
}

static const char *
skip_container(const char *p, const char *end)
{
	size_t depth = 0;

	while (p < end) {
		char c = *p;

		p = c == '"' ? skip_string(p, end) : p + 1;
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && --depth == 0)
			break;
	}
	return p;
}

const char *
lex_skip(const char *p, const char *end)
{
	if (p == end)
		return p;
	if (*p == '"')
		return skip_string(p, end);
	if (*p == '{' || *p == '[')
		return skip_container(p, end);
	while (p < end && memchr(",]} \t\r\n", *p, 7) == NULL)
		p++;
	return p;
}
