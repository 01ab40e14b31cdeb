#include "store/sticky.h"

#include "lib/store_dir.h"
#include "store/tally.h"

#define TTL 64000
#define T0 1000000000000

/* The trouble is met with a detour_max of 60 s. */
static const struct {
	const char *what;
	struct sticky_turn turn;
	enum sticky_step want;
} decisions[] = {
#define TURN(bound, trouble, left, unbind, served)          \
	{                                                   \
		bound, trouble, left, unbind, 60000, served \
	}
    {"bound, used", TURN(true, STICKY_FINE, 0, false, STICKY_BY_BOUND), STICKY_RENEW},
    {"bound, used in spite of trouble", TURN(true, STICKY_SHORT, 0, false, STICKY_BY_BOUND),
        STICKY_RENEW},
    {"bound, used, no detours", TURN(true, STICKY_FINE, 0, true, STICKY_BY_BOUND), STICKY_RENEW},
    {"bound, nothing happened", TURN(true, STICKY_FINE, 0, false, STICKY_BY_NOBODY), STICKY_KEEP},
    {"bound, another served", TURN(true, STICKY_FINE, 0, false, STICKY_BY_OTHER), STICKY_MOVE},
    {"short", TURN(true, STICKY_SHORT, 0, false, STICKY_BY_OTHER), STICKY_KEEP},
    {"short, nobody served", TURN(true, STICKY_SHORT, 0, false, STICKY_BY_NOBODY), STICKY_KEEP},
    {"short, no detours", TURN(true, STICKY_SHORT, 0, true, STICKY_BY_OTHER), STICKY_MOVE},
    {"short, no detours, nobody", TURN(true, STICKY_SHORT, 0, true, STICKY_BY_NOBODY), STICKY_DROP},
    {"resting shortly", TURN(true, STICKY_RESTING, 59999, false, STICKY_BY_OTHER), STICKY_KEEP},
    {"resting shortly, nobody", TURN(true, STICKY_RESTING, 59999, false, STICKY_BY_NOBODY),
        STICKY_KEEP},
    {"resting shortly, no detours", TURN(true, STICKY_RESTING, 1, true, STICKY_BY_OTHER),
        STICKY_MOVE},
    {"resting for detour_max", TURN(true, STICKY_RESTING, 60000, false, STICKY_BY_OTHER),
        STICKY_MOVE},
    {"resting long, nobody", TURN(true, STICKY_RESTING, 60000, false, STICKY_BY_NOBODY),
        STICKY_DROP},
    {"out of credit", TURN(true, STICKY_LASTING, 0, false, STICKY_BY_OTHER), STICKY_MOVE},
    {"out of credit, nobody", TURN(true, STICKY_LASTING, 0, false, STICKY_BY_NOBODY), STICKY_DROP},
    {"new, served", TURN(false, STICKY_FINE, 0, false, STICKY_BY_BOUND), STICKY_RENEW},
    {"new, the first had a short trouble", TURN(false, STICKY_SHORT, 0, false, STICKY_BY_OTHER),
        STICKY_MOVE},
    {"new, nobody served", TURN(false, STICKY_SHORT, 0, false, STICKY_BY_NOBODY), STICKY_DROP},
    {"new, nothing happened", TURN(false, STICKY_FINE, 0, false, STICKY_BY_NOBODY), STICKY_DROP},
};

static void
decides(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof decisions / sizeof decisions[0]; i++) {
		enum sticky_step got = sticky_decide(&decisions[i].turn);

		if (got != decisions[i].want)
			fail_msg("%s: got %d, want %d", decisions[i].what, (int)got,
			    (int)decisions[i].want);
	}
}

enum op { GET, PUT, MOVE, DROP, DEL };

