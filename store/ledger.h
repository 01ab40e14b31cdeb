/*
 * ledger - who used what and what it cost, a row for each UTC day, client, channel, account and model.
 *
 * Names are texts, so rows outlive a change of the configuration. Clients and models are named by callers: when a day
 * has LEDGER_DAY_ROWS rows, what would be a new one counts for client "(other)"; after as many again, for model
 * "(other)" too; after as many again, everything goes into one row. The sum of the rows is always the sum of what was
 * added, up to saturation.
 *
 * Rows      KEY_LEDGER day, hash (39 bits)  -> struct ledger_row and four texts, each with its end
 *           KEY_LEDGER day, all ones        -> number of the day's rows
 * Units     days since 1970-01-01 UTC; tokens; millionths of the currency
 * Source    SPEC.md section 14
 */
#ifndef STORE_LEDGER_H
#define STORE_LEDGER_H

#include "store/env.h"

#define LEDGER_DAY_ROWS 20000
#define LEDGER_ROWS 1000000 /* about 230 MB: when there are more, whole days go, oldest first */
#define LEDGER_KEEP_DAYS 400
#define LEDGER_NAME_MAX 255 /* bytes; longer names are cut */
#define LEDGER_OTHER "(other)"

struct ledger_key {
	uint16_t day;
	const char *client, *channel, *account, *model; /* "" = none */
};

/* In additions, what one outcome adds. */
struct ledger_sum {
	uint64_t requests, failed, cancelled;
	uint64_t prompt, completion, cached, cache_write, reasoning; /* prompt includes cached */
	uint64_t estimated; /* requests whose usage was estimated */
	uint64_t priced;    /* requests whose cost is known; 0: the cost is unknown, not free */
	int64_t cost_micros;
};
_Static_assert(sizeof(struct ledger_sum) == 88, "ledger sums have no padding");

/* The UTC day of a time. */
uint16_t ledger_day(struct wall_ms at);

/* Add field by field; what would overflow stays at its largest. */
void ledger_sum_add(struct ledger_sum *sum, const struct ledger_sum *delta);

enum store_rc ledger_add(
    struct txn *txn, const struct ledger_key *key, const struct ledger_sum *delta) STORE_MUST_CHECK;

/* Rows of from_day to to_day, both included, days in order. The key's texts are good only within `fn`, which returns
 * false to stop. */
typedef bool ledger_fn(const struct ledger_key *key, const struct ledger_sum *sum, void *arg);
enum store_rc ledger_walk(
    struct txn *txn, uint16_t from_day, uint16_t to_day, ledger_fn *fn, void *arg) STORE_MUST_CHECK;

/* Delete up to `most` rows that are too old or too many. *removed_out < most: done. */
enum store_rc ledger_sweep(
    struct txn *txn, uint16_t today, unsigned most, unsigned *removed_out) STORE_MUST_CHECK;

#endif
