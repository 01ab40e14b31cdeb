#include "store/sweep.h"

#define AHEAD_MS 3600000

bool
sweep_has_expired(int64_t begun_ms, int64_t expires_ms, struct wall_ms now)
{
	return expires_ms <= now.v || begun_ms - AHEAD_MS > now.v;
}

struct looking {
	struct sweep *sweep;
	unsigned seen, most;
	uint64_t last; /* key that was seen */
};

static enum store_rc
look(uint64_t key, struct env_bytes row, void *arg)
{
	struct looking *l = arg;
	struct sweep *s = l->sweep;

	l->last = key;
	if (s->is_over(row, s->now))
		s->key[s->n++] = key;
	return ++l->seen < l->most && s->n < SWEEP_FOUND_MAX ? STORE_OK : STORE_FULL;
}

enum store_rc
sweep_find(struct txn *txn, struct sweep *sweep, unsigned most, uint64_t from, uint64_t *next_out)
{
	uint64_t first = key_of(sweep->kind, 0, 0), last = key_last_of(sweep->kind);
	struct looking l = {.sweep = sweep, .most = most};
	enum store_rc rc =
	    txn_walk(txn, from > first && from <= last ? from : first, last, look, &l);

	if (rc != STORE_OK && rc != STORE_FULL)
		return rc;
	*next_out = rc == STORE_FULL && l.last < last ? l.last + 1 : 0;
	return STORE_OK;
}
