#include "store/target.h"

#include <string.h>

#define VERSION 1
#define PROBES \
	4 /* keys at which a model may stand: equal hashes of 40 bits are rare, and made on purpose */
#define PLACES ((UINT64_C(1) << 40) - 1) /* all ones is the channel's row */

/* ---- what belongs to the channel ---- */

/* Failures in a row begin: their stamp, behind every success before. */
static int64_t
channel_failed(struct target_channel *channel, struct wall_ms now)
{
	int64_t at = now.v > channel->success_ms ? now.v : channel->success_ms + 1;

	if (at > channel->failed_ms)
		channel->failed_ms = at;
	return at;
}

/* True: it is the first since some failures began, and must be remembered. */
static bool
channel_succeeded(struct target_channel *channel, struct wall_ms now)
{
	if (channel->success_ms >= channel->failed_ms)
		return false;
	channel->success_ms = now.v > channel->failed_ms ? now.v : channel->failed_ms;
	return true;
}

/* ---- rows ---- */

static uint64_t
channel_key(uint16_t channel)
{
	return key_of(KEY_TARGET, channel, UINT64_MAX);
}

static bool
is_time(int64_t v)
{
	return v >= 0 && v <= WINDOW_LATEST;
}

/* What no version of ours writes must not reach an index. */
static bool
row_read(struct env_bytes bytes, struct target_row *row_out)
{
	if (bytes.n <= sizeof *row_out || bytes.n > sizeof *row_out + TARGET_MODEL_MAX)
		return false;
	memcpy(row_out, bytes.p, sizeof *row_out);
	return row_out->version == VERSION && is_time(row_out->calls.newest) &&
	       is_time(row_out->first.newest) && is_time(row_out->rest_until_ms) &&
	       is_time(row_out->streak_ms) && is_time(row_out->success_ms);
}

static struct env_bytes
row_name(struct env_bytes bytes)
{
	size_t n = sizeof(struct target_row);

	return (struct env_bytes){(const char *)bytes.p + n, bytes.n - n};
}

/* Keys for a model; 0 = none. */
struct place {
	uint64_t key;  /* where it stands; else the first free one */
	uint64_t weak; /* of one that is not named */
};

/* Where the model stands (STORE_OK), or may stand (STORE_NONE). */
static enum store_rc
row_find(
    struct txn *txn, struct target_ref ref, struct place *place_out, struct target_row *row_out)
{
	uint64_t hash = key_hash(0, ref.model.p, ref.model.n);

	*place_out = (struct place){0, 0};

	for (unsigned i = 0; i < PROBES; i++) {
		uint64_t key = key_of(KEY_TARGET, ref.channel, (hash + i) % PLACES);
		struct env_bytes bytes, name;
		enum store_rc rc = txn_get(txn, key, &bytes);

		if (rc != STORE_OK && rc != STORE_NONE)
			return rc;
		if (rc == STORE_NONE || !row_read(bytes, row_out)) {
			place_out->key = place_out->key == 0 ? key : place_out->key;
			continue;
		}
		name = row_name(bytes);
		if (name.n == ref.model.n && memcmp(name.p, ref.model.p, name.n) == 0) {
			place_out->key = key;
			return STORE_OK;
		}
		place_out->weak = row_out->named ? place_out->weak : key;
	}
	return STORE_NONE;
}

static bool
is_kept(struct env_bytes model)
{
	return model.n > 0 && model.n <= TARGET_MODEL_MAX;
}

enum store_rc
target_get(struct txn *txn, struct target_ref ref, struct target_row *row_out)
{
	struct place place;
	enum store_rc rc = is_kept(ref.model) ? row_find(txn, ref, &place, row_out) : STORE_NONE;

	if (rc != STORE_OK)
		*row_out = (struct target_row){.version = VERSION};
	return rc;
}

enum store_rc
target_channel_get(struct txn *txn, uint16_t channel, struct target_channel *row_out)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, channel_key(channel), &bytes);

	if (rc == STORE_OK && bytes.n == sizeof *row_out) {
		memcpy(row_out, bytes.p, sizeof *row_out);
		if (row_out->version == VERSION && is_time(row_out->failed_ms) &&
		    is_time(row_out->success_ms))
			return STORE_OK;
	}
	*row_out = (struct target_channel){.version = VERSION};
	return rc == STORE_OK ? STORE_NONE : rc;
}

static enum store_rc
channel_put(struct txn *txn, uint16_t channel, const struct target_channel *row)
{
	return txn_put(txn, channel_key(channel), row, sizeof *row);
}

static int64_t
used_ms(const struct target_row *row)
{
	int64_t called = row->calls.newest <= WINDOW_LATEST / (row->calls.width_ms + INT64_C(1))
	                     ? row->calls.newest * row->calls.width_ms
	                     : WINDOW_LATEST;

	return called > row->success_ms ? called : row->success_ms;
}

struct oldest {
	struct old {
		uint64_t key; /* 0 = none */
		int64_t used_ms;
	} all, weak;
	unsigned n; /* rows in all */
};

static void
note_old(struct old *old, uint64_t key, int64_t used)
{
	if (old->key == 0 || used < old->used_ms)
		*old = (struct old){key, used};
}

static enum store_rc
find_oldest(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct oldest *oldest = arg;
	struct target_row row;
	bool sound = row_read(bytes, &row);
	int64_t used = sound ? used_ms(&row) : 0;

	oldest->n++;
	note_old(&oldest->all, key, used);
	if (!sound || !row.named)
		note_old(&oldest->weak, key, used);
	return STORE_OK;
}