/* One session after another on an empty store; `account` 0 = not bound afterwards. */
static const struct {
	const char *what;
	enum op op;
	int session, channel;
	int64_t at_ms;
	uint32_t a, b;
	uint32_t account; /* bound to it afterwards, looked at by the same id at the same time */
	uint64_t rows;
} script[] = {
    {"nothing there", GET, 1, 1, 0, 0, 0, 0, 0},
    {"nothing to end", DEL, 1, 1, 0, 0, 0, 0, 0},
    {"nothing to drop", DROP, 1, 1, 0, 5, 0, 0, 0},
    {"bind", PUT, 1, 1, 0, 5, 0, 5, 1},
    {"another session is not bound", GET, 2, 1, 0, 0, 0, 0, 1},
    {"another channel is not", GET, 1, 2, 0, 0, 0, 0, 1},
    {"bind on another channel", PUT, 1, 2, 0, 6, 0, 6, 2},
    {"and not on the first", GET, 1, 1, 0, 0, 0, 5, 2},
    {"just before its end", GET, 1, 1, TTL - 1, 0, 0, 5, 2},
    {"its end", GET, 1, 1, TTL, 0, 0, 0, 2},
    {"renewing", PUT, 1, 1, 30000, 5, 0, 5, 2},
    {"lives longer", GET, 1, 1, 30000 + TTL - 1, 0, 0, 5, 2},
    {"not for ever", GET, 1, 1, 30000 + TTL, 0, 0, 0, 2},
    {"a renewal too soon after", PUT, 1, 1, 30000 + TTL / 64, 5, 0, 5, 2},
    {"changes nothing", GET, 1, 1, 30000 + TTL, 0, 0, 0, 2},
    {"another too soon after counts from the first", PUT, 1, 1, 30001 + TTL / 64, 5, 0, 5, 2},
    {"so it renewed", GET, 1, 1, 30000 + TTL, 0, 0, 5, 2},
    {"moved", MOVE, 1, 1, 40000, 5, 7, 7, 2},
    {"another request moved it first", MOVE, 1, 1, 40000, 5, 8, 7, 2},
    {"dropped from where it is not", DROP, 1, 1, 40000, 5, 0, 7, 2},
    {"moved before it began", MOVE, 3, 1, 40000, 5, 9, 9, 3},
    {"expired, bound elsewhere since nobody holds it", MOVE, 1, 1, 200000, 5, 8, 8, 3},
    {"dropped", DROP, 1, 1, 200000, 8, 0, 0, 2},
    {"ended", DEL, 3, 1, 40000, 0, 0, 0, 1},
    {"the clock went back a little", GET, 1, 2, -3600000, 0, 0, 6, 1},
    {"the clock went back a lot", GET, 1, 2, -3600001, 0, 0, 0, 1},
    {"an expired one is bound anew", PUT, 1, 2, -3600001, 9, 0, 9, 1},
    {"an expired one can be ended", DEL, 1, 2, 900000, 0, 0, 0, 0},
};

static void
key_fill(uint8_t key[STICKY_KEY_BYTES], int session)
{
	uint64_t h = (uint64_t)session + 1;

	for (unsigned i = 0; i < STICKY_KEY_BYTES; i += 8) {
		h = (h ^ h >> 31) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
		memcpy(key + i, &h, 8);
	}
}

struct step {
	size_t i;
	struct sticky_row row;
	uint64_t rows;
	enum store_rc got;
};

static enum store_rc
do_step(struct txn *txn, void *arg)
{
	struct step *s = arg;
	uint8_t key[STICKY_KEY_BYTES];
	struct sticky_id id = {key, (uint16_t)script[s->i].channel, {T0 + script[s->i].at_ms}, TTL};
	enum store_rc rc = STORE_OK;

	key_fill(key, script[s->i].session);
	switch (script[s->i].op) {
	case GET: break;
	case PUT: rc = sticky_put(txn, &id, script[s->i].a); break;
	case MOVE: rc = sticky_move(txn, &id, script[s->i].a, script[s->i].b); break;
	case DROP: rc = sticky_drop(txn, &id, script[s->i].a); break;
	case DEL: rc = sticky_del(txn, &id); break;
	}
	if (rc != STORE_OK)
		return rc;
	s->got = sticky_get(txn, &id, &s->row);
	return tally_get(txn, TALLY_SESSIONS, &s->rows);
}

static void
bindings(void **state)
{
	struct env *env = store_dir_open(*state);

	for (size_t i = 0; i < sizeof script / sizeof script[0]; i++) {
		struct step step = {.i = i};
		uint32_t account;

		assert_int_equal(env_update(env, do_step, &step), STORE_OK);
		account = step.got == STORE_OK ? step.row.account : 0;
		if (account != script[i].account)
			fail_msg("%zu %s: got %u, want %u", i, script[i].what, account,
			    script[i].account);
		if (step.rows != script[i].rows)
			fail_msg("%zu %s: %llu rows, want %llu", i, script[i].what,
			    (unsigned long long)step.rows, (unsigned long long)script[i].rows);
	}
	env_close(&env);
}

