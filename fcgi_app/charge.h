/*
 * charge - what an attempt costs and whom it is booked on: price, usage ledger, quota. Inside the settling transaction.
 *
 * Cost      usage.credit, or tokens times the configured price of the model (per 1,000 tokens); neither: unknown, which is
 *           no observation of a price. A configured price of 0 is free.
 * Source    SPEC.md sections 7, 12, 14
 */
#ifndef CHARGE_H
#define CHARGE_H

#include "dialect/dialect.h"
#include "pick.h"
#include "verdict.h"

#include "store/ledger.h"

struct charge {
	const struct conf *conf;
	const struct pick_lease *lease;
	enum verdict verdict;
	const struct dialect_usage *usage;
	const char *client;
	const char *model; /* as the upstream knows it */
	bool sent;         /* the request reached the upstream */
	struct wall_ms now;
	int64_t cost_micros; /* charge_cost() */
};

/* What this attempt cost, in millionths; -1 = unknown. Pure: before the transaction. */
int64_t charge_cost(const struct charge *charge);

/* *crossed_out: windows of the account's quota that passed 90 % with this (quota.h). */
enum store_rc charge_apply(
    struct txn *txn, const struct charge *charge, unsigned *crossed_out) STORE_MUST_CHECK;
/* Only give back what the lease reserved. */
enum store_rc charge_nothing(struct txn *txn, const struct charge *charge) STORE_MUST_CHECK;

#endif
