/*
 * reset_text - times to come back that stand in a message for people.
 *
 * Absolute  "will reset at 2026-09-18 17:03:52 UTC+8", "将在 2026-09-11 18:33:27 重置", "regain access on 2026-12-01 at
 *           00:00 UTC": a date counts only near a word that speaks of resetting; without a zone it is the channel's
 * Relative  "try again in 6m0s", "retry after 20 seconds", "wait 1 minute and 30 s", "30 秒后"
 * Source    SPEC.md section 6; formats.md F.13, F.14 (11 to 13)
 */
#ifndef RESET_TEXT_H
#define RESET_TEXT_H

#include "reset.h"

/* `zone` NULL is UTC. Not stated if there is none, or none that makes sense. */
struct reset_time reset_text_absolute(
    struct span text, const struct zone *zone, struct wall_ms now);
struct reset_time reset_text_relative(struct span text, struct wall_ms now);

/* A civil time as a whole value, "2026-08-25 07:41:44", with or without a zone. */
bool reset_text_civil(struct span text, const struct zone *zone, struct wall_ms *out);

#endif
