#include "store/kept.h"

#include <string.h>

#define VERSION 1
#define GROUP 16        /* keys to a hash */
#define EVICT_MOST 1024 /* in one transaction */

struct kept_age {
	uint8_t version, spare[7];
	int64_t made_ms;
	uint64_t name_key, n;
};
_Static_assert(sizeof(struct kept_age) == 32, "kept_age has no padding");

struct kept_name {
	uint8_t version, spare[3];
	uint16_t client_n, name_n;
	uint64_t number;
};
_Static_assert(sizeof(struct kept_name) == 16, "kept_name has no padding");

static uint64_t
age_key(uint64_t number)
{
	return shelf_key(KEY_KEPT, number);
}

static struct shelf_place
text_place(uint64_t number)
{
	return (struct shelf_place){KEY_KEPT_TEXT, number, 0};
}

enum store_rc
kept_sums(struct txn *book, struct shelf_sum *sum_out)
{
	return shelf_sums(book, KEY_KEPT, sum_out);
}

static enum store_rc
age_get(struct txn *book, uint64_t number, struct kept_age *age_out)
{
	struct env_bytes row;
	enum store_rc rc = txn_get(book, age_key(number), &row);

	if (rc == STORE_OK && row.n != sizeof *age_out)
		return STORE_BAD;
	if (rc == STORE_OK)
		memcpy(age_out, row.p, sizeof *age_out);
	return rc;
}

/* ---- names ---- */

static uint64_t
group_of(const struct kept_key *key)
{
	uint64_t hash = key_hash(0, key->client.p, key->client.n);

	hash = key_hash(hash, "", 1);
	return key_hashed(KEY_KEPT_NAME, key_hash(hash, key->name.p, key->name.n) * GROUP);
}

static bool
name_read(struct env_bytes row, const struct kept_key *key, struct kept_name *name_out)
{
	const char *texts = (const char *)row.p + sizeof *name_out;

	if (row.n < sizeof *name_out)
		return false;
	memcpy(name_out, row.p, sizeof *name_out);
	return name_out->version == VERSION && name_out->client_n == key->client.n &&
	       name_out->name_n == key->name.n &&
	       row.n == sizeof *name_out + key->client.n + key->name.n &&
	       memcmp(texts, key->client.p, key->client.n) == 0 &&
	       memcmp(texts + key->client.n, key->name.p, key->name.n) == 0;
}

/* STORE_OK: the text's number. STORE_NONE: *key_out is a free key for the name, or 0. */
static enum store_rc
name_find(
    struct txn *book, const struct kept_key *key, uint64_t *key_out, struct kept_name *name_out)
{
	uint64_t group = group_of(key), vacant = 0;

	for (uint64_t i = 0; i < GROUP; i++) {
		struct env_bytes row;
		enum store_rc rc = txn_get(book, group + i, &row);

		if (rc == STORE_NONE && vacant == 0)
			vacant = group + i;
		if (rc != STORE_OK && rc != STORE_NONE)
			return rc;
		*key_out = group + i;
		if (rc == STORE_OK && name_read(row, key, name_out))
			return STORE_OK;
	}
	*key_out = vacant;
	return STORE_NONE;
}

static enum store_rc
name_put(struct txn *book, const struct kept_key *key, uint64_t at, uint64_t number)
{
	struct kept_name name = {.version = VERSION,
	    .client_n = (uint16_t)key->client.n,
	    .name_n = (uint16_t)key->name.n,
	    .number = number};
	char row[sizeof name + 2 * KEPT_NAME_MAX];

	memcpy(row, &name, sizeof name);
	memcpy(row + sizeof name, key->client.p, key->client.n);
	memcpy(row + sizeof name + key->client.n, key->name.p, key->name.n);
	return txn_put(book, at, row, sizeof name + key->client.n + key->name.n);
}

/* All rows of a text; the sums are the caller's to write. */
static enum store_rc
drop(struct txn *book, uint64_t number, const struct kept_age *age, struct shelf_sum *sum)
{
	enum store_rc rc = txn_del(book, age_key(number));

	if (rc == STORE_OK)
		rc = txn_del(book, age->name_key);
	if (rc == STORE_OK)
		rc = shelf_del(book, text_place(number), (age->n + SHELF_PIECE - 1) / SHELF_PIECE);
	shelf_sums_less(sum, shelf_room(age->n));
	return rc;
}

static enum store_rc
drop_old(struct txn *book, uint64_t number, bool too_much, struct shelf_sum *sum, const void *arg)
{
	const struct kept_limits *limits = arg;
	struct kept_age age;
	enum store_rc rc = age_get(book, number, &age);

	if (rc != STORE_OK)
		return rc;
	if (!too_much && !shelf_is_past(age.made_ms, limits->now, limits->ttl_ms))
		return STORE_NONE;
	return drop(book, number, &age, sum);
}