/* Sessions that share a home: `last` tells them apart. */
static void
key_crowded(uint8_t key[STICKY_KEY_BYTES], unsigned home, unsigned last)
{
	memset(key, 0x5a, STICKY_KEY_BYTES);
	key[1] = (uint8_t)home;
	key[STICKY_KEY_BYTES - 1] = (uint8_t)last;
}

#define HOMES 3
#define CROWD 12
#define ACCOUNTS 600 /* more than a shard */
#define CHANNEL 3

struct model {
	uint32_t account[HOMES][CROWD]; /* + 1; 0 = none */
	uint64_t random;
	uint32_t counts[ACCOUNTS], seen[ACCOUNTS];
	uint64_t rows, tally;
	char fault[200];
};

static uint32_t
draw(struct model *m, uint32_t n)
{
	m->random = m->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(m->random >> 33) % n;
}

static bool
count_row(const struct sticky_row *row, void *arg)
{
	struct model *m = arg;

	m->rows++;
	m->seen[row->account]++;
	return true;
}

static enum store_rc
check_model(struct txn *txn, void *arg)
{
	struct model *m = arg;
	enum store_rc rc;

	m->rows = 0;
	memset(m->seen, 0, sizeof m->seen);
	rc = sticky_walk(txn, count_row, m);
	if (rc == STORE_OK)
		rc = tally_get(txn, TALLY_SESSIONS, &m->tally);
	if (rc == STORE_OK)
		rc = sticky_bound(txn, CHANNEL, ACCOUNTS, m->counts);
	for (unsigned h = 0; h < HOMES && rc == STORE_OK; h++) {
		for (unsigned c = 0; c < CROWD; c++) {
			uint8_t key[STICKY_KEY_BYTES];
			struct sticky_id id = {key, CHANNEL, {T0}, TTL};
			struct sticky_row row = {.account = 0};
			uint32_t got;

			key_crowded(key, h, c);
			got = sticky_get(txn, &id, &row) == STORE_OK ? row.account + 1 : 0;
			if (got != m->account[h][c])
				snprintf(m->fault, sizeof m->fault, "%u/%u: got %u, want %u", h, c,
				    got, m->account[h][c]);
		}
	}
	return rc;
}

static enum store_rc
change_model(struct txn *txn, void *arg)
{
	struct model *m = arg;
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < 20 && rc == STORE_OK; i++) {
		unsigned h = draw(m, HOMES), c = draw(m, CROWD);
		uint32_t account = draw(m, 2) == 0 ? draw(m, 4) : draw(m, ACCOUNTS);
		uint8_t key[STICKY_KEY_BYTES];
		struct sticky_id id = {key, CHANNEL, {T0}, TTL};

		key_crowded(key, h, c);
		if (draw(m, 5) < 2) {
			rc = sticky_del(txn, &id);
			m->account[h][c] = 0;
		} else {
			rc = sticky_put(txn, &id, account);
			m->account[h][c] = account + 1;
		}
	}
	return rc;
}

static void
crowded_homes(void **state)
{
	struct env *env = store_dir_open(*state);
	struct model *m = calloc(1, sizeof *m);

	m->random = 12345;
	for (unsigned round = 0; round < 300; round++) {
		assert_int_equal(env_update(env, change_model, m), STORE_OK);
		assert_int_equal(env_view(env, check_model, m), STORE_OK);
		if (m->fault[0] != '\0')
			fail_msg("round %u: %s", round, m->fault);
		assert_int_equal(m->rows, m->tally);
		assert_memory_equal(m->counts, m->seen, sizeof m->counts);
	}
	free(m);
	env_close(&env);
}

struct filled {
	unsigned first, n, most;
	int64_t at_ms;
	uint64_t next, rows;
	uint32_t counts[2];
	unsigned found;
};

static enum store_rc
fill(struct txn *txn, void *arg)
{
	const struct filled *f = arg;
	enum store_rc rc = STORE_OK;

	for (unsigned i = f->first; i < f->first + f->n && rc == STORE_OK; i++) {
		uint8_t key[STICKY_KEY_BYTES];
		struct sticky_id id = {key, 1, {T0 + f->at_ms}, TTL};

		key_fill(key, (int)i);
		rc = sticky_put(txn, &id, i % 2);
	}
	return rc;
}

