#include "store/slot.h"

#include "store/lock.h"
#include "store/why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROW_VERSION 1
#define SHARD_ROWS 31 /* 1,984 bytes: inside a leaf page; store.md decision 6 */

struct shard {
	struct slot_row row[SHARD_ROWS];
};
_Static_assert(sizeof(struct shard) < 2000, "a shard must lie inside a leaf page");

struct slot {
	struct lock lock;
	unsigned number;      /* SLOT_MAX: none, only watching */
	struct slot_row left; /* by a dead former owner */
};

static uint64_t
shard_key(unsigned number)
{
	return key_of(KEY_SLOT, 0, number / SHARD_ROWS);
}

/* Copies the shard of `number`; all zero (that is, free) when there is none yet. */
static enum store_rc
shard_get(struct txn *txn, unsigned number, struct shard *shard_out)
{
	struct env_bytes row;
	enum store_rc rc = txn_get(txn, shard_key(number), &row);

	if (rc == STORE_OK && row.n != sizeof *shard_out)
		return STORE_BAD;
	if (rc == STORE_OK)
		memcpy(shard_out, row.p, sizeof *shard_out);
	else
		memset(shard_out, 0, sizeof *shard_out);
	return rc == STORE_NONE ? STORE_OK : rc;
}

/* The generation outlives the lease. STORE_NONE: was free. */
static enum store_rc
number_free(struct txn *txn, unsigned number)
{
	struct shard shard;
	struct slot_row *row = &shard.row[number % SHARD_ROWS];
	enum store_rc rc = shard_get(txn, number, &shard);

	if (rc != STORE_OK)
		return rc;
	if (row->kind == SLOT_FREE)
		return STORE_NONE;
	*row = (struct slot_row){.version = ROW_VERSION, .generation = row->generation};
	return txn_put(txn, shard_key(number), &shard, sizeof shard);
}

/* Lock the lowest number that nobody holds; `error` says why not: EAGAIN, EACCES all are held. */
struct claim {
	struct slot *slot;
	int error;
};

/* STORE_NONE: the lowest one has a row of a dead owner. */
static enum store_rc
claim_clean(struct txn *txn, void *arg)
{
	struct claim *claim = arg;
	struct slot *slot = claim->slot;

	claim->error = EAGAIN;
	for (unsigned n = 0; n < SLOT_MAX; n++) {
		struct shard shard;
		enum store_rc rc = shard_get(txn, n, &shard);

		if (rc != STORE_OK)
			return rc;
		if (shard.row[n % SHARD_ROWS].kind != SLOT_FREE) {
			if (!slot_lives(slot, n))
				return STORE_NONE;
			continue;
		}
		claim->error = lock_take(&slot->lock, n);
		if (claim->error == 0)
			slot->number = n;
		if (claim->error != EAGAIN && claim->error != EACCES)
			break;
	}
	return STORE_OK;
}

/* May run again: keeps the number that it has. */
static enum store_rc
claim_and_free(struct txn *txn, void *arg)
{
	struct claim *claim = arg;
	struct slot *slot = claim->slot;
	struct shard shard;
	enum store_rc rc;

	for (unsigned n = 0; n < SLOT_MAX && slot->number >= SLOT_MAX; n++) {
		claim->error = lock_take(&slot->lock, n);
		if (claim->error == 0)
			slot->number = n;
		else if (claim->error != EAGAIN && claim->error != EACCES)
			break;
	}
	if (slot->number >= SLOT_MAX)
		return STORE_OK;
	rc = shard_get(txn, slot->number, &shard);
	if (rc != STORE_OK)
		return rc;
	slot->left = shard.row[slot->number % SHARD_ROWS];
	rc = number_free(txn, slot->number);
	return rc == STORE_NONE ? STORE_OK : rc;
}

static enum store_rc
look_if_free(struct txn *txn, void *arg)
{
	const struct claim *claim = arg;
	struct shard shard;
	enum store_rc rc;

	if (claim->slot->number >= SLOT_MAX)
		return STORE_OK;
	rc = shard_get(txn, claim->slot->number, &shard);
	if (rc != STORE_OK)
		return rc;
	return shard.row[claim->slot->number % SHARD_ROWS].kind == SLOT_FREE ? STORE_OK
	                                                                     : STORE_NONE;
}

/*
 * A dead owner's row counts as living once we hold its number. So both change hands in one write transaction, where
 * nobody counts. With nothing to free there is no need for it.
 */
static enum store_rc
number_claim(struct env *env, struct claim *claim, struct store_why *why)
{
	enum store_rc rc = env_view(env, claim_clean, claim);

	if (rc == STORE_OK) /* somebody took a lease and died since */
		rc = env_view(env, look_if_free, claim);
	if (rc == STORE_NONE)
		rc = env_update(env, claim_and_free, claim);
	if (rc != STORE_OK)
		why_say(why, "%s", env_error(env));
	return rc;
}

