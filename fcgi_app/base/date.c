#include "base/date.h"

#include <string.h>

#define DAY_S 86400
#define YEAR_9999_S INT64_C(253402300799) /* its last second */

static const char *const months[] = {
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char *const weekdays[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

/* Eras of 400 years that begin in March, so that the leap day is the last day of its year. */
int64_t
date_seconds(const struct date_civil *civil)
{
	int64_t year = (int64_t)civil->year - (civil->month <= 2);
	int64_t era = (year >= 0 ? year : year - 399) / 400;
	int64_t of_era = year - era * 400;
	int64_t of_year =
	    (153 * (civil->month + (civil->month > 2 ? -3 : 9)) + 2) / 5 + civil->day - 1;
	int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;

	return days * DAY_S + civil->hour * 3600 + civil->minute * 60 + civil->second;
}

void
date_split(int64_t seconds, struct date_civil *civil_out)
{
	int64_t rest = seconds % DAY_S, days, era, of_era, year, of_year, month;

	if (rest < 0)
		rest += DAY_S;
	days = (seconds - rest) / DAY_S + 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	of_era = days - era * 146097;
	year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	of_year = of_era - (365 * year + year / 4 - year / 100);
	month = (5 * of_year + 2) / 153;
	*civil_out = (struct date_civil){
	    .year = (int)(year + era * 400 + (month >= 10)),
	    .month = (int)(month < 10 ? month + 3 : month - 9),
	    .day = (int)(of_year - (153 * month + 2) / 5 + 1),
	    .hour = (int)(rest / 3600),
	    .minute = (int)(rest / 60 % 60),
	    .second = (int)(rest % 60),
	};
}

static int
month_days(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

bool
date_valid(const struct date_civil *c)
{
	if (c->year < 1970 || c->year > 9999 || c->month < 1 || c->month > 12)
		return false;
	if (c->day < 1 || c->day > month_days(c->year, c->month))
		return false;
	return c->hour >= 0 && c->hour < 24 && c->minute >= 0 && c->minute < 60 && c->second >= 0 &&
	       c->second <= 60;
}

static void
put_digits(char *out, int value, unsigned digits)
{
	while (digits-- > 0) {
		out[digits] = (char)('0' + value % 10);
		value /= 10;
	}
}

void
date_print(struct wall_ms t, char out[DATE_TEXT])
{
	struct date_civil c;
	int64_t seconds = t.v < 0 ? 0 : t.v / 1000;

	date_split(seconds > YEAR_9999_S ? YEAR_9999_S : seconds, &c);
	put_digits(out, c.year, 4);
	out[4] = out[7] = '-';
	put_digits(out + 5, c.month, 2);
	put_digits(out + 8, c.day, 2);
	out[10] = 'T';
	put_digits(out + 11, c.hour, 2);
	out[13] = out[16] = ':';
	put_digits(out + 14, c.minute, 2);
	put_digits(out + 17, c.second, 2);
	out[19] = 'Z';
	out[20] = '\0';
}

/* Exactly `digits` digits off the front. */
static bool
cut_number(struct span *rest, size_t digits, int *out)
{
	int v = 0;

	if (rest->n < digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (!text_is_digit(rest->p[i]))
			return false;
		v = v * 10 + (rest->p[i] - '0');
	}
	*out = v;
	*rest = text_from(*rest, digits);
	return true;
}

static bool
cut_char(struct span *rest, char c)
{
	if (rest->n == 0 || rest->p[0] != c)
		return false;
	*rest = text_from(*rest, 1);
	return true;
}

static bool
cut_day(struct span *rest, struct date_civil *c)
{
	return cut_number(rest, 4, &c->year) && cut_char(rest, '-') &&
	       cut_number(rest, 2, &c->month) && cut_char(rest, '-') &&
	       cut_number(rest, 2, &c->day);
}

/* "10:00", "10:00:00" */
static bool
cut_clock(struct span *rest, struct date_civil *c)
{
	struct span at;

	if (!cut_number(rest, 2, &c->hour) || !cut_char(rest, ':') ||
	    !cut_number(rest, 2, &c->minute))
		return false;
	at = *rest;
	if (!cut_char(&at, ':'))
		return true;
	if (!cut_number(&at, 2, &c->second))
		return false;
	*rest = at;
	return true;
}

/* ".5", ".123456789": milliseconds, cut off; nothing there is 0. */
static int
cut_fraction(struct span *rest)
{
	struct span at = *rest;
	int ms = 0, scale = 100;

	if (!cut_char(&at, '.') || at.n == 0 || !text_is_digit(at.p[0]))
		return 0;
	while (at.n > 0 && text_is_digit(at.p[0])) {
		ms += (at.p[0] - '0') * scale;
		scale /= 10;
		at = text_from(at, 1);
	}
	*rest = at;
	return ms;
}

bool
date_cut_civil(struct span *rest, struct date_civil *civil_out, int *ms_out)
{
	struct date_civil c = {0};
	struct span at = *rest;
	int ms;

	if (!cut_day(&at, &c) || at.n == 0)
		return false;
	if (at.p[0] != 'T' && at.p[0] != 't' && at.p[0] != ' ')
		return false;
	at = text_from(at, 1);
	if (!cut_clock(&at, &c) || !date_valid(&c))
		return false;
	ms = cut_fraction(&at);
	*civil_out = c;
	*ms_out = ms;
	*rest = at;
	return true;
}

static size_t
count_digits(struct span s)
{
	size_t n = 0;

	while (n < s.n && text_is_digit(s.p[n]))
		n++;
	return n;
}

/* The digits of "+08:00", "+0800", and also of "+8" where the zone was named before it. */
static bool
cut_hours(struct span *rest, bool named, int *hours_out, int *minutes_out)
{
	struct span at = *rest;
	size_t digits = count_digits(at);
	bool parted;

	*minutes_out = 0;
	if (digits == 4) {
		cut_number(&at, 2, hours_out);
		cut_number(&at, 2, minutes_out);
		*rest = at;
		return true;
	}
	if (digits != 2 && !(digits == 1 && named))
		return false;
	cut_number(&at, digits, hours_out);
	parted = at.n > 0 && at.p[0] == ':' && count_digits(text_from(at, 1)) == 2;
	if (parted) {
		cut_char(&at, ':');
		cut_number(&at, 2, minutes_out);
	}
	*rest = at;
	return parted || named;
}

static bool
cut_signed_offset(struct span *rest, bool named, int32_t *seconds_out)
{
	struct span at = *rest;
	bool minus = at.n > 0 && at.p[0] == '-';
	int hours = 0, minutes = 0;

	if (!cut_char(&at, '+') && !cut_char(&at, '-'))
		return false;
	if (!cut_hours(&at, named, &hours, &minutes) || hours > 23 || minutes > 59)
		return false;
	*seconds_out = (minus ? -1 : 1) * (hours * 3600 + minutes * 60);
	*rest = at;
	return true;
}

/* Behind "UTC" or "GMT": a signed offset, or nothing. */
static bool
cut_named_offset(struct span *rest, int32_t *seconds_out)
{
	struct span sign = *rest;

	while (cut_char(&sign, ' '))
		continue;
	*seconds_out = 0;
	if (sign.n < 2 || (sign.p[0] != '+' && sign.p[0] != '-') || !text_is_digit(sign.p[1]))
		return true;
	if (!cut_signed_offset(&sign, true, seconds_out))
		return false;
	*rest = sign;
	return true;
}

bool
date_cut_offset(struct span *rest, int32_t *seconds_out)
{
	bool named = text_starts_fold(*rest, "UTC") || text_starts_fold(*rest, "GMT");
	struct span at = text_from(*rest, named ? 3 : 1);
	int32_t seconds = 0;

	if (!named && !text_starts_fold(*rest, "Z"))
		return cut_signed_offset(rest, false, seconds_out);
	if (at.n > 0 && (text_is_letter(at.p[0]) || text_is_digit(at.p[0])))
		return false; /* the beginning of another word */
	if (named && !cut_named_offset(&at, &seconds))
		return false;
	*seconds_out = seconds;
	*rest = at;
	return true;
}

static struct wall_ms
wall_of(const struct date_civil *c, int32_t offset_s, int ms)
{
	return (struct wall_ms){(date_seconds(c) - offset_s) * 1000 + ms};
}

bool
date_rfc3339(struct span text, struct wall_ms *out)
{
	struct date_civil c;
	struct wall_ms t;
	int32_t offset;
	int ms;

	if (!date_cut_civil(&text, &c, &ms) || text_starts_fold(text, "UTC") ||
	    text_starts_fold(text, "GMT"))
		return false;
	if (!date_cut_offset(&text, &offset) || text.n != 0)
		return false;
	t = wall_of(&c, offset, ms);
	if (t.v < 0)
		return false;
	*out = t;
	return true;
}

static bool
name_index(struct span s, const char *const *names, size_t n, int *index_out)
{
	for (size_t i = 0; i < n; i++)
		if (text_is_fold(s, names[i])) {
			*index_out = (int)i;
			return true;
		}
	return false;
}

static bool
clock_of(struct span s, struct date_civil *c)
{
	return s.n == 8 && cut_clock(&s, c) && s.n == 0;
}

/* Four digits, or two that mean the year nearest to now. */
static bool
year_of(struct span s, struct wall_ms now, int *year_out)
{
	struct date_civil today;
	int64_t v;

	if (!text_i64(s, 0, 9999, &v) || (s.n != 4 && s.n != 2))
		return false;
	if (s.n == 2) {
		date_split(now.v / 1000, &today);
		v += today.year - today.year % 100;
		if (v > today.year + 50)
			v -= 100;
		else if (v <= today.year - 50)
			v += 100;
	}
	*year_out = (int)v;
	return true;
}

static bool
is_weekday(struct span s)
{
	int i;

	/* RFC 850 writes it out */
	return s.n >= 3 && name_index((struct span){s.p, 3}, weekdays, NELEM(weekdays), &i);
}

static bool
day_of(struct span day, struct span month, struct date_civil *c)
{
	int64_t d;
	int m;

	if (!text_i64(day, 1, 31, &d) || !name_index(month, months, NELEM(months), &m))
		return false;
	c->day = (int)d;
	c->month = m + 1;
	return true;
}

/* t[0] is the weekday; asctime has no zone, and the year last. */
static bool
http_civil(const struct span *t, size_t n, struct wall_ms now, struct date_civil *c)
{
	if (n == 5)
		return day_of(t[2], t[1], c) && clock_of(t[3], c) && year_of(t[4], now, &c->year);
	return day_of(t[1], t[2], c) && year_of(t[3], now, &c->year) && clock_of(t[4], c) &&
	       (text_is(t[5], "GMT") || text_is(t[5], "UTC"));
}

bool
date_http(struct span text, struct wall_ms now, struct wall_ms *out)
{
	struct span t[6], rest = text_trim(text);
	struct date_civil c = {0};
	size_t n = 0;

	while (n < NELEM(t) && text_token(&rest, " ,-", &t[n]))
		n++;
	if (n < 5 || rest.n > 0 || !is_weekday(t[0]))
		return false;
	if (!http_civil(t, n, now, &c) || !date_valid(&c))
		return false;
	*out = wall_of(&c, 0, 0);
	return true;
}

/* Longer names first: "ms" before "m". */
static const struct unit {
	const char *name;
	int64_t ns;
} units[] = {
    {"ms", 1000000},
    {"us", 1000},
    {"\xc2\xb5s", 1000}, /* U+00B5 */
    {"\xce\xbcs", 1000}, /* U+03BC */
    {"ns", 1},
    {"d", 86400 * INT64_C(1000000000)},
    {"h", 3600 * INT64_C(1000000000)},
    {"m", 60 * INT64_C(1000000000)},
    {"s", INT64_C(1000000000)},
};

static const struct unit *
cut_unit(struct span *rest)
{
	for (size_t i = 0; i < NELEM(units); i++)
		if (text_starts(*rest, units[i].name)) {
			*rest = text_from(*rest, strlen(units[i].name));
			return &units[i];
		}
	return NULL;
}

/* One "<number><unit>" in nanoseconds; up to nine digits of fraction count. */
static bool
cut_part(struct span *rest, int64_t *ns_out)
{
	const struct unit *unit;
	int64_t whole = 0, fraction = 0, scale = 1, ns, part;
	size_t digits = 0;

	for (; rest->n > 0 && text_is_digit(rest->p[0]); *rest = text_from(*rest, 1), digits++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, rest->p[0] - '0', &whole))
			return false;
	if (cut_char(rest, '.'))
		for (; rest->n > 0 && text_is_digit(rest->p[0]);
		     *rest = text_from(*rest, 1), digits++)
			if (scale < 1000000000) {
				fraction = fraction * 10 + (rest->p[0] - '0');
				scale *= 10;
			}
	if (digits == 0)
		return false;
	unit = cut_unit(rest);
	if (unit == NULL || __builtin_mul_overflow(whole, unit->ns, &ns))
		return false;
	part = (int64_t)((__int128)fraction * unit->ns / scale);
	return !__builtin_add_overflow(ns, part, ns_out);
}

bool
date_go_duration(struct span text, int64_t *ms_out)
{
	int64_t ns = 0, part;

	if (text.n == 0)
		return false;
	while (text.n > 0)
		if (!cut_part(&text, &part) || __builtin_add_overflow(ns, part, &ns))
			return false;
	*ms_out = ns / 1000000 + (ns % 1000000 != 0);
	return true;
}

bool
date_duration(struct span text, int64_t *ms_out)
{
	static const struct {
		const char *unit;
		int64_t ms;
	} known[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
	struct span digits = text;
	int64_t v, ms;

	while (digits.n > 0 && !text_is_digit(digits.p[digits.n - 1]))
		digits.n--;
	for (size_t i = 0; i < NELEM(known); i++)
		if (text_is(text_from(text, digits.n), known[i].unit) &&
		    text_i64(digits, 0, INT64_MAX, &v) &&
		    !__builtin_mul_overflow(v, known[i].ms, &ms)) {
			*ms_out = ms;
			return true;
		}
	return false;
}
