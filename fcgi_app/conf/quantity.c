#include "conf/quantity.h"

#include <stdio.h>

struct unit {
	const char *name;
	int64_t factor;
};

/* The largest unit that divides; the last one always does. */
static void
print_with_unit(int64_t v, const struct unit *units, char out[QUANTITY_TEXT])
{
	while (v != 0 && units->factor > 1 && v % units->factor != 0)
		units++;
	if (v == 0)
		while (units->factor > 1000)
			units++;
	snprintf(out, QUANTITY_TEXT, "%lld%s", (long long)(v / units->factor), units->name);
}

void
quantity_print_duration(int64_t ms, char out[QUANTITY_TEXT])
{
	static const struct unit units[] = {
	    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

	print_with_unit(ms, units, out);
}

bool
quantity_size(struct span text, int64_t *bytes_out)
{
	static const char letters[] = "kmgt";
	int64_t factor = 1, v;

	if (text.n == 0)
		return false;
	for (size_t i = 0; letters[i] != '\0'; i++)
		if (text_lower(text.p[text.n - 1]) == letters[i])
			factor = (int64_t)1 << (10 * (i + 1));
	if (factor > 1)
		text.n--;
	if (!text_i64(text, 0, INT64_MAX / factor, &v) || text.p[0] == '-')
		return false;
	*bytes_out = v * factor;
	return true;
}

void
quantity_print_size(int64_t bytes, char out[QUANTITY_TEXT])
{
	static const struct unit units[] = {{"T", (int64_t)1 << 40}, {"G", (int64_t)1 << 30},
	    {"M", (int64_t)1 << 20}, {"k", (int64_t)1 << 10}, {"", 1}};

	print_with_unit(bytes, units, out);
}

bool
quantity_clock(struct span text, int64_t *minute_out)
{
	int64_t hour, minute;

	if (text.n != 5 || text.p[2] != ':' || !text_i64((struct span){text.p, 2}, 0, 23, &hour) ||
	    !text_i64((struct span){text.p + 3, 2}, 0, 59, &minute))
		return false;
	if (text.p[0] == '-' || text.p[3] == '-')
		return false;
	*minute_out = hour * 60 + minute;
	return true;
}

void
quantity_print_clock(int64_t minute, char out[QUANTITY_TEXT])
{
	snprintf(out, QUANTITY_TEXT, "%02d:%02d", (int)(minute / 60), (int)(minute % 60));
}

/* Up to 15 digits and powers of ten up to 22 are exact in a double, so what people write is read exactly. */
static double
scale(double v, int64_t exponent)
{
	static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

	while (exponent > 22) {
		v *= 1e22;
		exponent -= 22;
	}
	while (exponent < -22) {
		v /= 1e22;
		exponent += 22;
	}
	return exponent < 0 ? v / tens[-exponent] : v * tens[exponent];
}

/* Digits and at most one point, from *at on: value = mantissa * 10^exponent. Digits beyond the 15th only count. */
static bool
read_digits(struct span text, size_t *at, int64_t *mantissa, int64_t *exponent)
{
	bool fraction = false;

	for (; *at < text.n && text_lower(text.p[*at]) != 'e'; (*at)++) {
		char c = text.p[*at];
		bool room = *mantissa < 100000000000000;

		if (c == '.' && !fraction) {
			fraction = true;
			continue;
		}
		if (c < '0' || c > '9')
			return false;
		if (room)
			*mantissa = *mantissa * 10 + (c - '0');
		*exponent += (room ? 0 : 1) - (fraction ? 1 : 0);
	}
	return true;
}

static bool
read_exponent(struct span text, size_t at, int64_t *exponent)
{
	int64_t written;

	if (at == text.n)
		return true;
	at += at + 1 < text.n && text.p[at + 1] == '+' ? 2 : 1;
	if (!text_i64(text_from(text, at), -1000, 1000, &written))
		return false;
	*exponent += written;
	return true;
}

bool
quantity_real(struct span text, double *out)
{
	bool minus = text.n > 0 && text.p[0] == '-';
	size_t at = minus;
	int64_t mantissa = 0, exponent = 0;
	double v = 0;

	if (text.n == at || !read_digits(text, &at, &mantissa, &exponent) ||
	    !read_exponent(text, at, &exponent))
		return false;
	if (mantissa != 0 && exponent > 285)
		return false;
	if (mantissa != 0 && exponent > -340)
		v = scale((double)mantissa, exponent);
	*out = minus ? -v : v;
	return true;
}

void
quantity_print_real(double v, char out[QUANTITY_TEXT])
{
	if (v >= -1e15 && v <= 1e15 && !(v < (double)(int64_t)v) && !(v > (double)(int64_t)v)) {
		snprintf(out, QUANTITY_TEXT, "%lld", (long long)v);
		return;
	}
	for (int precision = 1; precision <= 17; precision++) {
		double again;
		int n = snprintf(out, QUANTITY_TEXT, "%.*g", precision, v);

		if (quantity_real((struct span){out, (size_t)n}, &again) && !(again < v) &&
		    !(again > v))
			return;
	}
}

void
quantity_print_micros(int64_t micros, char out[QUANTITY_TEXT])
{
	size_t n = (size_t)snprintf(out, QUANTITY_TEXT, "%lld.%06lld",
	    (long long)(micros / 1000000), (long long)(micros % 1000000));

	while (out[n - 1] == '0')
		out[--n] = '\0';
	if (out[n - 1] == '.')
		out[--n] = '\0';
}
