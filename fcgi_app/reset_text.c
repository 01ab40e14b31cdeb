#include "reset_text.h"

#include <string.h>

#define BEFORE_BYTES 96 /* how far from its date a word may stand: a sentence */
#define AFTER_BYTES 48
#define TEXT_MAX_BYTES 8192
#define PARTS_MAX 8  /* days to milliseconds are five */
#define DAY_BYTES 10 /* "2026-08-25" */

static const char *const reset_words[] = {"reset", "regain", "available", "again", "until", "retry",
    "resume", "renew", "refresh", "重置", "恢复", "刷新", "重试", "解除", "更新"};

static struct span
skip_blanks(struct span s)
{
	while (s.n > 0 && s.p[0] == ' ')
		s = text_from(s, 1);
	return s;
}

static struct wall_ms
instant(const struct zone *zone, const struct date_civil *c)
{
	return zone == NULL ? (struct wall_ms){date_seconds(c) * 1000} : zone_instant(zone, c);
}

/* " UTC+8", " (GMT+08:00)", "Z" or nothing: then the channel's zone. */
static struct wall_ms
with_zone(struct span rest, const struct zone *zone, const struct date_civil *c, int ms)
{
	struct wall_ms t;
	int32_t offset;

	rest = skip_blanks(rest);
	if (rest.n > 0 && rest.p[0] == '(')
		rest = text_from(rest, 1);
	if (date_cut_offset(&rest, &offset))
		t.v = (date_seconds(c) - offset) * 1000;
	else
		t = instant(zone, c);
	t.v += ms;
	return t;
}

bool
reset_text_civil(struct span text, const struct zone *zone, struct wall_ms *out)
{
	struct span rest = text_trim(text);
	struct date_civil c;
	int ms;

	if (!date_cut_civil(&rest, &c, &ms))
		return false;
	*out = with_zone(rest, zone, &c, ms);
	return true;
}

static bool
starts_with_day(struct span text)
{
	return text.n >= DAY_BYTES && text.p[4] == '-' && text.p[7] == '-' &&
	       (text.n == DAY_BYTES || !text_is_digit(text.p[DAY_BYTES]));
}

/* What stands between a day and its time: ", ", "T", " at " */
static struct span
skip_joint(struct span s)
{
	if (s.n > 0 && (s.p[0] == ',' || text_lower(s.p[0]) == 't'))
		s = text_from(s, 1);
	s = skip_blanks(s);
	return text_starts_fold(s, "at ") ? skip_blanks(text_from(s, 3)) : s;
}

/* The text with a day at its front: "2026-12-01 at 00:00 UTC", "2026-08-25 07:41:44", or the day alone. */
static bool
day_at(struct span text, const struct zone *zone, struct wall_ms *out)
{
	char joined[DAY_BYTES + 40];
	struct span time, rest;
	struct date_civil c;
	int ms;

	if (!starts_with_day(text))
		return false;
	time = skip_joint(text_from(text, DAY_BYTES));
	if (time.n > sizeof joined - DAY_BYTES - 1)
		time.n = sizeof joined - DAY_BYTES - 1;
	memcpy(joined, text.p, DAY_BYTES);
	joined[DAY_BYTES] = ' ';
	if (time.n > 0)
		memcpy(joined + DAY_BYTES + 1, time.p, time.n);
	if (reset_text_civil((struct span){joined, DAY_BYTES + 1 + time.n}, zone, out))
		return true;
	memcpy(joined + DAY_BYTES, " 00:00", 6);
	rest = (struct span){joined, DAY_BYTES + 6};
	if (!date_cut_civil(&rest, &c, &ms))
		return false;
	*out = instant(zone, &c);
	return true;
}

static bool
near_a_word(struct span text, size_t at)
{
	size_t from = at > BEFORE_BYTES ? at - BEFORE_BYTES : 0;
	size_t to = at + DAY_BYTES + AFTER_BYTES < text.n ? at + DAY_BYTES + AFTER_BYTES : text.n;
	struct span around = {text.p + from, to - from};

	for (size_t i = 0; i < NELEM(reset_words); i++)
		if (text_has_fold(around, reset_words[i]))
			return true;
	return false;
}

static struct span
shortened(struct span text)
{
	if (text.n > TEXT_MAX_BYTES)
		text.n = TEXT_MAX_BYTES;
	return text;
}

/* "... limit reached|1790000000", as one subscription says it. */
static struct reset_time
after_bar(struct span text, struct wall_ms now)
{
	size_t bar = text_find(text, SPAN("limit reached|"));
	struct span digits = text_from(text, bar + strlen("limit reached|"));
	size_t n = 0;
	int64_t v;

	while (n < digits.n && text_is_digit(digits.p[n]))
		n++;
	if (n != 10 || !text_i64((struct span){digits.p, n}, 0, INT64_MAX / 1000, &v) ||
	    !reset_sensible((struct wall_ms){v * 1000}, now))
		return (struct reset_time){0};
	return (struct reset_time){true, {v * 1000}, "text:limit reached"};
}

struct reset_time
reset_text_absolute(struct span text, const struct zone *zone, struct wall_ms now)
{
	struct wall_ms at;

	text = shortened(text);
	for (size_t i = 0; i + DAY_BYTES <= text.n; i++) {
		if (!text_is_digit(text.p[i]) || (i > 0 && text_is_digit(text.p[i - 1])))
			continue;
		if (day_at(text_from(text, i), zone, &at) && reset_sensible(at, now) &&
		    near_a_word(text, i))
			return (struct reset_time){true, at, "text:reset at"};
	}
	return after_bar(text, now);
}

