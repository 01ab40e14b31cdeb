/*
 * roster - the numbers that configured names have in rows, given once and kept for ever.
 *
 * Rows      KEY_CHANNEL number -> struct roster_channel; KEY_TEXT hash -> struct roster_text and the full name
 *           Names: "channel" and "channel/account".
 * Source    SPEC.md section 3 ("state is keyed by channel and account id"); store.md decision 6
 */
#ifndef STORE_ROSTER_H
#define STORE_ROSTER_H

#include "store/account.h"

/* The number of a channel; made when missing and `create`, else STORE_NONE. */
enum store_rc roster_channel(
    struct txn *txn, const char *name, bool create, uint16_t *number_out) STORE_MUST_CHECK;

/*
 * The number of an account. When `create`: made when missing; a key that changed (another fingerprint) enables an
 * account that failures had disabled and clears its session-dead and auth counts; *rekeyed_out tells.
 */
enum store_rc roster_account(struct txn *txn, uint16_t channel, const char *id,
    const uint8_t fingerprint[8], bool create, struct account_ref *ref_out,
    bool *rekeyed_out) STORE_MUST_CHECK;

#endif
