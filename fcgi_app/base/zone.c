#include "base/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZONE_ROOT "/usr/share/zoneinfo"
#define FILE_MAX_BYTES 262144 /* the largest of tzdata has 4 kB */
#define HEADER_BYTES 44
#define DAY_S 86400
#define RULE_TIME_MAX_H 167 /* RFC 8536, 3.3.1 */

/* One day of the year at which a POSIX rule changes the clock. */
struct rule_day {
	enum { DAY_JULIAN, DAY_ZERO, DAY_WEEK } form;
	int month, week, day; /* day: of the week, or of the year */
	int32_t time_s;       /* local time of the change, may be negative or beyond 24 h */
};

/* What holds after the table: the footer of the file. */
struct rule {
	bool present, has_dst;
	int32_t std_s, dst_s; /* east of UTC */
	struct rule_day start, end;
};

struct zone {
	size_t n;
	int64_t *at_s;    /* n transitions, ascending */
	int32_t *after_s; /* offset from at_s[i] on */
	int32_t first_s;  /* before the first */
	struct rule rule;
};

/* ------------------------------------------------------------------ the footer's rule */

static bool
take(struct span *rest, char c)
{
	if (rest->n == 0 || rest->p[0] != c)
		return false;
	*rest = text_from(*rest, 1);
	return true;
}

