#include "store/ledger.h"

#include <string.h>

#define VERSION 1
#define PROBES 16 /* neighbours tried after a hash collision */
#define DAY_MS 86400000
#define HASH_MASK ((UINT64_C(1) << 39) - 1)
#define LAST_ROW UINT64_MAX       /* the day's own row: the last one that a sweep meets */
#define REST_ROW (UINT64_MAX - 1) /* takes everything when the day is full */
#define NAMES 4

struct ledger_row {
	uint8_t version, spare[7];
	struct ledger_sum sum; /* and client, channel, account, model, each with its end */
};
_Static_assert(sizeof(struct ledger_row) == 96, "ledger_row has no padding");

struct ledger_count {
	uint8_t version, spare[3];
	uint32_t rows;
};

/* A row's value while it is built. */
struct value {
	struct ledger_row row;
	char names[NAMES * (LEDGER_NAME_MAX + 1)];
	size_t names_n;
};

/* What counts for "(other)", by how full the day is. */
enum fold { FOLD_NOTHING, FOLD_CLIENT, FOLD_MODEL, FOLD_ALL, FOLD__MAX };

uint16_t
ledger_day(struct wall_ms at)
{
	int64_t day = at.v / DAY_MS;

	return at.v < 0 ? 0 : day > UINT16_MAX ? UINT16_MAX : (uint16_t)day;
}

static void
add(uint64_t *sum, uint64_t n)
{
	*sum = n > UINT64_MAX - *sum ? UINT64_MAX : *sum + n;
}

void
ledger_sum_add(struct ledger_sum *sum, const struct ledger_sum *delta)
{
	add(&sum->requests, delta->requests);
	add(&sum->failed, delta->failed);
	add(&sum->cancelled, delta->cancelled);
	add(&sum->prompt, delta->prompt);
	add(&sum->completion, delta->completion);
	add(&sum->cached, delta->cached);
	add(&sum->cache_write, delta->cache_write);
	add(&sum->reasoning, delta->reasoning);
	add(&sum->estimated, delta->estimated);
	add(&sum->priced, delta->priced);
	if (__builtin_add_overflow(sum->cost_micros, delta->cost_micros, &sum->cost_micros))
		sum->cost_micros = delta->cost_micros < 0 ? INT64_MIN : INT64_MAX;
}

