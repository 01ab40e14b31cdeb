#include "rest.h"

#include "store/cooldown.h"

#define YEAR_9999_MS 253370764800000LL

static int64_t
stated_cap_ms(enum verdict verdict, int status, const struct conf_policy *policy)
{
	if (verdict == VERDICT_MODEL_RATE || (status >= 500 && verdict != VERDICT_HARD_CREDIT))
		return policy->cooldown.soft_rate_max_ms;
	return policy->cooldown.stated_max_ms;
}

static struct rest
guess(int64_t ms, struct wall_ms now)
{
	return (struct rest){.rests = true, .guessed = true, .until = {now.v + ms}};
}

static struct rest
until_next_credit(const struct conf_policy *policy, struct wall_ms now)
{
	int minute = policy->cooldown.hard_credit_minute;

	return (struct rest){.rests = true,
	    .until = zone_next(policy->cooldown.zone, now, minute / 60, minute % 60)};
}

static struct rest
unstated(
    enum verdict verdict, const struct conf_policy *policy, unsigned streak, struct wall_ms now)
{
	switch (verdict) {
	case VERDICT_SOFT_RATE:
		return guess(cooldown_guess_ms(policy->cooldown.soft_rate_ms,
		                 policy->cooldown.soft_rate_max_ms, streak),
		    now);
	case VERDICT_MODEL_RATE: return guess(policy->cooldown.soft_rate_ms, now);
	case VERDICT_MODEL_MISSING:
	case VERDICT_NOT_FOUND: return guess(policy->cooldown.not_found_ms, now);
	case VERDICT_OVERLOAD: return guess(policy->cooldown.overload_ms, now);
	case VERDICT_HARD_CREDIT: return until_next_credit(policy, now);
	case VERDICT_OK:
	case VERDICT_CLIENT:
	case VERDICT_CONTEXT_LENGTH:
	case VERDICT_AUTH_FAILED:
	case VERDICT_SESSION_DEAD:
	case VERDICT_SERVER:
	case VERDICT_NETWORK:
	case VERDICT_UNEXPLAINED:
	case VERDICT_CANCELLED:
	case VERDICT_NOBODY:
	case VERDICT__MAX: break;
	}
	return (struct rest){.rests = false};
}

/* Has a stated reset a meaning for this verdict? A server fault only with a Retry-After. */
static bool
heeds_stated(enum verdict verdict)
{
	return verdict == VERDICT_SOFT_RATE || verdict == VERDICT_MODEL_RATE ||
	       verdict == VERDICT_HARD_CREDIT || verdict == VERDICT_OVERLOAD ||
	       verdict == VERDICT_SERVER;
}

struct rest
rest_after(enum verdict verdict, int status, const struct reset_time *reset,
    const struct conf_policy *policy, unsigned streak, struct wall_ms now)
{
	struct wall_ms until;

	if (reset->stated && heeds_stated(verdict) && reset->at.v < YEAR_9999_MS &&
	    cooldown_stated(reset->at, stated_cap_ms(verdict, status, policy), now, &until))
		return (struct rest){.rests = true, .until = until, .reset_at = reset->at};
	return unstated(verdict, policy, streak, now);
}
