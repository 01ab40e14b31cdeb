#include "store/roster.h"

#include <stdio.h>
#include <string.h>

#define VERSION 1
#define NAME_MAX_BYTES 200
#define PROBES 64

struct roster_text {
	uint8_t version, spare[3];
	uint32_t number;
};

struct roster_channel {
	uint8_t version, spare[3];
	uint32_t accounts; /* numbers given */
};

struct counter {
	uint8_t version, spare[3];
	uint32_t channels;
};

/* STORE_OK and the number, or STORE_NONE and the key where the name may be put. */
static enum store_rc
name_find(struct txn *txn, const char *name, uint64_t *key_out, uint32_t *number_out)
{
	size_t n = strlen(name);
	uint64_t hash = key_hash(0, name, n);

	for (unsigned i = 0; i < PROBES; i++) {
		uint64_t key = key_hashed(KEY_TEXT, hash + i);
		struct roster_text text;
		struct env_bytes bytes;
		enum store_rc rc = txn_get(txn, key, &bytes);

		*key_out = key;
		if (rc != STORE_OK)
			return rc; /* names are never deleted: the first gap ends the run */
		if (bytes.n != sizeof text + n ||
		    memcmp((const char *)bytes.p + sizeof text, name, n) != 0)
			continue;
		memcpy(&text, bytes.p, sizeof text);
		*number_out = text.number;
		return STORE_OK;
	}
	return STORE_FULL;
}

static enum store_rc
name_put(struct txn *txn, uint64_t key, const char *name, uint32_t number)
{
	struct roster_text text = {.version = VERSION, .number = number};
	char bytes[sizeof text + NAME_MAX_BYTES];
	size_t n = strlen(name);

	if (n > NAME_MAX_BYTES)
		return STORE_FULL;
	memcpy(bytes, &text, sizeof text);
	memcpy(bytes + sizeof text, name, n);
	return txn_put(txn, key, bytes, sizeof text + n);
}

/* Give the next number out of a counter row. */
static enum store_rc
next_number(struct txn *txn, uint64_t key, uint32_t most, uint32_t *number_out)
{
	struct counter counter = {.version = VERSION};
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key, &bytes);

	if (rc == STORE_OK && bytes.n == sizeof counter)
		memcpy(&counter, bytes.p, sizeof counter);
	else if (rc != STORE_NONE)
		return rc == STORE_OK ? STORE_BAD : rc;
	if (counter.channels >= most)
		return STORE_FULL;
	*number_out = counter.channels++;
	return txn_put(txn, key, &counter, sizeof counter);
}

enum store_rc
roster_channel(struct txn *txn, const char *name, bool create, uint16_t *number_out)
{
	uint64_t key;
	uint32_t number;
	enum store_rc rc = name_find(txn, name, &key, &number);

	if (rc == STORE_NONE && create) {
		rc = next_number(txn, key_of(KEY_CHANNEL, UINT16_MAX, 0), UINT16_MAX - 1, &number);
		if (rc == STORE_OK)
			rc = name_put(txn, key, name, number);
	}
	if (rc == STORE_OK)
		*number_out = (uint16_t)number;
	return rc;
}

/* The key behind a known account changed: what was held against the old key goes. */
static enum store_rc
rekey(struct txn *txn, struct account_ref ref, struct account_stat *stat,
    const uint8_t fingerprint[8])
{
	struct account_row row;
	enum store_rc rc = account_get(txn, ref, &row);

	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	if ((row.flags & ACCOUNT_BY_OPERATOR) == 0)
		row.flags &= (uint8_t) ~(ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES);
	row.session_dead = row.auth_failed = 0;
	rc = account_put(txn, ref, &row);
	if (rc != STORE_OK)
		return rc;
	memcpy(stat->fingerprint, fingerprint, sizeof stat->fingerprint);
	return account_stat_put(txn, ref, stat);
}

static enum store_rc
new_account(struct txn *txn, uint64_t name_key, const char *name, struct account_ref *ref,
    const uint8_t fingerprint[8])
{
	struct account_row row;
	struct account_stat stat;
	enum store_rc rc =
	    next_number(txn, key_of(KEY_CHANNEL, ref->channel, 0), UINT32_MAX, &ref->number);

	if (rc == STORE_OK)
		rc = name_put(txn, name_key, name, ref->number);
	if (rc != STORE_OK)
		return rc;
	rc = account_get(txn, *ref, &row);
	if (rc == STORE_OK || rc == STORE_NONE)
		rc = account_put(txn, *ref, &row);
	if (rc != STORE_OK)
		return rc;
	rc = account_stat_get(txn, *ref, &stat);
	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	memcpy(stat.fingerprint, fingerprint, sizeof stat.fingerprint);
	return account_stat_put(txn, *ref, &stat);
}

enum store_rc
roster_account(struct txn *txn, uint16_t channel, const char *id, const uint8_t fingerprint[8],
    bool create, struct account_ref *ref_out, bool *rekeyed_out)
{
	struct account_ref ref = {.channel = channel};
	struct account_stat stat;
	char name[NAME_MAX_BYTES + 1];
	uint64_t key;
	enum store_rc rc;

	*rekeyed_out = false;
	if (snprintf(name, sizeof name, "%u/%s", channel, id) >= (int)sizeof name)
		return STORE_FULL;
	rc = name_find(txn, name, &key, &ref.number);
	if (rc == STORE_NONE && create)
		rc = new_account(txn, key, name, &ref, fingerprint);
	if (rc != STORE_OK)
		return rc;
	*ref_out = ref;
	rc = account_stat_get(txn, ref, &stat);
	if (rc != STORE_OK || memcmp(stat.fingerprint, fingerprint, sizeof stat.fingerprint) == 0)
		return rc == STORE_NONE ? STORE_OK : rc;
	*rekeyed_out = true;
	return create ? rekey(txn, ref, &stat, fingerprint) : STORE_OK;
}