static bool
take_int(struct span *rest, int max, int *out)
{
	size_t n = 0;
	int64_t v;

	while (n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9')
		n++;
	if (n == 0 || n > 4 || !text_i64((struct span){rest->p, n}, 0, max, &v))
		return false;
	*out = (int)v;
	*rest = text_from(*rest, n);
	return true;
}

/* "EST" or "<+03>" */
static bool
take_name(struct span *rest)
{
	size_t n = 0;

	if (take(rest, '<')) {
		while (n < rest->n && rest->p[n] != '>')
			n++;
		*rest = text_from(*rest, n);
		return take(rest, '>');
	}
	while (n < rest->n && text_lower(rest->p[n]) >= 'a' && text_lower(rest->p[n]) <= 'z')
		n++;
	*rest = text_from(*rest, n);
	return n >= 3;
}

/* [+-]hh[:mm[:ss]] */
static bool
take_hms(struct span *rest, int32_t *seconds_out)
{
	bool minus = take(rest, '-');
	int h, m = 0, s = 0;

	if (!minus)
		take(rest, '+');
	if (!take_int(rest, RULE_TIME_MAX_H, &h))
		return false;
	if (take(rest, ':')) {
		if (!take_int(rest, 59, &m))
			return false;
		if (take(rest, ':') && !take_int(rest, 59, &s))
			return false;
	}
	*seconds_out = (minus ? -1 : 1) * (h * 3600 + m * 60 + s);
	return true;
}

static bool
take_week_day(struct span *rest, struct rule_day *out)
{
	out->form = DAY_WEEK;
	return take_int(rest, 12, &out->month) && take(rest, '.') &&
	       take_int(rest, 5, &out->week) && take(rest, '.') && take_int(rest, 6, &out->day) &&
	       out->month >= 1 && out->week >= 1;
}

/* "Mm.w.d", "Jn" or "n", each with an optional "/time" */
static bool
take_rule_day(struct span *rest, struct rule_day *out)
{
	bool ok;

	*out = (struct rule_day){.form = DAY_ZERO, .time_s = 2 * 3600};
	if (take(rest, 'M')) {
		ok = take_week_day(rest, out);
	} else if (take(rest, 'J')) {
		out->form = DAY_JULIAN;
		ok = take_int(rest, 365, &out->day) && out->day >= 1;
	} else {
		ok = take_int(rest, 365, &out->day);
	}
	return ok && (!take(rest, '/') || take_hms(rest, &out->time_s));
}

static bool
take_summer(struct span *rest, struct rule *rule)
{
	int32_t west;

	rule->has_dst = true;
	if (!take_name(rest))
		return false;
	rule->dst_s = rule->std_s + 3600;
	if (rest->n > 0 && rest->p[0] != ',') {
		if (!take_hms(rest, &west))
			return false;
		rule->dst_s = -west;
	}
	return take(rest, ',') && take_rule_day(rest, &rule->start) && take(rest, ',') &&
	       take_rule_day(rest, &rule->end);
}

/* POSIX counts offsets westward; we count eastward. */
static bool
read_rule(struct span text, struct rule *out)
{
	struct rule rule = {.present = true};
	int32_t west;

	if (!take_name(&text) || !take_hms(&text, &west))
		return false;
	rule.std_s = -west;
	if (text.n > 0 && (!take_summer(&text, &rule) || text.n > 0))
		return false;
	*out = rule;
	return true;
}

static bool
is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* The change of that year, in seconds of local time as the clock showed before it. */
static int64_t
rule_local(const struct rule_day *day, int year)
{
	struct date_civil c = {.year = year, .month = 1, .day = 1};
	int64_t first, days;

	if (day->form != DAY_WEEK) {
		bool skip_leap_day = day->form == DAY_JULIAN && is_leap(year) && day->day >= 60;

		days = day->day - (day->form == DAY_JULIAN) + skip_leap_day;
		return date_seconds(&c) + days * DAY_S + day->time_s;
	}
	c.month = day->month;
	first = date_seconds(&c) / DAY_S;
	/* 1970-01-01 was a Thursday (4) */
	days = (day->day - (first + 4) % 7 + 7) % 7 + (day->week - 1) * 7;
	c.month = day->month == 12 ? 1 : day->month + 1;
	c.year += day->month == 12;
	if (first + days >= date_seconds(&c) / DAY_S)
		days -= 7; /* week 5 is the last one */
	return (first + days) * DAY_S + day->time_s;
}

static int32_t
rule_offset(const struct rule *rule, int64_t t)
{
	struct date_civil c;
	int64_t start, end;
	bool dst;

	if (!rule->has_dst)
		return rule->std_s;
	date_split(t + rule->std_s, &c);
	start = rule_local(&rule->start, c.year) - rule->std_s;
	end = rule_local(&rule->end, c.year) - rule->dst_s;
	dst = start < end ? t >= start && t < end : t >= start || t < end;
	return dst ? rule->dst_s : rule->std_s;
}

/* ------------------------------------------------------------------ the file */

static int64_t
big_endian(const char *p, size_t n)
{
	uint64_t v = (p[0] & 0x80) != 0 ? UINT64_MAX : 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | (unsigned char)p[i];
	return (int64_t)v;
}

struct counts {
	size_t isut, isstd, leap, time, type, chars;
};

/* Cut a header off; false if it is none, or if what it announces is absurd. */
static bool
take_header(struct span *rest, struct counts *out)
{
	size_t v[6];

	if (rest->n < HEADER_BYTES || memcmp(rest->p, "TZif", 4) != 0 || rest->p[4] < '2')
		return false;
	for (size_t i = 0; i < NELEM(v); i++) {
		int64_t n = big_endian(rest->p + 20 + 4 * i, 4);

		if (n < 0 || n > FILE_MAX_BYTES)
			return false;
		v[i] = (size_t)n;
	}
	*out = (struct counts){v[0], v[1], v[2], v[3], v[4], v[5]};
	*rest = text_from(*rest, HEADER_BYTES);
	return true;
}

static size_t
block_bytes(const struct counts *c, size_t time_bytes)
{
	return c->time * (time_bytes + 1) + c->type * 6 + c->chars + c->leap * (time_bytes + 4) +
	       c->isstd + c->isut;
}

static bool
read_table(struct arena *arena, struct span block, const struct counts *c, struct zone *zone)
{
	const char *index = block.p + c->time * 8, *types = index + c->time;

	if (c->type == 0 || c->leap != 0)
		return false;
	zone->n = c->time;
	zone->at_s = arena_alloc(arena, (c->time + 1) * sizeof *zone->at_s);
	zone->after_s = arena_alloc(arena, (c->time + 1) * sizeof *zone->after_s);
	zone->first_s = (int32_t)big_endian(types, 4);
	for (size_t i = 0; i < c->time; i++) {
		size_t type = (unsigned char)index[i];

		if (type >= c->type)
			return false;
		zone->at_s[i] = big_endian(block.p + i * 8, 8);
		zone->after_s[i] = (int32_t)big_endian(types + type * 6, 4);
		if (i > 0 && zone->at_s[i] <= zone->at_s[i - 1])
			return false;
	}
	return true;
}

/* The 32-bit block is skipped; the 64-bit one and the footer behind it are read. */
static bool
read_file(struct arena *arena, struct span file, struct zone *zone)
{
	struct counts c;
	struct span block;
	size_t n, end;

	if (!take_header(&file, &c) || block_bytes(&c, 4) > file.n)
		return false;
	file = text_from(file, block_bytes(&c, 4));
	if (!take_header(&file, &c) || block_bytes(&c, 8) > file.n)
		return false;
	n = block_bytes(&c, 8);
	block = (struct span){file.p, n};
	file = text_from(file, n);
	if (!read_table(arena, block, &c, zone) || !take(&file, '\n'))
		return false;
	end = text_find(file, SPAN("\n"));
	if (end == file.n)
		return false;
	return end == 0 || read_rule((struct span){file.p, end}, &zone->rule);
}

/* The bytes of a regular file of sane size, or nothing. */
static struct span
slurp(struct arena *arena, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct span out = {0};
	struct stat st;
	char *bytes;
	ssize_t got;

	if (fd < 0)
		return out;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    st.st_size <= FILE_MAX_BYTES) {
		bytes = arena_alloc(arena, (size_t)st.st_size);
		do
			got = read(fd, bytes, (size_t)st.st_size);
		while (got < 0 && errno == EINTR);
		if (got == st.st_size)
			out = (struct span){bytes, (size_t)got};
	}
	close(fd);
	return out;
}

