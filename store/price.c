#include "store/price.h"

#define VERSION 1
#define PROBES 4 /* all are looked at: removal leaves gaps */
#define SHARD_BITS 14
#define SHARDS ((UINT64_C(1) << SHARD_BITS) - 2) /* the last key of a channel is its own row */
#define HASH_MASK ((UINT64_C(1) << 26) - 1)

struct price_model {
	uint8_t version, model_n; /* and the name with its end */
};

struct price_channel {
	uint8_t version, spare[3];
	uint32_t models;
	int64_t explored_ms;
};
_Static_assert(sizeof(struct price_channel) == 16, "price_channel has no padding");

const char *
price_tier_name(enum price_tier tier)
{
	static const char *const names[PRICE_TIER__MAX] = {
	    [PRICE_FREE] = "free",
	    [PRICE_UNMEASURED] = "unmeasured",
	    [PRICE_PAID] = "paid",
	};

	return names[tier];
}

int64_t
price_unit(int64_t cost_micros, uint64_t tokens)
{
	uint64_t cost = (uint64_t)cost_micros, unit;

	if (cost_micros < 0)
		return PRICE_NONE;
	if (tokens == 0)
		tokens = 1000;
	if (cost > UINT64_MAX / 2000)
		return PRICE_MOST;
	unit = cost * 1000 / tokens + (cost * 1000 % tokens != 0);
	return unit < PRICE_MOST ? (int64_t)unit : PRICE_MOST;
}

int64_t
price_smooth(int64_t old_micros, int64_t observed_micros, uint32_t alpha_ppm)
{
	int64_t gap = observed_micros - old_micros;
	int64_t far = gap < 0 ? -gap : gap;
	int64_t step = (far * alpha_ppm + 999999) / 1000000;

	if (step > far)
		step = far;
	return gap < 0 ? old_micros - step : old_micros + step;
}

bool
price_explores(int64_t last_explore_ms, int64_t explore_ms, struct wall_ms now)
{
	if (explore_ms <= 0)
		return false;
	/* a time ahead of the clock was written by a wrong one */
	return last_explore_ms == 0 || last_explore_ms > now.v ||
	       now.v - last_explore_ms >= explore_ms;
}

static int64_t
oldest_ms(int64_t ttl_ms, struct wall_ms now)
{
	return now.v > ttl_ms ? now.v - ttl_ms : 1;
}

static bool
is_valid(const struct price_entry *entry, int64_t ttl_ms, struct wall_ms now)
{
	return entry->at_ms >= oldest_ms(ttl_ms, now) && entry->at_ms <= now.v + ttl_ms;
}

static uint64_t
channel_key(uint16_t channel)
{
	return key_of(KEY_PRICE, channel, UINT64_MAX);
}

static bool
is_model_row(uint64_t key)
{
	return (key & ((UINT64_C(1) << SHARD_BITS) - 1)) == 0;
}

/* The name in a model's first row, or NULL. */
static const char *
model_name(struct env_bytes bytes)
{
	struct price_model row;
	const char *name = (const char *)bytes.p + sizeof row;

	if (bytes.n < sizeof row + 1)
		return NULL;
	memcpy(&row, bytes.p, sizeof row);
	if (row.version != VERSION || bytes.n != sizeof row + row.model_n + 1U ||
	    name[row.model_n] != '\0')
		return NULL;
	return name;
}

/* Where the model stands (STORE_OK), or the first free key for it (STORE_NONE), 0 when there is none. */
static enum store_rc
model_find(struct txn *txn, uint16_t channel, const char *model, uint64_t *key_out)
{
	uint64_t hash = key_hash(0, model, strlen(model)), free_key = 0;

	for (unsigned i = 0; i < PROBES; i++) {
		uint64_t key = key_of(KEY_PRICE, channel, ((hash + i) & HASH_MASK) << SHARD_BITS);
		struct env_bytes bytes;
		enum store_rc rc = txn_get(txn, key, &bytes);
		const char *name = rc == STORE_OK ? model_name(bytes) : NULL;

		if (rc == STORE_NONE && free_key == 0)
			free_key = key;
		else if (rc != STORE_NONE && rc != STORE_OK)
			return rc;
		if (name != NULL && strcmp(name, model) == 0) {
			*key_out = key;
			return STORE_OK;
		}
	}
	*key_out = free_key;
	return STORE_NONE;
}

