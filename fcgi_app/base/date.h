/*
 * date - times as text, in UTC, without the host's zone or locale.
 *
 * Source    RFC 3339; RFC 9110 5.6.7 (all three HTTP dates); formats.md A.7 and F.14 (durations, magnitudes)
 */
#ifndef BASE_DATE_H
#define BASE_DATE_H

#include "base/text.h"
#include "store/types.h"

struct date_civil {
	int year, month, day, hour, minute, second; /* month 1..12, day 1..31 */
};

/* Days and seconds of the proleptic Gregorian calendar; no zone. */
int64_t date_seconds(const struct date_civil *civil);
void date_split(int64_t seconds, struct date_civil *civil_out);
bool date_valid(
    const struct date_civil *civil); /* 1970..9999, real month lengths, second up to 60 */

#define DATE_TEXT 32
/* "2026-01-05T10:00:00Z" */
void date_print(struct wall_ms t, char out[DATE_TEXT]);

/* Cut "2026-01-05 10:00[:00[.5]]" off the front of *rest, with 'T' or blank between; no zone. */
bool date_cut_civil(struct span *rest, struct date_civil *civil_out, int *ms_out);
/* Cut "Z", "UTC", "GMT", "UTC+8", "GMT-03:30", "+08:00" or "+0800" off the front of *rest: seconds east of UTC. */
bool date_cut_offset(struct span *rest, int32_t *seconds_out);

/* RFC 3339 with 'T' or blank, optional fraction, "Z" or an offset. */
bool date_rfc3339(struct span text, struct wall_ms *out);
/* IMF-fixdate, RFC 850, asctime. A two-digit year is within 50 years of `now`. */
bool date_http(struct span text, struct wall_ms now, struct wall_ms *out);
/* "6m0s", "1h2m3s", "1.5s", "250ms", "0s": units h m s ms us ns; also d. Whole text or false.
 * Parts of a millisecond are rounded up. */
bool date_go_duration(struct span text, int64_t *ms_out);
/* Configuration: one number and one unit of ms s m h d. */
bool date_duration(struct span text, int64_t *ms_out);

#endif