/* Room for one more model. STORE_NONE: all others are in use. */
static enum store_rc
make_room(struct txn *txn, uint16_t channel, const struct target_row *row,
    struct target_channel *of_channel)
{
	struct oldest oldest = {.n = 0};
	enum store_rc rc;

	if (of_channel->models < TARGET_MODELS_MAX) {
		of_channel->models++;
		return STORE_OK;
	}
	rc = txn_walk(
	    txn, key_of(KEY_TARGET, channel, 0), channel_key(channel) - 1, find_oldest, &oldest);
	if (rc != STORE_OK)
		return rc;
	if (oldest.n < TARGET_MODELS_MAX) { /* rows of another version were written over */
		of_channel->models = (uint16_t)(oldest.n + 1);
		return STORE_OK;
	}
	if (row->named && oldest.weak.key != 0)
		return txn_del(txn, oldest.weak.key);
	if (oldest.all.used_ms > used_ms(row) - TARGET_STALE_MS)
		return STORE_NONE;
	return txn_del(txn, oldest.all.key);
}

static enum store_rc
row_put(struct txn *txn, uint64_t key, struct env_bytes model, const struct target_row *row)
{
	char bytes[sizeof *row + TARGET_MODEL_MAX];
	struct target_row copy = *row;

	copy.version = VERSION;
	memcpy(bytes, &copy, sizeof copy);
	memcpy(bytes + sizeof copy, model.p, model.n);
	return txn_put(txn, key, bytes, sizeof copy + model.n);
}

/* One more model, where there is room for it. */
static enum store_rc
row_add(struct txn *txn, struct target_ref ref, uint64_t key, const struct target_row *row)
{
	struct target_channel of_channel;
	enum store_rc rc = target_channel_get(txn, ref.channel, &of_channel);

	if (rc == STORE_OK || rc == STORE_NONE)
		rc = make_room(txn, ref.channel, row, &of_channel);
	if (rc == STORE_OK)
		rc = channel_put(txn, ref.channel, &of_channel);
	return rc == STORE_OK ? row_put(txn, key, ref.model, row) : rc;
}

enum store_rc
target_put(struct txn *txn, struct target_ref ref, const struct target_row *row)
{
	struct target_row old;
	struct place place;
	enum store_rc rc;

	if (!is_kept(ref.model))
		return STORE_OK;
	rc = row_find(txn, ref, &place, &old);
	if (rc == STORE_OK)
		return row_put(txn, place.key, ref.model, row);
	if (rc != STORE_NONE)
		return rc;
	if (place.key == 0)
		return row->named && place.weak != 0 ? row_put(txn, place.weak, ref.model, row)
		                                     : STORE_OK;
	rc = row_add(txn, ref, place.key, row);
	return rc == STORE_NONE ? STORE_OK : rc;
}

/* The channel's stamps. True: they changed. */
static bool
stamp(struct target_row *row, struct target_channel *of_channel, bool failed, struct wall_ms now)
{
	if (!failed)
		return channel_succeeded(of_channel, now);
	if (row->consecutive > 1)
		return false;
	row->streak_ms = channel_failed(of_channel, now);
	return true;
}

enum store_rc
target_feed(struct txn *txn, struct target_ref ref, const struct target_outcome *outcome,
    const struct target_policy *policy, struct wall_ms now, struct target_change *change_out)
{
	struct target_channel of_channel;
	struct target_row row;
	int64_t before;
	enum store_rc rc = target_get(txn, ref, &row);

	*change_out = (struct target_change){.rests = false};
	if (!is_kept(ref.model))
		return STORE_OK;
	if (rc == STORE_OK || rc == STORE_NONE)
		rc = target_channel_get(txn, ref.channel, &of_channel);
	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	before = row.rest_until_ms;
	target_settle(&row, outcome, policy, now);
	row.named = outcome->named;
	rc = stamp(&row, &of_channel, outcome->failed, now)
	         ? channel_put(txn, ref.channel, &of_channel)
	         : STORE_OK;
	*change_out = (struct target_change){
	    .rests = before == 0 && row.rest_until_ms != 0,
	    .back = before != 0 && row.rest_until_ms == 0,
	    .alone = outcome->failed && target_is_alone(&row, &of_channel),
	    .old_until_ms = before,
	    .until_ms = row.rest_until_ms,
	};
	return rc == STORE_OK ? target_put(txn, ref, &row) : rc;
}

enum store_rc
target_try(struct txn *txn, struct target_ref ref, const struct target_policy *policy,
    struct wall_ms now, bool *taken_out)
{
	struct target_row row;
	enum store_rc rc = target_get(txn, ref, &row);

	*taken_out = false;
	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	switch (target_state(&row, policy, now)) {
	case TARGET_RESTS: return STORE_OK;
	case TARGET_OPEN: *taken_out = true; return STORE_OK;
	case TARGET_TRIAL: break;
	}
	*taken_out = true;
	row.rest_until_ms = now.v + policy->cooldown_ms;
	return target_put(txn, ref, &row);
}

struct visit {
	target_fn *fn;
	void *arg;
};

static enum store_rc
visit_row(uint64_t key, struct env_bytes bytes, void *arg)
{
	const struct visit *visit = arg;
	struct target_row row;

	(void)key;
	if (!row_read(bytes, &row))
		return STORE_OK;
	return visit->fn(row_name(bytes), &row, visit->arg) ? STORE_OK : STORE_FULL;
}

enum store_rc
target_walk(struct txn *txn, uint16_t channel, target_fn *fn, void *arg)
{
	struct visit visit = {fn, arg};
	enum store_rc rc = txn_walk(
	    txn, key_of(KEY_TARGET, channel, 0), channel_key(channel) - 1, visit_row, &visit);

	return rc == STORE_FULL ? STORE_OK : rc;
}