static enum store_rc
channel_get(struct txn *txn, uint16_t channel, struct price_channel *row_out)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, channel_key(channel), &bytes);

	*row_out = (struct price_channel){.version = VERSION};
	if (rc == STORE_NONE)
		return STORE_OK;
	if (rc == STORE_OK && bytes.n != sizeof *row_out)
		return STORE_BAD;
	if (rc == STORE_OK)
		memcpy(row_out, bytes.p, sizeof *row_out);
	return rc;
}

static enum store_rc
channel_put(struct txn *txn, uint16_t channel, const struct price_channel *row)
{
	return txn_put(txn, channel_key(channel), row, sizeof *row);
}

/* STORE_NONE when the channel has as many models as it may. */
static enum store_rc
model_new(struct txn *txn, uint16_t channel, const char *model, uint64_t key)
{
	size_t n = strlen(model);
	struct price_model row = {.version = VERSION, .model_n = (uint8_t)n};
	char bytes[sizeof row + PRICE_MODEL_MAX + 1];
	struct price_channel of_channel;
	enum store_rc rc = channel_get(txn, channel, &of_channel);

	if (rc != STORE_OK)
		return rc;
	if (key == 0 || of_channel.models >= PRICE_MODELS_MAX)
		return STORE_NONE;
	of_channel.models++;
	rc = channel_put(txn, channel, &of_channel);
	if (rc != STORE_OK)
		return rc;
	memcpy(bytes, &row, sizeof row);
	memcpy(bytes + sizeof row, model, n + 1);
	return txn_put(txn, key, bytes, sizeof row + n + 1);
}

static enum store_rc
shard_get(struct txn *txn, uint64_t key, struct env_bytes *bytes_out, unsigned *n_out)
{
	enum store_rc rc = txn_get(txn, key, bytes_out);

	*n_out = 0;
	if (rc != STORE_OK)
		return rc;
	if (bytes_out->n % sizeof(struct price_entry) != 0 ||
	    bytes_out->n > PRICE_SHARD * sizeof(struct price_entry))
		return STORE_BAD;
	*n_out = (unsigned)(bytes_out->n / sizeof(struct price_entry));
	return STORE_OK;
}

static uint64_t
shard_key(uint64_t model_key, uint32_t number)
{
	return model_key + 1 + number / PRICE_SHARD;
}

/* Smooth into the one entry of the model's array. */
static enum store_rc
entry_smooth(struct txn *txn, uint64_t key, unsigned at, struct price_entry seen,
    const struct price_rule *rule)
{
	struct price_entry entries[PRICE_SHARD] = {0};
	struct wall_ms now = {seen.at_ms};
	struct env_bytes bytes;
	unsigned n;
	enum store_rc rc = shard_get(txn, key, &bytes, &n);

	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	if (n > 0)
		memcpy(entries, bytes.p, n * sizeof *entries);
	if (n <= at)
		n = at + 1;
	if (is_valid(&entries[at], rule->ttl_ms, now))
		seen.micros = price_smooth(entries[at].micros, seen.micros, rule->alpha_ppm);
	entries[at] = seen;
	return txn_put(txn, key, entries, n * sizeof *entries);
}

