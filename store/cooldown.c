#include "store/cooldown.h"

#include "store/tally.h"

#include <string.h>

#define VERSION 1
#define PROBES 16 /* neighbours tried after a hash collision */

int64_t
cooldown_guess_ms(int64_t base_ms, int64_t max_ms, unsigned streak)
{
	int64_t ms = base_ms;

	for (unsigned i = 1; i < streak && ms < max_ms; i++)
		ms *= 2;
	return ms < max_ms ? ms : max_ms;
}

bool
cooldown_stated(
    struct wall_ms reset_at, int64_t cap_ms, struct wall_ms now, struct wall_ms *until_out)
{
	if (reset_at.v <= now.v)
		return false;
	until_out->v = reset_at.v - now.v > cap_ms ? now.v + cap_ms : reset_at.v;
	return true;
}

int64_t
cooldown_clamp_ms(int64_t until_ms, int64_t most_ms, struct wall_ms now)
{
	return until_ms > now.v && until_ms - now.v > most_ms ? now.v + most_ms : until_ms;
}

static uint64_t
pair_hash(struct account_ref ref, const char *model, size_t n)
{
	uint64_t h = key_hash(0, &ref.channel, sizeof ref.channel);

	h = key_hash(h, &ref.number, sizeof ref.number);
	return key_hash(h, model, n);
}

static bool
pair_read(struct env_bytes bytes, struct cooldown_pair *pair)
{
	if (bytes.n < sizeof pair->row)
		return false;
	memcpy(&pair->row, bytes.p, sizeof pair->row);
	if (pair->row.version != VERSION || bytes.n != sizeof pair->row + pair->row.model_n)
		return false;
	memcpy(pair->model, (const char *)bytes.p + sizeof pair->row, pair->row.model_n);
	pair->model[pair->row.model_n] = '\0';
	return true;
}

/* Where the pair stands (*key_out, STORE_OK), or the first free key for it (STORE_NONE). */
static enum store_rc
pair_find(struct txn *txn, struct account_ref ref, const char *model, uint64_t *key_out,
    struct cooldown_pair *pair)
{
	uint64_t hash = pair_hash(ref, model, strlen(model)), free_key = 0;

	for (unsigned i = 0; i < PROBES; i++) {
		uint64_t key = key_hashed(KEY_PAIR, hash + i);
		struct env_bytes bytes;
		enum store_rc rc = txn_get(txn, key, &bytes);

		if (rc == STORE_NONE) {
			free_key = key; /* removal closes gaps: the first one ends the run */
			break;
		}
		if (rc != STORE_OK)
			return rc;
		if (pair_read(bytes, pair) && pair->row.channel == ref.channel &&
		    pair->row.account == ref.number && strcmp(pair->model, model) == 0) {
			*key_out = key;
			return STORE_OK;
		}
	}
	*key_out = free_key;
	return STORE_NONE;
}

enum store_rc
cooldown_get(
    struct txn *txn, struct account_ref ref, const char *model, struct cooldown_pair *pair_out)
{
	uint64_t key;

	return pair_find(txn, ref, model, &key, pair_out);
}

enum store_rc
cooldown_put(struct txn *txn, struct account_ref ref, const struct cooldown_pair *pair)
{
	char bytes[sizeof pair->row + COOLDOWN_MODEL_MAX];
	struct cooldown_pair old;
	struct cooldown_row row = pair->row;
	size_t n = strlen(pair->model);
	uint64_t key;
	enum store_rc rc = pair_find(txn, ref, pair->model, &key, &old);

	if (rc == STORE_NONE) {
		uint64_t pairs;

		rc = tally_get(txn, TALLY_PAIRS, &pairs);
		if (rc != STORE_OK || key == 0 || pairs >= COOLDOWN_PAIRS_MAX)
			return rc;
		rc = tally_add(txn, TALLY_PAIRS, 1);
	}
	if (rc != STORE_OK)
		return rc;
	row.version = VERSION;
	row.model_n = (uint8_t)n;
	row.channel = ref.channel;
	row.account = ref.number;
	memcpy(bytes, &row, sizeof row);
	memcpy(bytes + sizeof row, pair->model, n);
	return txn_put(txn, key, bytes, sizeof row + n);
}

