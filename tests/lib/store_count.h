/*
 * store_count - transaction functions that count in a row, for tests of the store.
 */
#ifndef TESTS_LIB_STORE_COUNT_H
#define TESTS_LIB_STORE_COUNT_H

#include "lib/store_dir.h"

struct row {
	uint64_t count;
	char pad[56];
};

static inline uint64_t
key_n(uint64_t n)
{
	return key_of(KEY_STAT, 1, n);
}

struct step {
	uint64_t key, seen;
	long stay_us; /* how long to sit inside, the row read but not yet written */
	volatile int *flag;
};

static inline enum store_rc
count_up(struct txn *txn, void *arg)
{
	struct step *step = arg;
	struct row row = {0};
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, step->key, &bytes);

	if (rc == STORE_OK)
		memcpy(&row, bytes.p, sizeof row);
	else if (rc != STORE_NONE)
		return rc;
	if (step->flag != NULL)
		*step->flag = 1;
	if (step->stay_us > 0)
		nanosleep(
		    &(struct timespec){step->stay_us / 1000000, step->stay_us % 1000000 * 1000},
		    NULL);
	step->seen = ++row.count;
	return txn_put(txn, step->key, &row, sizeof row);
}

static inline enum store_rc
look(struct txn *txn, void *arg)
{
	struct step *step = arg;
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, step->key, &bytes);

	if (rc == STORE_OK)
		memcpy(&step->seen, bytes.p, sizeof step->seen);
	return rc;
}

static inline uint64_t
seen_by(struct env *env, uint64_t key)
{
	struct step step = {.key = key};
	enum store_rc rc = env_view(env, look, &step);

	return rc == STORE_OK ? step.seen : 0;
}

static inline enum store_rc
up(struct env *env, uint64_t key)
{
	struct step step = {.key = key};

	return env_update(env, count_up, &step);
}

#endif