/* A name's bytes that are kept; never half a UTF-8 character. */
static size_t
name_length(const char *name)
{
	size_t n = strnlen(name, LEDGER_NAME_MAX + 1);

	if (n <= LEDGER_NAME_MAX)
		return n;
	n = LEDGER_NAME_MAX;
	while (n > LEDGER_NAME_MAX - 3 && ((unsigned char)name[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static void
value_name(struct value *value, const char *name)
{
	size_t n = name_length(name);

	memcpy(value->names + value->names_n, name, n);
	value->names_n += n;
	value->names[value->names_n++] = '\0';
}

static void
value_init(struct value *value, const struct ledger_key *key, enum fold fold)
{
	value->row = (struct ledger_row){.version = VERSION};
	value->names_n = 0;
	value_name(value, fold >= FOLD_CLIENT ? LEDGER_OTHER : key->client);
	value_name(value, fold >= FOLD_ALL ? LEDGER_OTHER : key->channel);
	value_name(value, fold >= FOLD_ALL ? LEDGER_OTHER : key->account);
	value_name(value, fold >= FOLD_MODEL ? LEDGER_OTHER : key->model);
}

/* Take over the sum where the row has the value's names. */
static bool
value_match(struct value *value, struct env_bytes bytes)
{
	struct ledger_row row;

	if (bytes.n != sizeof row + value->names_n ||
	    memcmp((const char *)bytes.p + sizeof row, value->names, value->names_n) != 0)
		return false;
	memcpy(&row, bytes.p, sizeof row);
	if (row.version != VERSION)
		return false;
	value->row = row;
	return true;
}

/* STORE_OK and the row's sum, or STORE_NONE and the key where it may be put, 0 = nowhere. */
static enum store_rc
value_find(struct txn *txn, uint16_t day, struct value *value, uint64_t *key_out)
{
	uint64_t hash = key_hash(0, value->names, value->names_n) & HASH_MASK;

	for (unsigned i = 0; i < PROBES; i++) {
		struct env_bytes bytes;
		enum store_rc rc;

		*key_out = key_of(KEY_LEDGER, day, hash + i);
		rc = txn_get(txn, *key_out, &bytes);
		if (rc != STORE_OK)
			return rc; /* within a day nothing is removed: the first gap ends the run */
		if (value_match(value, bytes))
			return STORE_OK;
	}
	*key_out = 0;
	return STORE_NONE;
}

static enum store_rc
value_put(struct txn *txn, uint64_t key, const struct value *value)
{
	char bytes[sizeof value->row + sizeof value->names];

	memcpy(bytes, &value->row, sizeof value->row);
	memcpy(bytes + sizeof value->row, value->names, value->names_n);
	return txn_put(txn, key, bytes, sizeof value->row + value->names_n);
}

static enum store_rc
count_get(struct txn *txn, uint16_t day, struct ledger_count *count_out)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key_of(KEY_LEDGER, day, LAST_ROW), &bytes);

	*count_out = (struct ledger_count){.version = VERSION};
	if (rc == STORE_NONE)
		return STORE_OK;
	if (rc == STORE_OK && bytes.n != sizeof *count_out)
		return STORE_BAD;
	if (rc == STORE_OK)
		memcpy(count_out, bytes.p, sizeof *count_out);
	return rc;
}

/* STORE_NONE: there is no such row and no room for it. */
static enum store_rc
add_folded(
    struct txn *txn, const struct ledger_key *key, const struct ledger_sum *delta, enum fold fold)
{
	struct ledger_count count;
	struct value value;
	uint64_t at;
	enum store_rc rc;

	value_init(&value, key, fold);
	rc = value_find(txn, key->day, &value, &at);
	if (rc == STORE_NONE) {
		rc = count_get(txn, key->day, &count);
		if (rc == STORE_OK &&
		    (at == 0 || count.rows >= LEDGER_DAY_ROWS * (unsigned)(fold + 1)))
			return STORE_NONE;
		count.rows++;
		if (rc == STORE_OK)
			rc = txn_put(
			    txn, key_of(KEY_LEDGER, key->day, LAST_ROW), &count, sizeof count);
	}
	if (rc != STORE_OK)
		return rc;
	ledger_sum_add(&value.row.sum, delta);
	return value_put(txn, at, &value);
}

/* The one row that always has room. */
static enum store_rc
add_rest(struct txn *txn, const struct ledger_key *key, const struct ledger_sum *delta)
{
	uint64_t at = key_of(KEY_LEDGER, key->day, REST_ROW);
	struct env_bytes bytes;
	struct value value;
	enum store_rc rc = txn_get(txn, at, &bytes);

	value_init(&value, key, FOLD_ALL);
	if (rc == STORE_OK && !value_match(&value, bytes))
		return STORE_BAD;
	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	ledger_sum_add(&value.row.sum, delta);
	return value_put(txn, at, &value);
}

enum store_rc
ledger_add(struct txn *txn, const struct ledger_key *key, const struct ledger_sum *delta)
{
	for (enum fold fold = FOLD_NOTHING; fold < FOLD_ALL; fold++) {
		enum store_rc rc = add_folded(txn, key, delta, fold);

		if (rc != STORE_NONE)
			return rc;
	}
	return add_rest(txn, key, delta);
}

struct visit {
	ledger_fn *fn;
	void *arg;
};

static enum store_rc
visit_row(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct visit *visit = arg;
	struct ledger_row row;
	const char *names[NAMES], *at = (const char *)bytes.p + sizeof row;
	const char *end = (const char *)bytes.p + bytes.n;

	if (bytes.n < sizeof row)
		return STORE_OK; /* the day's own row */
	memcpy(&row, bytes.p, sizeof row);
	if (row.version != VERSION)
		return STORE_OK; /* of another version: not ours to read */
	for (unsigned i = 0; i < NAMES; i++) {
		const char *stop = memchr(at, '\0', (size_t)(end - at));

		if (stop == NULL)
			return STORE_BAD;
		names[i] = at;
		at = stop + 1;
	}
	return visit->fn(&(struct ledger_key){(uint16_t)(key >> 40), names[0], names[1], names[2],
	                     names[3]},
	           &row.sum, visit->arg)
	           ? STORE_OK
	           : STORE_FULL;
}

enum store_rc
ledger_walk(struct txn *txn, uint16_t from_day, uint16_t to_day, ledger_fn *fn, void *arg)
{
	struct visit visit = {fn, arg};
	enum store_rc rc = txn_walk(txn, key_of(KEY_LEDGER, from_day, 0),
	    key_of(KEY_LEDGER, to_day, UINT64_MAX), visit_row, &visit);

	return rc == STORE_FULL ? STORE_OK : rc;
}

/* The first day that stays. */
static enum store_rc
first_kept(struct txn *txn, uint16_t today, uint16_t *day_out)
{
	uint64_t rows = 0;
	unsigned day = today;

	*day_out = today; /* stays whatever its size */
	for (unsigned kept = 0; kept < LEDGER_KEEP_DAYS; kept++, day--) {
		struct ledger_count count;
		enum store_rc rc = count_get(txn, (uint16_t)day, &count);

		if (rc != STORE_OK)
			return rc;
		rows += count.rows;
		if (rows > LEDGER_ROWS)
			break;
		*day_out = (uint16_t)day;
		if (day == 0)
			break;
	}
	return STORE_OK;
}

struct doomed {
	uint64_t key[256];
	unsigned n, most;
};

static enum store_rc
doom(uint64_t key, struct env_bytes bytes, void *arg)
{
	struct doomed *d = arg;

	(void)bytes;
	d->key[d->n++] = key;
	return d->n < d->most ? STORE_OK : STORE_FULL;
}

enum store_rc
ledger_sweep(struct txn *txn, uint16_t today, unsigned most, unsigned *removed_out)
{
	struct doomed d = {.n = 1};
	unsigned removed = 0;
	uint16_t kept;
	enum store_rc rc = first_kept(txn, today, &kept);

	while (rc == STORE_OK && removed < most && kept > 0 && d.n > 0) {
		d.n = 0;
		d.most = most - removed < 256 ? most - removed : 256;
		rc = txn_walk(txn, key_of(KEY_LEDGER, 0, 0),
		    key_of(KEY_LEDGER, (uint16_t)(kept - 1), UINT64_MAX), doom, &d);
		if (rc == STORE_FULL)
			rc = STORE_OK;
		for (unsigned i = 0; i < d.n && rc == STORE_OK; i++)
			rc = txn_del(txn, d.key[i]);
		removed += d.n;
	}
	*removed_out = removed;
	return rc;
}