/* Delete the row at `key`, closing the gap: later rows of the same probe run would become unreachable. */
static enum store_rc
pair_remove(struct txn *txn, uint64_t key)
{
	uint64_t gap = key;
	enum store_rc rc = tally_add(txn, TALLY_PAIRS, -1);

	/* to the end of the run, however long: the last row moved may leave a gap before others */
	for (uint64_t i = 1; rc == STORE_OK; i++) {
		char copy[sizeof(struct cooldown_row) + COOLDOWN_MODEL_MAX];
		struct cooldown_pair pair;
		struct env_bytes bytes;
		uint64_t home;

		rc = txn_get(txn, key + i, &bytes);
		if (rc != STORE_OK)
			break;
		if (!pair_read(bytes, &pair))
			continue;
		home = key_hashed(
		    KEY_PAIR, pair_hash((struct account_ref){pair.row.channel, pair.row.account},
		                  pair.model, pair.row.model_n));
		if (home > gap)
			continue;
		memcpy(copy, bytes.p, bytes.n);
		rc = txn_put(txn, gap, copy, bytes.n);
		gap = key + i;
	}
	return rc == STORE_OK || rc == STORE_NONE ? txn_del(txn, gap) : rc;
}

enum store_rc
cooldown_del(struct txn *txn, struct account_ref ref, const char *model)
{
	struct cooldown_pair pair;
	uint64_t key;
	enum store_rc rc = pair_find(txn, ref, model, &key, &pair);

	if (rc == STORE_NONE)
		return STORE_OK;
	return rc == STORE_OK ? pair_remove(txn, key) : rc;
}

/* Keys found by a walk, removed after it: a walk must not write. */
struct doomed {
	uint64_t key[64];
	unsigned n, most;
	bool by_time;
	struct account_ref ref;
	int64_t now_ms;
};

static enum store_rc
doom(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct doomed *d = arg;
	struct cooldown_pair pair;
	bool hit;

	if (!pair_read(bytes, &pair))
		return STORE_OK;
	hit = d->by_time ? pair.row.until_ms <= d->now_ms
	                 : pair.row.channel == d->ref.channel && pair.row.account == d->ref.number;
	if (hit)
		d->key[d->n++] = key;
	return d->n < d->most ? STORE_OK : STORE_FULL;
}

/* Removing shifts neighbours, so walk again until nothing is found; *left counts down. */
static enum store_rc
remove_doomed(struct txn *txn, struct doomed *d, unsigned left)
{
	while (left > 0) {
		enum store_rc rc;

		d->n = 0;
		d->most = left < 64 ? left : 64;
		rc = txn_walk(txn, key_of(KEY_PAIR, 0, 0), key_last_of(KEY_PAIR), doom, d);
		if (rc != STORE_OK && rc != STORE_FULL)
			return rc;
		if (d->n == 0)
			return STORE_OK;
		left -= d->n;
		for (unsigned i = d->n; i-- > 0;) {
			rc = pair_remove(txn, d->key[i]);
			if (rc != STORE_OK)
				return rc;
		}
	}
	return STORE_OK;
}

enum store_rc
cooldown_del_all(struct txn *txn, struct account_ref ref)
{
	struct doomed d = {.ref = ref};

	return remove_doomed(txn, &d, COOLDOWN_PAIRS_MAX);
}

enum store_rc
cooldown_sweep(struct txn *txn, struct wall_ms now, unsigned most)
{
	struct doomed d = {.by_time = true, .now_ms = now.v};

	return remove_doomed(txn, &d, most);
}

struct visit {
	cooldown_fn *fn;
	void *arg;
};

static enum store_rc
visit_pair(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct visit *visit = arg;
	struct cooldown_pair pair;

	(void)key;
	if (pair_read(bytes, &pair))
		visit->fn(&pair, visit->arg);
	return STORE_OK;
}

enum store_rc
cooldown_walk(struct txn *txn, cooldown_fn *fn, void *arg)
{
	struct visit visit = {fn, arg};

	return txn_walk(txn, key_of(KEY_PAIR, 0, 0), key_last_of(KEY_PAIR), visit_pair, &visit);
}