/* Longer names first. */
static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {
    {"milliseconds", 1},
    {"millisecond", 1},
    {"seconds", 1000},
    {"second", 1000},
    {"minutes", 60000},
    {"minute", 60000},
    {"hours", 3600000},
    {"hour", 3600000},
    {"days", 86400000},
    {"day", 86400000},
    {"secs", 1000},
    {"sec", 1000},
    {"mins", 60000},
    {"min", 60000},
    {"hrs", 3600000},
    {"hr", 3600000},
    {"ms", 1},
    {"s", 1000},
    {"m", 60000},
    {"h", 3600000},
    {"d", 86400000},
    {"毫秒", 1},
    {"秒", 1000},
    {"分钟", 60000},
    {"小时", 3600000},
    {"天", 86400000},
};

static const struct unit *
cut_unit(struct span *rest)
{
	for (size_t i = 0; i < NELEM(units); i++) {
		struct span after = text_from(*rest, strlen(units[i].name));

		if (text_starts_fold(*rest, units[i].name) &&
		    (after.n == 0 || !text_is_letter(after.p[0]))) {
			*rest = after;
			return &units[i];
		}
	}
	return NULL;
}

/* "24.5": the whole, and millionths of what is behind the dot. */
static bool
cut_decimal(struct span *rest, int64_t *whole_out, int64_t *millionths_out)
{
	int64_t whole = 0, scale = 100000;
	struct span at = *rest;

	for (; at.n > 0 && text_is_digit(at.p[0]); at = text_from(at, 1))
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, at.p[0] - '0', &whole))
			return false;
	if (at.p == rest->p)
		return false;
	*millionths_out = 0;
	if (at.n > 1 && at.p[0] == '.' && text_is_digit(at.p[1]))
		for (at = text_from(at, 1); at.n > 0 && text_is_digit(at.p[0]);
		     at = text_from(at, 1)) {
			*millionths_out += (at.p[0] - '0') * scale;
			scale /= 10;
		}
	*whole_out = whole;
	*rest = at;
	return true;
}

/* "8m", "24.5 seconds": one part, rounded up to whole milliseconds. */
static bool
cut_part(struct span *rest, int64_t *ms_out)
{
	struct span at = *rest;
	const struct unit *unit;
	int64_t whole, millionths;

	if (!cut_decimal(&at, &whole, &millionths))
		return false;
	at = skip_blanks(at);
	unit = cut_unit(&at);
	if (unit == NULL || __builtin_mul_overflow(whole, unit->ms, &whole) ||
	    __builtin_add_overflow(whole, (millionths * unit->ms + 999999) / 1000000, ms_out))
		return false;
	*rest = at;
	return true;
}

/* "1m30s", "1 minute and 30 seconds" */
static bool
cut_parts(struct span *rest, int64_t *ms_out)
{
	int64_t sum = 0, part;
	struct span at = *rest;
	int parts = 0;

	while (parts < PARTS_MAX && cut_part(&at, &part)) {
		if (__builtin_add_overflow(sum, part, &sum))
			return false;
		parts++;
		*rest = at;
		while (at.n > 0 && (at.p[0] == ' ' || at.p[0] == ','))
			at = text_from(at, 1);
		if (text_starts_fold(at, "and "))
			at = text_from(at, 4);
	}
	*ms_out = sum;
	return parts > 0;
}

static struct reset_time
after_ms(int64_t ms, const char *source, struct wall_ms now)
{
	struct wall_ms at;

	if (__builtin_add_overflow(now.v, ms, &at.v) || !reset_sensible(at, now))
		return (struct reset_time){0};
	return (struct reset_time){true, at, source};
}

static const char *const wait_words[] = {"again in ", "again after ", "retry in ", "retry after ",
    "retrying in ", "retrying after ", "wait ", "available in ", "reset in ", "resets in ",
    "reset after ", "resets after "};
static const char *const fillers[] = {"for ", "about ", "approximately ", "another ", "at least "};

static struct reset_time
behind_words(struct span text, const char *words, struct wall_ms now)
{
	struct span needle = text_span(words), rest = text;
	size_t at;
	int64_t ms;

	while ((at = text_find_fold(rest, needle)) < rest.n) {
		struct span behind = skip_blanks(text_from(rest, at + needle.n));
		struct reset_time found = {0};

		for (size_t i = 0; i < NELEM(fillers); i++)
			if (text_starts_fold(behind, fillers[i]))
				behind = skip_blanks(text_from(behind, strlen(fillers[i])));
		if (cut_parts(&behind, &ms))
			found = after_ms(ms, "text:try again in", now);
		if (found.stated)
			return found;
		rest = text_from(rest, at + needle.n);
	}
	return (struct reset_time){0};
}

/* "请在 30 秒后重试" */
static struct reset_time
before_after(struct span text, struct wall_ms now)
{
	int64_t ms;

	for (size_t i = 0; i < text.n; i++) {
		struct span rest = text_from(text, i);
		struct reset_time found;

		if (!text_is_digit(text.p[i]) ||
		    (i > 0 && (text_is_digit(text.p[i - 1]) || text.p[i - 1] == '.')))
			continue;
		if (!cut_parts(&rest, &ms))
			continue;
		rest = skip_blanks(rest);
		if (!text_starts(rest, "后") && !text_starts(rest, "之后"))
			continue;
		found = after_ms(ms, "text:后", now);
		if (found.stated)
			return found;
	}
	return (struct reset_time){0};
}

struct reset_time
reset_text_relative(struct span text, struct wall_ms now)
{
	text = shortened(text);
	for (size_t i = 0; i < NELEM(wait_words); i++) {
		struct reset_time found = behind_words(text, wait_words[i], now);

		if (found.stated)
			return found;
	}
	return before_after(text, now);
}
