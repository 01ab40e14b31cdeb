/*
 * status_account - one account with all that is known of it, read and printed.
 *
 * Inside a transaction. `leases` holds those of living processes only.
 */
#ifndef STATUS_ACCOUNT_H
#define STATUS_ACCOUNT_H

#include "status.h"

struct status_view {
	const struct conf_channel *channel;
	const struct conf_account *account;
	struct account_ref ref;
	struct account_row row;
	struct account_stat stat;
	struct account_note note;
	struct quota_row quota;
	unsigned in_flight;
	enum health_state state;
};

/* Rows that are missing are zero, as those of an account that the store has not seen yet. */
enum store_rc status_view(struct txn *txn, const struct status_frame *frame,
    const struct slot_list *leases, size_t channel, size_t account,
    struct status_view *view_out) STORE_MUST_CHECK;
/* The object of SPEC.md section 17. */
enum store_rc status_view_put(struct emit *e, struct txn *txn, const struct status_view *view,
    struct wall_ms now) STORE_MUST_CHECK;

#endif
