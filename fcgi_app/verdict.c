#include "verdict.h"

/*
 * Rate limits count as requests of the channel that did not fail: pool_exhausted is their trigger. What the caller, or
 * one model, is to blame for is no request of the channel's window at all.
 */
const struct verdict_row verdict_table[VERDICT__MAX] = {
    [VERDICT_OK] = {.name = "ok", .channel_requests = true},
    [VERDICT_CLIENT] = {.name = "client"},
    [VERDICT_CONTEXT_LENGTH] = {.name = "context_length"},
    [VERDICT_AUTH_FAILED] = {.name = "auth_failed",
        .next = NEXT_AT_ONCE,
        .rest = REST_DISABLE,
        .counts = true,
        .error = true,
        .channel_counts = true,
        .channel_requests = true,
        .status = 502},
    [VERDICT_SESSION_DEAD] = {.name = "session_dead",
        .next = NEXT_AT_ONCE,
        .rest = REST_DISABLE,
        .counts = true,
        .error = true,
        .channel_requests = true,
        .status = 502},
    [VERDICT_HARD_CREDIT] = {.name = "hard_credit",
        .next = NEXT_AT_ONCE,
        .rest = REST_ACCOUNT,
        .counts = true,
        .error = true,
        .channel_requests = true,
        .status = 502},
    [VERDICT_SOFT_RATE] = {.name = "soft_rate",
        .next = NEXT_AT_ONCE,
        .rest = REST_ACCOUNT,
        .counts = true,
        .error = true,
        .rate_limited = true,
        .channel_requests = true,
        .status = 429},
    [VERDICT_MODEL_RATE] = {.name = "model_rate",
        .next = NEXT_AT_ONCE,
        .rest = REST_MODEL,
        .error = true,
        .rate_limited = true,
        .status = 429},
    [VERDICT_MODEL_MISSING] = {.name = "model_missing",
        .next = NEXT_AT_ONCE,
        .rest = REST_MODEL,
        .error = true,
        .rate_limited = true,
        .status = 404},
    [VERDICT_NOT_FOUND] = {.name = "not_found",
        .next = NEXT_AT_ONCE,
        .rest = REST_ACCOUNT,
        .counts = true,
        .error = true,
        .channel_requests = true,
        .status = 502},
    [VERDICT_OVERLOAD] = {.name = "overload",
        .next = NEXT_BACKOFF,
        .rest = REST_ACCOUNT,
        .channel_counts = true,
        .channel_requests = true,
        .target_counts = true,
        .status = 503},
    [VERDICT_SERVER] = {.name = "server",
        .next = NEXT_BACKOFF,
        .counts = true,
        .error = true,
        .channel_counts = true,
        .channel_requests = true,
        .target_counts = true,
        .status = 502},
    [VERDICT_NETWORK] = {.name = "network",
        .next = NEXT_BACKOFF,
        .counts = true,
        .error = true,
        .channel_counts = true,
        .channel_requests = true,
        .target_counts = true,
        .status = 502},
    [VERDICT_UNEXPLAINED] = {.name = "unexplained", .next = NEXT_ONCE},
    [VERDICT_CANCELLED] = {.name = "cancelled"},
    [VERDICT_NOBODY] = {.name = "nobody", .next = NEXT_AT_ONCE, .status = 502},
};

const char *
verdict_name(unsigned number)
{
	return number < VERDICT__MAX ? verdict_table[number].name : "unknown";
}

enum verdict
verdict_named(struct span name)
{
	for (size_t i = 0; i < VERDICT__MAX; i++)
		if (text_is(name, verdict_table[i].name))
			return (enum verdict)i;
	return VERDICT__MAX;
}