static enum store_rc
look_filled(struct txn *txn, void *arg)
{
	struct filled *f = arg;
	enum store_rc rc = tally_get(txn, TALLY_SESSIONS, &f->rows);

	f->found = 0;
	for (unsigned i = f->first; i < f->first + f->n; i++) {
		uint8_t key[STICKY_KEY_BYTES];
		struct sticky_id id = {key, 1, {T0 + f->at_ms}, TTL};
		struct sticky_row row;

		key_fill(key, (int)i);
		f->found += sticky_get(txn, &id, &row) == STORE_OK;
	}
	return rc == STORE_OK ? sticky_bound(txn, 1, 2, f->counts) : rc;
}

static enum store_rc
sweep_on(struct txn *txn, void *arg)
{
	struct filled *f = arg;
	uint64_t next;
	enum store_rc rc =
	    sticky_sweep(txn, (struct wall_ms){T0 + f->at_ms}, f->most, f->next, &next);

	if (rc == STORE_OK)
		f->next = next; /* these transactions do not run twice */
	return rc;
}

static void
sweeping(void **state)
{
	static const unsigned mosts[] = {1, 7, 100, 100000};
	struct env *env = store_dir_open(*state);

	for (size_t i = 0; i < sizeof mosts / sizeof mosts[0]; i++) {
		struct filled old = {.n = 700}, fresh = {.first = 700, .n = 301, .at_ms = 50000};
		struct filled sweep = {.most = mosts[i], .at_ms = TTL};
		unsigned calls = 0;

		assert_int_equal(env_update(env, fill, &old), STORE_OK);
		assert_int_equal(env_update(env, fill, &fresh), STORE_OK);
		do {
			assert_int_equal(env_update(env, sweep_on, &sweep), STORE_OK);
			calls++;
		} while (sweep.next != 0);
		assert_true(calls >= 3 && calls <= 1002 / mosts[i] + 5);
		assert_int_equal(env_view(env, look_filled, &fresh), STORE_OK);
		assert_int_equal(fresh.found, 301);
		assert_int_equal(fresh.rows, 301);
		assert_int_equal(fresh.counts[0] + fresh.counts[1], 301);
		assert_int_equal(fresh.counts[0], 151);
	}
	env_close(&env);
}

/* Every second row of a crowded home has expired. */
static enum store_rc
sweep_crowd(struct txn *txn, void *arg)
{
	unsigned *left = arg;
	uint64_t next = 1;
	enum store_rc rc = STORE_OK;

	for (unsigned c = 0; c < CROWD && rc == STORE_OK; c++) {
		uint8_t key[STICKY_KEY_BYTES];
		struct sticky_id id = {key, CHANNEL, {T0 + (c % 2) * 10}, TTL};

		key_crowded(key, 0, c);
		rc = sticky_put(txn, &id, c);
	}
	if (rc == STORE_OK)
		rc = sticky_sweep(txn, (struct wall_ms){T0 + TTL}, 100, 0, &next);
	*left = 0;
	for (unsigned c = 0; c < CROWD && rc == STORE_OK; c++) {
		uint8_t key[STICKY_KEY_BYTES];
		struct sticky_id id = {key, CHANNEL, {T0 + TTL}, TTL};
		struct sticky_row row;

		key_crowded(key, 0, c);
		*left += sticky_get(txn, &id, &row) == STORE_OK && row.account == c;
	}
	return rc == STORE_OK && next != 0 ? STORE_BAD : rc;
}

static void
sweeping_a_crowd(void **state)
{
	struct env *env = store_dir_open(*state);
	struct model *m = calloc(1, sizeof *m);
	unsigned left;

	assert_int_equal(env_update(env, sweep_crowd, &left), STORE_OK);
	assert_int_equal(left, CROWD / 2);
	assert_int_equal(env_view(env, check_model, m), STORE_OK);
	assert_int_equal(m->rows, CROWD / 2);
	assert_int_equal(m->tally, CROWD / 2);
	assert_memory_equal(m->counts, m->seen, sizeof m->counts);
	free(m);
	env_close(&env);
}

