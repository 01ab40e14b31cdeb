/*
 * status - the state of everything as the JSON of SPEC.md section 17, from one read transaction.
 *
 * Served at /status and printed by `sluicectl status --json`: the same bytes from the same function.
 *
 * Errors    ERR_STORE with the store's text
 */
#ifndef STATUS_H
#define STATUS_H

#include "base/emit.h"
#include "pick.h"

struct status_frame {
	const struct conf *conf;
	const struct pool *pool;
	struct env *env;
	const struct slot *slot; /* for whose leases are alive */
	uint64_t generation;
	struct wall_ms loaded_at, now;
	const char *conf_error;
};

enum err status_json(const struct status_frame *frame, struct buf *out, struct why *why) MUST_CHECK;

/* One account, for `sluicectl account show`; the object as it stands in the array. */
enum err status_account(const struct status_frame *frame, size_t channel, size_t account,
    struct buf *out, struct why *why) MUST_CHECK;

/* A channel's breaker under the key "breaker", as it stands in the array. */
void status_breaker(
    struct emit *e, const struct breaker_row *row, const struct breaker_policy *policy);

#endif
