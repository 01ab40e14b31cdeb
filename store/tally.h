/*
 * tally - counters of the whole store, each declared once in the table of tally.c.
 *
 * Row       KEY_TALLY -> uint64_t[TALLY__MAX]; a shorter row of an older program reads as zeros behind its end
 * Source    SPEC.md section 14
 */
#ifndef STORE_TALLY_H
#define STORE_TALLY_H

#include "store/env.h"

/* The numbers are part of the format: add at the end. */
enum tally {
	TALLY_PAIRS = 0,
	TALLY_EVENTS = 1, /* sequence number of the newest event */
	TALLY_DEAD_LEASES = 2,
	TALLY_CANCELLED = 3,
	TALLY_GENERATION = 4, /* of the configuration in force */
	TALLY_LOADED_MS = 5,  /* when it came into force, wall ms */
	TALLY_SESSIONS = 6,   /* bindings, expired ones too until they are swept */
	TALLY_DEGRADE = 7,    /* an operator's word, enum tally_degrade */
	TALLY_DEGRADED = 8,   /* are requests refused for it now */
	TALLY__MAX
};

enum tally_degrade { TALLY_DEGRADE_AUTO = 0, TALLY_DEGRADE_ON = 1, TALLY_DEGRADE_OFF = 2 };

struct tally_row {
	const char *name;
	const char *help;
};
extern const struct tally_row tally_table[TALLY__MAX];

enum store_rc tally_get(struct txn *txn, enum tally which, uint64_t *value_out) STORE_MUST_CHECK;
enum store_rc tally_set(struct txn *txn, enum tally which, uint64_t value) STORE_MUST_CHECK;
enum store_rc tally_add(struct txn *txn, enum tally which, int64_t n) STORE_MUST_CHECK;

#endif