static enum store_rc
pretend_full(struct txn *txn, void *arg)
{
	(void)arg;
	return tally_set(txn, TALLY_SESSIONS, STICKY_MAX);
}

/* Each new one replaces the least recently used of a few neighbours, so the old ones go first. */
static void
a_full_table(void **state)
{
	struct env *env = store_dir_open(*state);
	struct filled old = {.n = 100}, fresh = {.first = 100, .n = 100, .at_ms = 1000};

	assert_int_equal(env_update(env, fill, &old), STORE_OK);
	assert_int_equal(env_update(env, pretend_full, NULL), STORE_OK);
	assert_int_equal(env_update(env, fill, &fresh), STORE_OK);
	assert_int_equal(env_view(env, look_filled, &old), STORE_OK);
	assert_int_equal(env_view(env, look_filled, &fresh), STORE_OK);
	assert_int_equal(fresh.rows, STICKY_MAX);
	assert_int_equal(old.found + fresh.found, 100);
	assert_int_equal(fresh.counts[0] + fresh.counts[1], 100);
	if (fresh.found < 80)
		fail_msg("%u of 100 fresh ones are left", fresh.found);
	env_close(&env);
}

#define BINDERS 8
#define SESSIONS 60

struct shared {
	const struct store_dir *dir;
	volatile int ready, go;
	uint32_t got[BINDERS][SESSIONS];
};

struct binder {
	struct shared *shared;
	unsigned number;
	int session;
	uint32_t account;
};

static enum store_rc
bind_once(struct txn *txn, void *arg)
{
	struct binder *b = arg;
	uint8_t key[STICKY_KEY_BYTES];
	struct sticky_id id = {key, 1, {T0}, TTL};
	struct sticky_row row;
	enum store_rc rc;

	key_fill(key, b->session);
	rc = sticky_get(txn, &id, &row);
	if (rc == STORE_OK)
		b->account = row.account;
	if (rc != STORE_NONE)
		return rc;
	b->account = b->number;
	return sticky_put(txn, &id, b->number);
}

static int
bind_all(void *arg)
{
	struct binder *b = arg;
	struct env *env = store_dir_open(b->shared->dir);

	__atomic_add_fetch(&b->shared->ready, 1, __ATOMIC_SEQ_CST);
	if (env == NULL || !wait_flag(&b->shared->go))
		return 1;
	for (b->session = 0; b->session < SESSIONS; b->session++) {
		if (env_update(env, bind_once, b) != STORE_OK)
			return 2;
		b->shared->got[b->number][b->session] = b->account;
	}
	env_close(&env);
	return 0;
}

struct totals {
	uint32_t counts[BINDERS];
	uint64_t rows;
};

static enum store_rc
look_totals(struct txn *txn, void *arg)
{
	struct totals *t = arg;
	enum store_rc rc = sticky_bound(txn, 1, BINDERS, t->counts);

	return rc == STORE_OK ? tally_get(txn, TALLY_SESSIONS, &t->rows) : rc;
}

static void
one_of_eight_binds(void **state)
{
	struct shared *s = shared_bytes(sizeof *s);
	struct totals totals;
	uint32_t wins[BINDERS] = {0};
	pid_t pids[BINDERS];
	struct env *env;

	s->dir = *state;
	for (unsigned i = 0; i < BINDERS; i++)
		pids[i] = child_start(bind_all, &(struct binder){.shared = s, .number = i});
	while (s->ready < BINDERS)
		nap_ms(1);
	s->go = 1;
	for (unsigned i = 0; i < BINDERS; i++)
		assert_int_equal(child_end(pids[i]), 0);
	for (unsigned k = 0; k < SESSIONS; k++) {
		for (unsigned i = 1; i < BINDERS; i++)
			assert_int_equal(s->got[i][k], s->got[0][k]);
		wins[s->got[0][k]]++;
	}
	env = store_dir_open(*state);
	assert_int_equal(env_view(env, look_totals, &totals), STORE_OK);
	assert_int_equal(totals.rows, SESSIONS);
	assert_memory_equal(totals.counts, wins, sizeof wins);
	env_close(&env);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(decides),
	    WITH_DIR(bindings),
	    WITH_DIR(crowded_homes),
	    WITH_DIR(sweeping),
	    WITH_DIR(sweeping_a_crowd),
	    WITH_DIR(a_full_table),
	    WITH_DIR(one_of_eight_binds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
