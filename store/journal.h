/*
 * journal - every transition of an account or channel, the newest 10,000.
 *
 * Row       KEY_EVENT sequence -> struct journal_row
 * Source    SPEC.md section 8 ("every transition is an event row")
 */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include "store/env.h"

#define JOURNAL_KEEP 10000

enum journal_level { JOURNAL_INFO = 1, JOURNAL_WARN = 2, JOURNAL_ALERT = 3 };

struct journal_row {
	uint8_t version, level;
	uint16_t status; /* of the upstream, 0 = none */
	uint32_t spare;
	int64_t at_ms, old_until_ms, new_until_ms;
	char channel[64], account[68]; /* names: rows outlive a change of the configuration */
	char model[64];        /* "" = the whole account; with no account: on the whole channel */
	char from[12], to[12]; /* active, cooling, disabled, open ... */
	char cause[24], rule[64]; /* soft_rate, breaker, operator ... */
};

enum store_rc journal_add(struct txn *txn, const struct journal_row *row) STORE_MUST_CHECK;

typedef bool journal_fn(uint64_t sequence, const struct journal_row *row, void *arg);
/* Oldest first, from sequence `after` + 1; `fn` returns false to stop. */
enum store_rc journal_walk(
    struct txn *txn, uint64_t after, journal_fn *fn, void *arg) STORE_MUST_CHECK;

#endif
