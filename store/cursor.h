/*
 * cursor - where the round robins of a channel stand: one place for all processes.
 *
 * Rows      KEY_CURSOR channel, 0      -> the account number picked last
 *           KEY_CURSOR channel, 1 + n  -> shard n of the smooth round robin: 450 standings
 * Units     standings: thousandths of a weight
 * Source    SPEC.md section 7; they are learnt anew after an unclean reboot
 */
#ifndef STORE_CURSOR_H
#define STORE_CURSOR_H

#include "store/env.h"

#define CURSOR_NOBODY UINT32_MAX

enum store_rc cursor_get(struct txn *txn, uint16_t channel, uint32_t *number_out) STORE_MUST_CHECK;
enum store_rc cursor_put(struct txn *txn, uint16_t channel, uint32_t number) STORE_MUST_CHECK;

/* The standings of accounts 0..n-1; missing ones are 0. */
enum store_rc cursor_smooth_get(
    struct txn *txn, uint16_t channel, int32_t *standings_out, uint32_t n) STORE_MUST_CHECK;
enum store_rc cursor_smooth_put(
    struct txn *txn, uint16_t channel, const int32_t *standings, uint32_t n) STORE_MUST_CHECK;

#endif