static enum store_rc
refuse(struct store_why *why, const char *dir, int e)
{
	why_say(why, "slots.lock: %s: all files in state_dir must belong to this user ('%s')",
	    strerror(e), dir);
	return e == ENOSPC || e == EDQUOT ? STORE_FULL : STORE_IO;
}

enum store_rc
slot_watch(struct env *env, struct slot **slot_out, struct store_why *why)
{
	struct lock lock;
	struct slot *slot;

	if (!lock_open(env_dir(env), "slots.lock", &lock))
		return refuse(why, env_dir(env), errno);
	slot = malloc(sizeof *slot);
	if (slot == NULL) {
		lock_close(&lock);
		return refuse(why, env_dir(env), ENOMEM);
	}
	*slot = (struct slot){.lock = lock, .number = SLOT_MAX};
	*slot_out = slot;
	return STORE_OK;
}

enum store_rc
slot_open(struct env *env, struct slot **slot_out, struct store_why *why)
{
	struct slot *slot = NULL;
	enum store_rc rc = slot_watch(env, &slot, why);
	struct claim claim = {.slot = slot};

	if (rc != STORE_OK)
		return rc;
	rc = number_claim(env, &claim, why);
	if (rc == STORE_OK && (claim.error == EAGAIN || claim.error == EACCES)) {
		why_say(why, "all %d slots are held: run fewer workers", SLOT_MAX);
		rc = STORE_BUSY;
	} else if (rc == STORE_OK && claim.error != 0) {
		rc = refuse(why, env_dir(env), claim.error);
	}
	if (rc != STORE_OK)
		slot_close(&slot);
	else
		*slot_out = slot;
	return rc;
}

void
slot_close(struct slot **slot)
{
	if (*slot == NULL)
		return;
	lock_close(&(*slot)->lock);
	free(*slot);
	*slot = NULL;
}

bool
slot_left(const struct slot *slot, struct slot_row *row_out)
{
	*row_out = slot->left;
	return slot->left.kind != SLOT_FREE;
}

unsigned
slot_number(const struct slot *slot)
{
	return slot->number;
}

enum store_rc
slot_take(struct txn *txn, const struct slot *slot, const struct slot_row *row)
{
	struct shard shard;
	struct slot_row *at;
	enum store_rc rc;

	if (slot->number >= SLOT_MAX)
		return STORE_NONE;
	rc = shard_get(txn, slot->number, &shard);
	if (rc != STORE_OK)
		return rc;
	at = &shard.row[slot->number % SHARD_ROWS];
	uint64_t generation = at->generation + 1;
	*at = *row;
	at->version = ROW_VERSION;
	at->generation = generation;
	at->pid = (uint32_t)getpid();
	return txn_put(txn, shard_key(slot->number), &shard, sizeof shard);
}

enum store_rc
slot_free(struct txn *txn, const struct slot *slot)
{
	return slot->number < SLOT_MAX ? number_free(txn, slot->number) : STORE_NONE;
}

static enum store_rc
shard_seen(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct slot_list *list = arg;
	uint64_t first = key_rest(key) * SHARD_ROWS;

	if (bytes.n != sizeof(struct shard))
		return STORE_BAD;
	for (unsigned i = 0; i < SHARD_ROWS && first + i < SLOT_MAX; i++) {
		struct slot_seen *seen = &list->seen[list->n];
		const char *at = (const char *)bytes.p + i * sizeof seen->row;

		/* the row may lie unaligned */
		if (at[offsetof(struct slot_row, kind)] == SLOT_FREE)
			continue;
		memcpy(&seen->row, at, sizeof seen->row);
		seen->number = (unsigned)first + i;
		list->n++;
	}
	return STORE_OK;
}

enum store_rc
slot_walk(struct txn *txn, struct slot_list *list_out)
{
	/* the last key also bounds what a damaged store can put into the list */
	uint64_t last = shard_key(SLOT_MAX - 1);

	list_out->n = 0;
	return txn_walk(txn, shard_key(0), last, shard_seen, list_out);
}

bool
slot_lives(const struct slot *own, unsigned number)
{
	/* the system shows our own lock as free */
	if (own == NULL || number == own->number || number >= SLOT_MAX)
		return true;
	return lock_is_taken(&own->lock, number);
}

enum store_rc
slot_reap(struct txn *txn, const struct slot *own, struct account_ref account, unsigned *freed_out)
{
	struct slot_list list;
	enum store_rc rc = slot_walk(txn, &list);
	unsigned freed = 0;

	for (unsigned i = 0; i < list.n && rc == STORE_OK; i++) {
		const struct slot_seen *seen = &list.seen[i];

		if (seen->row.channel != account.channel || seen->row.account != account.number ||
		    slot_lives(own, seen->number))
			continue;
		rc = number_free(txn, seen->number);
		freed++;
	}
	if (rc == STORE_OK)
		*freed_out = freed;
	return rc;
}