enum store_rc
price_observe(struct txn *txn, struct account_ref ref, const char *model, int64_t unit_micros,
    const struct price_rule *rule, struct wall_ms now)
{
	struct price_entry seen = {unit_micros < PRICE_MOST ? unit_micros : PRICE_MOST, now.v};
	size_t model_n = strlen(model);
	uint64_t key;
	enum store_rc rc;

	if (unit_micros < 0 || model_n == 0 || model_n > PRICE_MODEL_MAX ||
	    ref.number / PRICE_SHARD >= SHARDS)
		return STORE_OK;
	rc = model_find(txn, ref.channel, model, &key);
	if (rc == STORE_NONE)
		rc = model_new(txn, ref.channel, model, key);
	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	return entry_smooth(txn, shard_key(key, ref.number), ref.number % PRICE_SHARD, seen, rule);
}

enum store_rc
price_get(struct txn *txn, struct account_ref ref, const char *model, struct price_entry *entry_out)
{
	unsigned n, at = ref.number % PRICE_SHARD;
	struct env_bytes bytes;
	uint64_t key;
	enum store_rc rc = model_find(txn, ref.channel, model, &key);

	if (rc == STORE_OK && ref.number / PRICE_SHARD >= SHARDS)
		return STORE_NONE;
	if (rc == STORE_OK)
		rc = shard_get(txn, shard_key(key, ref.number), &bytes, &n);
	if (rc != STORE_OK)
		return rc;
	if (at >= n)
		return STORE_NONE;
	memcpy(entry_out, (const char *)bytes.p + at * sizeof *entry_out, sizeof *entry_out);
	return entry_out->at_ms != 0 ? STORE_OK : STORE_NONE;
}

enum store_rc
price_open(struct txn *txn, uint16_t channel, const char *model, int64_t ttl_ms, struct wall_ms now,
    struct price_view *view_out)
{
	uint64_t key;
	enum store_rc rc = model_find(txn, channel, model, &key);

	*view_out = (struct price_view){
	    .txn = txn,
	    .key = rc == STORE_OK ? key : 0,
	    .valid_ms = (uint64_t)oldest_ms(ttl_ms, now),
	    .ttl2_ms = (uint64_t)(now.v + ttl_ms - oldest_ms(ttl_ms, now)),
	    .first = UINT64_MAX / 2,
	};
	return rc == STORE_NONE ? STORE_OK : rc;
}

bool
price_load(struct price_view *view, uint32_t number)
{
	uint32_t first = number - number % PRICE_SHARD;
	struct env_bytes bytes;

	if (view->first != first) {
		view->first = first;
		view->n = 0;
		if (number / PRICE_SHARD < SHARDS &&
		    shard_get(view->txn, shard_key(view->key, number), &bytes, &view->n) ==
		        STORE_OK)
			view->entries = bytes.p;
	}
	return number - first < view->n;
}

enum store_rc
price_explored_get(struct txn *txn, uint16_t channel, int64_t *last_ms_out)
{
	struct price_channel row;
	enum store_rc rc = channel_get(txn, channel, &row);

	if (rc == STORE_OK)
		*last_ms_out = row.explored_ms;
	return rc;
}

enum store_rc
price_explored_put(struct txn *txn, uint16_t channel, struct wall_ms now)
{
	struct price_channel row;
	enum store_rc rc = channel_get(txn, channel, &row);

	row.explored_ms = now.v;
	return rc == STORE_OK ? channel_put(txn, channel, &row) : rc;
}

struct visit {
	price_fn *fn;
	void *arg;
	uint64_t model_key; /* the model whose rows are being walked: its first row comes first */
	const char *model;
};

