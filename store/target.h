/*
 * target - what is remembered of one model on one channel: how its requests went lately, how fast, and whether it rests.
 *
 * The first part is pure: no store, no clock. What an account did is account.h's; here a model is looked at, on whichever
 * account it was.
 *
 * Rows      KEY_TARGET channel, hash of the model (40 bits) -> struct target_row, model's name (not terminated)
 *           KEY_TARGET channel, all ones                    -> struct target_channel
 *           At most TARGET_MODELS_MAX models a channel: caller-chosen names must not fill the store. A new one takes
 *           the place of the one that was used last longest ago, if that was TARGET_STALE_MS ago; one that is named,
 *           which the configuration knows, that of any which is not.
 * Rest      `fail_after` server failures in a row: left out for `cooldown_ms`; then one request tries it, and whoever
 *           takes that one puts the rest forward again, so that there is one over all processes. A success ends it. One
 *           that is further ahead than `cooldown_ms` (another setting, a wrong clock) is over.
 * Alone     a model fails, and another one of the channel succeeded since its first failure. What is needed to tell is
 *           in struct target_channel, stamped in the order of transactions: exact whatever the clock does.
 * Ratio     each answer counts by its size, and a short prompt, in which the frame outweighs the text, not at all: else
 *           many of them would say that a long one is too long for a window in which it fits. It begins at 1 with a
 *           small weight.
 * Errors    where there is no room for a model nothing is kept of it and STORE_OK is returned
 * Source    SPEC.md sections 12 and 13
 */
#ifndef STORE_TARGET_H
#define STORE_TARGET_H

#include "store/env.h"
#include "store/window.h"

#define TARGET_MODELS_MAX 512
#define TARGET_MODEL_MAX 255 /* bytes; longer names are not kept */
#define TARGET_RATIO_ONE 1000000
#define TARGET_STALE_MS INT64_C(86400000)

struct target_row {
	uint8_t version, named, spare[2];
	uint32_t consecutive;   /* server failures in a row */
	int64_t rest_until_ms;  /* 0 = none */
	int64_t streak_ms;      /* when the first of them was; 0 = none */
	int64_t success_ms;     /* the last one; 0 = never */
	uint32_t ratio_ppm;     /* real by estimated tokens of prompts, smoothed; 0 = unknown */
	uint32_t ratio_n;       /* answers that it was learnt from, at most UINT32_MAX */
	uint32_t ratio_weight;  /* tokens that it stands for */
	uint32_t output_tokens; /* of answers, smoothed; 0 = unknown */
	uint64_t cost_micros, cost_tokens; /* what it has cost in all, where the price is known */
	struct window calls;               /* n requests, sum failures */
	struct window first;               /* n times to first content, sum milliseconds */
};
_Static_assert(sizeof(struct target_row) == 480, "target_row has no padding");

/* Times are no earlier than what happened before them: enough to tell whether a model fails alone. */
struct target_channel {
	uint8_t version, spare;
	uint16_t models; /* rows of the channel */
	uint32_t spare2;
	int64_t failed_ms;  /* when failures in a row of any model began last; 0 = never */
	int64_t success_ms; /* the first success behind it; earlier than it: none yet */
};
_Static_assert(sizeof(struct target_channel) == 24, "target_channel has no padding");

/* A model on a channel, as rows name it. */
struct target_ref {
	uint16_t channel;
	struct env_bytes model;
};

struct target_policy {
	int64_t window_ms;
	uint32_t fail_after;
	int64_t cooldown_ms;
};

struct target_outcome {
	bool failed;              /* server, network, overload; else it is a success */
	bool named;               /* the configuration knows the model */
	int64_t first_content_ms; /* -1 = none */
	/* tokens of the prompt, as counted without correction and as the upstream said; 0 = unknown */
	uint64_t estimated, reported;
	uint64_t output_tokens; /* as the upstream said; 0 = unknown */
	int64_t cost_micros;    /* -1 = unknown */
	uint64_t tokens;        /* that this was paid for */
};

/* ---- pure ---- */

void target_settle(struct target_row *row, const struct target_outcome *outcome,
    const struct target_policy *policy, struct wall_ms now);
/* May requests go there? `trial`: only one, which has to be taken by target_try(). */
enum target_state { TARGET_OPEN, TARGET_TRIAL, TARGET_RESTS };
enum target_state target_state(
    const struct target_row *row, const struct target_policy *policy, struct wall_ms now);

struct target_sums {
	uint64_t calls, failures, first_n, first_sum_ms;
};
void target_sums(const struct target_row *row, const struct target_policy *policy,
    struct wall_ms now, struct target_sums *sums_out);
/* In millionths; 1000000 without data. */
uint32_t target_success_ppm(const struct target_sums *sums);
/* Is it this model alone that fails? Another model of the channel succeeded since its failures began. */
bool target_is_alone(const struct target_row *row, const struct target_channel *channel);
/* An estimate by what upstreams reported before: in the bounds of a half and three times. */
int64_t target_correct(const struct target_row *row, int64_t estimated);

/* ---- rows ---- */

/* STORE_NONE: nothing is known; the row is then an empty one with the version set. */
enum store_rc target_get(
    struct txn *txn, struct target_ref ref, struct target_row *row_out) STORE_MUST_CHECK;
enum store_rc target_put(
    struct txn *txn, struct target_ref ref, const struct target_row *row) STORE_MUST_CHECK;
enum store_rc target_channel_get(
    struct txn *txn, uint16_t channel, struct target_channel *row_out) STORE_MUST_CHECK;

/* What an outcome did. */
struct target_change {
	bool rests, back; /* it began to rest; a success ended its rest */
	bool alone;       /* target_is_alone() with this failure */
	int64_t old_until_ms, until_ms;
};
/* target_settle() on the stored row, with what belongs to the channel. */
enum store_rc target_feed(struct txn *txn, struct target_ref ref,
    const struct target_outcome *outcome, const struct target_policy *policy, struct wall_ms now,
    struct target_change *change_out) STORE_MUST_CHECK;
/* Take the one request after a rest: *taken_out. Of a target that does not rest any may be taken. */
enum store_rc target_try(struct txn *txn, struct target_ref ref, const struct target_policy *policy,
    struct wall_ms now, bool *taken_out) STORE_MUST_CHECK;

/* Models of a channel, in no order; the name is not terminated, and a caller's word. `fn` returns false to stop. */
typedef bool target_fn(struct env_bytes model, const struct target_row *row, void *arg);
enum store_rc target_walk(
    struct txn *txn, uint16_t channel, target_fn *fn, void *arg) STORE_MUST_CHECK;

#endif