static enum store_rc
evict(struct txn *book, const struct kept_limits *limits, uint64_t need, struct shelf_sum *sum)
{
	const struct shelf_eviction eviction = {
	    KEY_KEPT, limits->max_bytes - need, EVICT_MOST, drop_old, limits};
	unsigned removed;

	return shelf_evict(book, &eviction, sum, &removed);
}

static enum store_rc
drop_named(struct txn *book, const struct kept_name *name, struct shelf_sum *sum)
{
	struct kept_age age;
	enum store_rc rc = age_get(book, name->number, &age);

	return rc == STORE_OK ? drop(book, name->number, &age, sum) : rc;
}

/* A key for the name, whatever stood there. */
static enum store_rc
place(struct txn *book, const struct kept_key *key, struct shelf_sum *sum, uint64_t *at_out)
{
	struct kept_name name;
	enum store_rc rc = name_find(book, key, at_out, &name);
	struct env_bytes row;

	if (rc == STORE_OK)
		return drop_named(book, &name, sum);
	if (rc != STORE_NONE || *at_out != 0)
		return rc == STORE_NONE ? STORE_OK : rc;
	/* sixteen names have this hash: one of them goes */
	*at_out = group_of(key);
	rc = txn_get(book, *at_out, &row);
	if (rc != STORE_OK)
		return rc;
	if (row.n < sizeof name)
		return STORE_BAD;
	memcpy(&name, row.p, sizeof name);
	return drop_named(book, &name, sum);
}

enum store_rc
kept_put(struct txn *book, const struct kept_key *key, struct env_bytes text,
    const struct kept_limits *limits)
{
	struct kept_age age = {.version = VERSION, .made_ms = limits->now.v, .n = text.n};
	uint64_t need = shelf_room(text.n), number;
	struct shelf_sum sum;
	enum store_rc rc;

	if (need > limits->max_bytes || text.n > KEPT_TEXT_MAX || key->name.n > KEPT_NAME_MAX ||
	    key->client.n > KEPT_NAME_MAX)
		return STORE_FULL;
	rc = kept_sums(book, &sum);
	if (rc == STORE_OK)
		rc = place(book, key, &sum, &age.name_key);
	if (rc == STORE_OK)
		rc = evict(book, limits, need, &sum);
	if (rc != STORE_OK)
		return rc;
	number = sum.next++;
	sum.rows++;
	sum.bytes += need;
	rc = name_put(book, key, age.name_key, number);
	if (rc == STORE_OK)
		rc = txn_put(book, age_key(number), &age, sizeof age);
	if (rc == STORE_OK)
		rc = shelf_put(book, text_place(number), text);
	return rc == STORE_OK ? shelf_sums_put(book, KEY_KEPT, &sum) : rc;
}

static enum store_rc
find(struct txn *book, const struct kept_key *key, const struct kept_limits *limits,
    struct kept_name *name_out, struct kept_age *age_out)
{
	uint64_t at;
	enum store_rc rc;

	if (key->name.n > KEPT_NAME_MAX || key->client.n > KEPT_NAME_MAX)
		return STORE_NONE;
	rc = name_find(book, key, &at, name_out);
	if (rc == STORE_OK)
		rc = age_get(book, name_out->number, age_out);
	return rc == STORE_OK && shelf_is_past(age_out->made_ms, limits->now, limits->ttl_ms)
	           ? STORE_NONE
	           : rc;
}

enum store_rc
kept_get(struct txn *book, const struct kept_key *key, const struct kept_limits *limits,
    kept_room_fn *room, void *arg)
{
	struct kept_name name;
	struct kept_age age;
	enum store_rc rc = find(book, key, limits, &name, &age);

	return rc == STORE_OK ? shelf_copy(book, text_place(name.number), age.n, room(age.n, arg))
	                      : rc;
}

enum store_rc
kept_del(struct txn *book, const struct kept_key *key, const struct kept_limits *limits)
{
	struct kept_name name;
	struct kept_age age;
	struct shelf_sum sum;
	enum store_rc rc = find(book, key, limits, &name, &age);

	if (rc == STORE_OK)
		rc = kept_sums(book, &sum);
	if (rc == STORE_OK)
		rc = drop(book, name.number, &age, &sum);
	return rc == STORE_OK ? shelf_sums_put(book, KEY_KEPT, &sum) : rc;
}

enum store_rc
kept_sweep(struct txn *book, const struct kept_limits *limits, unsigned most, unsigned *removed_out)
{
	const struct shelf_eviction eviction = {
	    KEY_KEPT, limits->max_bytes, most, drop_old, limits};

	return shelf_sweep(book, &eviction, removed_out);
}