/* Letters, digits and the signs of tzdata: no dots, so no way out of the root. */
static bool
name_is_plain(struct span name)
{
	if (name.n == 0 || name.n > 64 || name.p[0] == '/')
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char low = text_lower(name.p[i]);

		if (low == '\0' || strchr("abcdefghijklmnopqrstuvwxyz0123456789_+-/", low) == NULL)
			return false;
	}
	return true;
}

enum err
zone_load(struct arena *arena, struct span name, const char *root, const struct zone **out,
    struct why *why)
{
	struct zone *zone = arena_alloc(arena, sizeof *zone);
	struct span rest = name, file;
	char shown[65];

	if (date_cut_offset(&rest, &zone->first_s) && rest.n == 0) {
		*out = zone;
		return ERR_OK;
	}
	text_clean(shown, sizeof shown, name);
	if (!name_is_plain(name)) {
		err_why(why, "'%s' is no name of a time zone", shown);
		return ERR_NOT_FOUND;
	}
	if (root == NULL)
		root = ZONE_ROOT;
	file = slurp(arena, arena_print(arena, "%s/%s", root, shown));
	if (file.n == 0) {
		err_why(why, "no time zone '%s' in %s", shown, root);
		return ERR_NOT_FOUND;
	}
	if (!read_file(arena, file, zone)) {
		err_why(why, "%s/%s is not a time zone file", root, shown);
		return ERR_BAD_INPUT;
	}
	*out = zone;
	return ERR_OK;
}

enum err
zone_posix(struct arena *arena, struct span rule, const struct zone **out, struct why *why)
{
	struct zone *zone = arena_alloc(arena, sizeof *zone);
	char shown[65];

	if (!read_rule(rule, &zone->rule)) {
		text_clean(shown, sizeof shown, rule);
		err_why(why, "'%s' is not a POSIX time zone rule", shown);
		return ERR_BAD_INPUT;
	}
	*out = zone;
	return ERR_OK;
}

/* ------------------------------------------------------------------ use */

static int32_t
offset_at(const struct zone *zone, int64_t t)
{
	size_t low = 0, high = zone->n;

	if (zone->rule.present && (zone->n == 0 || t >= zone->at_s[zone->n - 1]))
		return rule_offset(&zone->rule, t);
	while (low < high) { /* how many transitions are not after t */
		size_t mid = low + (high - low) / 2;

		if (zone->at_s[mid] <= t)
			low = mid + 1;
		else
			high = mid;
	}
	return low == 0 ? zone->first_s : zone->after_s[low - 1];
}

static int64_t
floor_s(struct wall_ms t)
{
	return t.v / 1000 - (t.v % 1000 < 0);
}

int32_t
zone_offset(const struct zone *zone, struct wall_ms t)
{
	return offset_at(zone, floor_s(t));
}

struct wall_ms
zone_instant(const struct zone *zone, const struct date_civil *civil)
{
	int64_t local = date_seconds(civil), valid = INT64_MIN, any = INT64_MIN;

	/* every offset that is in force within a day of it; more than one where the clock changes */
	for (int hours = -24; hours <= 24; hours += 6) {
		int32_t offset = offset_at(zone, local + hours * 3600);
		int64_t t = local - offset;

		if (t > any)
			any = t;
		if (t > valid && offset_at(zone, t) == offset)
			valid = t;
	}
	return (struct wall_ms){(valid != INT64_MIN ? valid : any) * 1000};
}

struct wall_ms
zone_next(const struct zone *zone, struct wall_ms now, int hour, int minute)
{
	struct wall_ms t = now;

	/* from the day before: a gap or overlap may have moved its instant past now */
	for (int day = -1; day <= 2; day++) {
		struct date_civil c;

		date_split(floor_s(now) + zone_offset(zone, now) + day * DAY_S, &c);
		c.hour = hour;
		c.minute = minute;
		c.second = 0;
		t = zone_instant(zone, &c);
		if (t.v > now.v)
			break;
	}
	return t;
}