static enum store_rc
visit_row(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct visit *visit = arg;
	uint64_t shard = key - visit->model_key - 1;

	if (is_model_row(key)) {
		visit->model_key = key;
		visit->model = model_name(bytes);
		return STORE_OK;
	}
	if (visit->model == NULL || shard >= SHARDS)
		return STORE_OK;
	for (unsigned i = 0; i < bytes.n / sizeof(struct price_entry) && i < PRICE_SHARD; i++) {
		struct price_seen seen = {
		    .ref = {(uint16_t)(key >> 40), (uint32_t)shard * PRICE_SHARD + i},
		    .model = visit->model,
		};

		memcpy(
		    &seen.entry, (const char *)bytes.p + i * sizeof seen.entry, sizeof seen.entry);
		if (seen.entry.at_ms != 0 && !visit->fn(&seen, visit->arg))
			return STORE_FULL;
	}
	return STORE_OK;
}

enum store_rc
price_walk(struct txn *txn, price_fn *fn, void *arg)
{
	struct visit visit = {.fn = fn, .arg = arg};
	enum store_rc rc =
	    txn_walk(txn, key_of(KEY_PRICE, 0, 0), key_last_of(KEY_PRICE), visit_row, &visit);

	return rc == STORE_FULL ? STORE_OK : rc;
}

/* Models without a valid price, found by a walk, removed after it: a walk must not write. */
struct stale {
	uint64_t key[64];
	unsigned n, most;
	uint64_t model_key; /* being walked, 0 = none */
	bool fresh;
	int64_t ttl_ms;
	struct wall_ms now;
};

static void
stale_end_model(struct stale *stale)
{
	if (stale->model_key != 0 && !stale->fresh)
		stale->key[stale->n++] = stale->model_key;
	stale->model_key = 0;
}

static enum store_rc
stale_row(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct stale *stale = arg;

	if (is_model_row(key)) {
		stale_end_model(stale);
		if (stale->n == stale->most)
			return STORE_FULL;
		stale->model_key = key;
		stale->fresh = false;
		return STORE_OK;
	}
	for (size_t i = 0; i < bytes.n / sizeof(struct price_entry) && !stale->fresh; i++) {
		struct price_entry entry;

		memcpy(&entry, (const char *)bytes.p + i * sizeof entry, sizeof entry);
		stale->fresh = is_valid(&entry, stale->ttl_ms, stale->now);
	}
	return STORE_OK;
}

struct keys {
	uint64_t key[64];
	unsigned n;
};

static enum store_rc
collect(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct keys *keys = arg;

	(void)bytes;
	keys->key[keys->n++] = key;
	return keys->n < sizeof keys->key / sizeof *keys->key ? STORE_OK : STORE_FULL;
}

static enum store_rc
model_remove(struct txn *txn, uint64_t model_key)
{
	struct keys keys;
	enum store_rc rc;

	do {
		keys.n = 0;
		rc = txn_walk(txn, model_key, model_key + SHARDS, collect, &keys);
		if (rc != STORE_OK && rc != STORE_FULL)
			return rc;
		for (unsigned i = 0; i < keys.n; i++) {
			enum store_rc gone = txn_del(txn, keys.key[i]);

			if (gone != STORE_OK)
				return gone;
		}
	} while (rc == STORE_FULL);
	return STORE_OK;
}

enum store_rc
price_sweep(struct txn *txn, uint16_t channel, int64_t ttl_ms, struct wall_ms now, unsigned most)
{
	struct stale stale = {.most = most < 64 ? most : 64, .ttl_ms = ttl_ms, .now = now};
	struct price_channel row;
	enum store_rc rc;

	if (most == 0)
		return STORE_OK;
	rc = txn_walk(
	    txn, key_of(KEY_PRICE, channel, 0), channel_key(channel) - 1, stale_row, &stale);
	if (rc != STORE_OK && rc != STORE_FULL)
		return rc;
	if (rc == STORE_OK)
		stale_end_model(&stale);
	rc = channel_get(txn, channel, &row);
	for (unsigned i = 0; i < stale.n && rc == STORE_OK; i++) {
		rc = model_remove(txn, stale.key[i]);
		if (row.models > 0)
			row.models--;
	}
	return rc == STORE_OK && stale.n > 0 ? channel_put(txn, channel, &row) : rc;
}
