#include "store/tally.h"

#include <string.h>

const struct tally_row tally_table[TALLY__MAX] = {
    [TALLY_PAIRS] = {"model_cooldowns", "models resting on one account, rows"},
    [TALLY_EVENTS] = {"events", "state transitions ever recorded"},
    [TALLY_DEAD_LEASES] = {"dead_leases", "leases freed because their worker had died"},
    [TALLY_CANCELLED] = {"cancelled", "attempts given up because the client had gone"},
    [TALLY_GENERATION] = {"generation", "of the configuration in force"},
    [TALLY_LOADED_MS] = {"loaded_ms", "when the configuration came into force"},
    [TALLY_SESSIONS] = {"sessions", "sessions bound to an account, rows"},
    [TALLY_DEGRADE] = {"degrade", "an operator's word on degradation: 0 auto, 1 on, 2 off"},
    [TALLY_DEGRADED] = {"degraded", "1 while requests are refused because of it"},
};

static enum store_rc
row_get(struct txn *txn, uint64_t values[TALLY__MAX])
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key_of(KEY_TALLY, 0, 0), &bytes);

	memset(values, 0, TALLY__MAX * sizeof *values);
	if (rc == STORE_NONE)
		return STORE_OK;
	if (rc == STORE_OK)
		memcpy(values, bytes.p,
		    bytes.n < TALLY__MAX * sizeof *values ? bytes.n : TALLY__MAX * sizeof *values);
	return rc;
}

enum store_rc
tally_get(struct txn *txn, enum tally which, uint64_t *value_out)
{
	uint64_t values[TALLY__MAX];
	enum store_rc rc = row_get(txn, values);

	if (rc == STORE_OK)
		*value_out = values[which];
	return rc;
}

enum store_rc
tally_set(struct txn *txn, enum tally which, uint64_t value)
{
	uint64_t values[TALLY__MAX];
	enum store_rc rc = row_get(txn, values);

	if (rc != STORE_OK || values[which] == value)
		return rc;
	values[which] = value;
	return txn_put(txn, key_of(KEY_TALLY, 0, 0), values, sizeof values);
}

enum store_rc
tally_add(struct txn *txn, enum tally which, int64_t n)
{
	uint64_t values[TALLY__MAX];
	enum store_rc rc = row_get(txn, values);

	if (rc != STORE_OK)
		return rc;
	values[which] += (uint64_t)n;
	return txn_put(txn, key_of(KEY_TALLY, 0, 0), values, sizeof values);
}
