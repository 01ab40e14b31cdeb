/*
 * rest - which deadline a verdict brings. Pure.
 *
 * A stated reset beats any guess and is capped: 429 and credit by stated_max, 5xx and a model's limit by soft_rate_max.
 * A soft rate limit without one doubles with each incident in a row. Hard credit without one lasts to the next
 * hard_credit_until in the channel's zone and is no guess: nothing probes it.
 *
 * Source    SPEC.md section 6
 */
#ifndef REST_H
#define REST_H

#include "conf/conf.h"
#include "reset.h"
#include "verdict.h"

struct rest {
	bool rests;
	bool guessed;
	struct wall_ms until;
	struct wall_ms reset_at; /* as stated, uncapped; 0 = not stated */
};

/* `streak` counts this incident: 1 at the first. */
struct rest rest_after(enum verdict verdict, int status, const struct reset_time *reset,
    const struct conf_policy *policy, unsigned streak, struct wall_ms now);

#endif
