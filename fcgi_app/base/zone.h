/*
 * zone - civil time of a named time zone, read from the system's zone files, without touching TZ or the locale.
 *
 * A zone is "UTC", a fixed offset "+08:00", or a name of the tz database such as "Asia/Shanghai". Loaded once with the
 * configuration; used without any system call.
 *
 * Rules     in a gap (the clock jumps forward) or an overlap (it goes back) the later instant is taken (SPEC.md 6)
 * Errors    ERR_NOT_FOUND unknown zone or no zone files; ERR_BAD_INPUT not a zone file
 * Source    RFC 8536 (TZif), POSIX TZ strings in its footer
 */
#ifndef BASE_ZONE_H
#define BASE_ZONE_H

#include "base/arena.h"
#include "base/date.h"

struct zone;

/* `root` is where zone files lie: NULL means the system's, /usr/share/zoneinfo. */
enum err zone_load(struct arena *arena, struct span name, const char *root, const struct zone **out,
    struct why *why) MUST_CHECK;
/* From a POSIX TZ string, without any file: "PST8PDT,M3.2.0,M11.1.0". ERR_BAD_INPUT if it is none. */
enum err zone_posix(
    struct arena *arena, struct span rule, const struct zone **out, struct why *why) MUST_CHECK;
/* Offset east of UTC, in seconds, in force at `t`. */
int32_t zone_offset(const struct zone *zone, struct wall_ms t);
/* The instant at which the zone's clocks show `civil`. */
struct wall_ms zone_instant(const struct zone *zone, const struct date_civil *civil);
/* The first instant strictly after `now` at which the zone's clocks show hour:minute. */
struct wall_ms zone_next(const struct zone *zone, struct wall_ms now, int hour, int minute);

#endif
