/*
 * rig - a configuration joined with a store of its own, and what tests of picks and settlements do with them.
 */
#ifndef TESTS_LIB_RIG_H
#define TESTS_LIB_RIG_H

#include "lib/conf_text.h"
#include "lib/in_txn.h"
#include "pick.h"
#include "store/cooldown.h"
#include "store/tally.h"

#define RIG_NOW 1767607200000LL /* 2026-01-05T10:00:00Z */

struct rig {
	struct conf *conf;
	struct env *env;
	struct slot *slot; /* of "this process" */
	struct pool *pool;
	struct wall_ms now;
	/* of the last rig_take() */
	struct pick_lease lease;
	struct pick_reason reason;
};

static inline struct pool *
rig_pool(struct env *env, const struct conf *conf)
{
	struct why why = {""};
	struct pool *pool = NULL;

	if (pool_open(env, conf, true, &pool, &why) != ERR_OK)
		fail_msg("pool_open: %s", why.text);
	return pool;
}

static inline struct slot *
rig_slot(struct env *env)
{
	struct store_why why = {""};
	struct slot *slot = NULL;

	if (slot_open(env, &slot, &why) != STORE_OK)
		fail_msg("slot_open: %s", why.text);
	return slot;
}

static inline void
rig_open(struct rig *rig, const struct store_dir *dir, const char *json)
{
	*rig = (struct rig){.now = {RIG_NOW}};
	rig->conf = conf_text(dir->path, json);
	rig->env = store_dir_open(dir);
	assert_non_null(rig->env);
	rig->slot = rig_slot(rig->env);
	rig->pool = rig_pool(rig->env, rig->conf);
}

static inline void
rig_close(struct rig *rig)
{
	pool_free(&rig->pool);
	slot_close(&rig->slot);
	env_close(&rig->env);
	conf_free(&rig->conf);
}

/* Of the first channel. */
static inline struct pick_wish
rig_wish(const struct rig *rig, const char *model)
{
	return (struct pick_wish){
	    .pool = rig->pool, .model = model, .realm = SPAN(""), .insist = PICK_ANY};
}

/* Take for `slot`; the index of the account, or -1. */
static inline int
rig_take_as(struct rig *rig, const struct slot *slot, const struct pick_wish *wish)
{
	struct why why = {""};

	if (pick_take(rig->env, slot, wish, rig->now, &rig->lease, &rig->reason, &why) != ERR_OK)
		fail_msg("pick_take: %s", why.text);
	assert_int_equal(rig->lease.taken, rig->reason.result == PICK_TAKEN);
	return rig->lease.taken ? (int)rig->lease.account : -1;
}

static inline int
rig_take(struct rig *rig, const struct pick_wish *wish)
{
	return rig_take_as(rig, rig->slot, wish);
}

/* Everything that is stored of one account of the first channel. */
struct rig_state {
	const struct pool *pool;
	size_t account;
	const char *model; /* for `pair` */
	struct account_row row;
	struct account_stat stat;
	struct account_note note;
	struct cooldown_pair pair;
	bool has_pair;
	uint64_t tally[TALLY__MAX];
};

static inline enum store_rc
rig_state_get(struct txn *txn, void *arg)
{
	struct rig_state *s = arg;
	struct account_ref ref = pool_ref(s->pool, 0, s->account);
	enum store_rc rc = account_get(txn, ref, &s->row);

	if (rc == STORE_OK)
		rc = account_stat_get(txn, ref, &s->stat);
	if (rc == STORE_OK || rc == STORE_NONE)
		rc = account_note_get(txn, ref, &s->note);
	if (rc == STORE_OK || rc == STORE_NONE)
		rc = cooldown_get(txn, ref, s->model, &s->pair);
	s->has_pair = rc == STORE_OK;
	if (rc == STORE_NONE)
		rc = STORE_OK;
	for (int i = 0; i < TALLY__MAX && rc == STORE_OK; i++)
		rc = tally_get(txn, (enum tally)i, &s->tally[i]);
	return rc;
}

static inline struct rig_state
rig_state(const struct rig *rig, size_t account, const char *model)
{
	struct rig_state s = {.pool = rig->pool, .account = account, .model = model};

	OK(env_view(rig->env, rig_state_get, &s));
	return s;
}

static inline enum store_rc
rig_row_put(struct txn *txn, void *arg)
{
	struct rig_state *s = arg;

	return account_put(txn, pool_ref(s->pool, 0, s->account), &s->row);
}

static inline void
rig_put(const struct rig *rig, size_t account, const struct account_row *row)
{
	struct rig_state s = {.pool = rig->pool, .account = account, .row = *row};

	OK(env_update(rig->env, rig_row_put, &s));
}

static inline enum store_rc
rig_pair_put(struct txn *txn, void *arg)
{
	struct rig_state *s = arg;

	return cooldown_put(txn, pool_ref(s->pool, 0, s->account), &s->pair);
}

/* One model on the account rests until then. */
static inline void
rig_rest_model(
    const struct rig *rig, size_t account, const char *model, const struct cooldown_row *row)
{
	struct rig_state s = {.pool = rig->pool, .account = account, .pair = {.row = *row}};
	struct rig_state old = rig_state(rig, account, model);

	snprintf(s.pair.model, sizeof s.pair.model, "%s", model);
	OK(env_update(rig->env, rig_pair_put, &s));
	old.row.flags |= ACCOUNT_MODELS;
	rig_put(rig, account, &old.row);
}

static inline enum store_rc
rig_free_slot(struct txn *txn, void *arg)
{
	enum store_rc rc = slot_free(txn, arg);

	return rc == STORE_NONE ? STORE_OK : rc;
}

/* Give a lease back, if there is one, without a settlement. */
static inline void
rig_release(const struct rig *rig, struct slot *slot)
{
	OK(env_update(rig->env, rig_free_slot, slot));
}

#endif
