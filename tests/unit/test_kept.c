#include "store/kept.h"

#include "store/book.h"

#include "lib/store_dir.h"

#define T0 INT64_C(1700000000000)
#define TTL 1000000

enum op { PUT, GET, DEL, SWEEP };

/* One store over all steps. Texts are `n` bytes that differ by `seed`. */
static const struct step {
	const char *what;
	enum op op;
	const char *client, *name;
	size_t n; /* SWEEP: the most to remove */
	unsigned seed;
	int64_t at_ms;
	uint64_t max_bytes;
	enum store_rc rc;
	uint64_t rows; /* left; of SWEEP and others */
} steps[] = {
    {"nothing is there", GET, "c", "a", 0, 0, 0, 1 << 20, STORE_NONE, 0},
    {"nothing to delete", DEL, "c", "a", 0, 0, 0, 1 << 20, STORE_NONE, 0},
    {"nothing to sweep", SWEEP, "", "", 10, 0, 0, 1 << 20, STORE_OK, 0},
    {"first", PUT, "c", "a", 10, 1, 0, 1 << 20, STORE_OK, 1},
    {"is there", GET, "c", "a", 10, 1, 1, 1 << 20, STORE_OK, 1},
    {"of another client", GET, "d", "a", 0, 0, 1, 1 << 20, STORE_NONE, 1},
    {"the end of the client is not the begin of the name", GET, "", "ca", 0, 0, 1, 1 << 20,
        STORE_NONE, 1},
    {"another client's delete", DEL, "d", "a", 0, 0, 1, 1 << 20, STORE_NONE, 1},
    {"of nobody", PUT, "", "a", 11, 2, 2, 1 << 20, STORE_OK, 2},
    {"of nobody is there", GET, "", "a", 11, 2, 2, 1 << 20, STORE_OK, 2},
    {"still there", GET, "c", "a", 10, 1, 2, 1 << 20, STORE_OK, 2},
    {"empty", PUT, "c", "empty", 0, 3, 3, 1 << 20, STORE_OK, 3},
    {"empty is there", GET, "c", "empty", 0, 3, 3, 1 << 20, STORE_OK, 3},
    {"one piece", PUT, "c", "one", SHELF_PIECE, 4, 3, 1 << 20, STORE_OK, 4},
    {"one and a byte", PUT, "c", "more", SHELF_PIECE + 1, 5, 3, 1 << 20, STORE_OK, 5},
    {"many pieces", PUT, "c", "many", 9 * SHELF_PIECE - 1, 6, 3, 1 << 20, STORE_OK, 6},
    {"one piece is there", GET, "c", "one", SHELF_PIECE, 4, 3, 1 << 20, STORE_OK, 6},
    {"one and a byte is there", GET, "c", "more", SHELF_PIECE + 1, 5, 3, 1 << 20, STORE_OK, 6},
    {"many pieces are there", GET, "c", "many", 9 * SHELF_PIECE - 1, 6, 3, 1 << 20, STORE_OK, 6},
    {"again, shorter", PUT, "c", "many", 5, 7, 4, 1 << 20, STORE_OK, 6},
    {"the newer one", GET, "c", "many", 5, 7, 4, 1 << 20, STORE_OK, 6},
    {"deleted", DEL, "c", "more", 0, 0, 4, 1 << 20, STORE_OK, 5},
    {"is gone", GET, "c", "more", 0, 0, 4, 1 << 20, STORE_NONE, 5},
    {"larger than all may be", PUT, "c", "big", 1 << 20, 8, 5, 1 << 20, STORE_FULL, 5},
    {"pushes the oldest out", PUT, "c", "big", 900000, 8, 5, 980000, STORE_OK, 5},
    {"the oldest is out", GET, "c", "a", 0, 0, 5, 1 << 20, STORE_NONE, 5},
    {"the next is not", GET, "", "a", 11, 2, 5, 1 << 20, STORE_OK, 5},
    {"too much now", SWEEP, "", "", 1, 0, 5, 1, STORE_OK, 4},
    {"and more", SWEEP, "", "", 10, 0, 5, 920000, STORE_OK, 2},
    {"the newest are left", GET, "c", "big", 900000, 8, 5, 1 << 20, STORE_OK, 2},
    {"not expired", GET, "c", "many", 5, 7, 4 + TTL - 1, 1 << 20, STORE_OK, 2},
    {"expired", GET, "c", "many", 0, 0, 4 + TTL, 1 << 20, STORE_NONE, 2},
    {"expired, so not to be deleted", DEL, "c", "many", 0, 0, 4 + TTL, 1 << 20, STORE_NONE, 2},
    {"the clock went back", GET, "c", "big", 900000, 8, 5 - TTL, 1 << 20, STORE_OK, 2},
    {"made in a far future", GET, "c", "big", 0, 0, 4 - TTL, 1 << 20, STORE_NONE, 2},
    {"one has expired", SWEEP, "", "", 10, 0, 4 + TTL, 1 << 20, STORE_OK, 1},
    {"and the other", SWEEP, "", "", 10, 0, 5 + TTL, 1 << 20, STORE_OK, 0},
};

struct taken {
	const struct step *step;
	char *text; /* what is put, or what came */
	size_t n;
	struct shelf_sum sum;
};

static char *
room(size_t n, void *arg)
{
	struct taken *t = arg;

	t->n = n;
	free(t->text);
	t->text = malloc(n + 1);
	assert_non_null(t->text);
	return t->text;
}

static void
fill(char *text, size_t n, unsigned seed)
{
	uint32_t x = seed * 2654435761u + 1;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		text[i] = (char)(x >> 24);
	}
}

static enum store_rc
do_step(struct txn *txn, void *arg)
{
	struct taken *t = arg;
	const struct step *s = t->step;
	struct kept_key key = {{s->client, strlen(s->client)}, {s->name, strlen(s->name)}};
	struct kept_limits limits = {{T0 + s->at_ms}, TTL, s->max_bytes};
	unsigned removed;
	enum store_rc rc = STORE_OK, sums;

	switch (s->op) {
	case PUT: rc = kept_put(txn, &key, (struct env_bytes){t->text, s->n}, &limits); break;
	case GET: rc = kept_get(txn, &key, &limits, room, t); break;
	case DEL: rc = kept_del(txn, &key, &limits); break;
	case SWEEP: rc = kept_sweep(txn, &limits, (unsigned)s->n, &removed); break;
	}
	sums = kept_sums(txn, &t->sum);
	return rc != STORE_OK ? rc : sums;
}

static enum store_rc
count_rows(uint64_t key, struct env_bytes row, void *arg)
{
	(void)key, (void)row;
	++*(uint64_t *)arg;
	return STORE_OK;
}

static enum store_rc
count_all(struct txn *txn, void *arg)
{
	*(uint64_t *)arg = 0;
	return txn_walk(txn, key_of(KEY_KEPT, 0, 1), key_last_of(KEY_KEPT_TEXT), count_rows, arg);
}

static struct env *
with_book(const struct store_dir *dir)
{
	struct env *env = store_dir_open(dir);
	struct book_report report;

	assert_int_equal(book_save(env, &report), STORE_OK);
	return env;
}

static void
table(void **state)
{
	struct env *env = with_book(*state);
	struct shelf_sum sum = {.rows = 0};
	uint64_t left;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		const struct step *s = &steps[i];
		struct taken t = {.step = s, .text = malloc(s->n + 1)};
		char *want = malloc(s->n + 1);
		enum store_rc rc;

		assert_non_null(want);
		fill(want, s->n, s->seed);
		memcpy(t.text, want, s->n);
		t.sum = sum;
		rc = env_book_update(env, do_step, &t);
		if (rc != s->rc)
			fail_msg("%s: %d, want %d: %s", s->what, rc, s->rc, env_error(env));
		if (rc == STORE_OK)
			sum = t.sum;
		if (sum.rows != s->rows)
			fail_msg("%s: %llu rows, want %llu", s->what, (unsigned long long)sum.rows,
			    (unsigned long long)s->rows);
		if (s->op == GET && rc == STORE_OK &&
		    (t.n != s->n || memcmp(t.text, want, s->n) != 0))
			fail_msg("%s: %zu bytes came, not the right %zu", s->what, t.n, s->n);
		free(t.text);
		free(want);
	}
	assert_int_equal(sum.bytes, 0);
	assert_int_equal(env_book_view(env, count_all, &left), STORE_OK);
	assert_int_equal(left, 0);
	env_close(&env);
}

/* Names whose hashes fall into one group all work; the seventeenth takes the place of one of them. */
static enum store_rc
crowd(struct txn *txn, void *arg)
{
	struct kept_limits limits = {{T0}, TTL, 1 << 30};
	uint64_t *found = arg;

	*found = 0;
	for (unsigned i = 0; i < 3000; i++) {
		char name[24];
		struct kept_key key = {{"c", 1}, {name, 0}};
		enum store_rc rc;

		snprintf(name, sizeof name, "resp_%u", i);
		key.name.n = strlen(name);
		rc = kept_put(txn, &key, (struct env_bytes){name, key.name.n}, &limits);
		if (rc != STORE_OK)
			return rc;
	}
	for (unsigned i = 0; i < 3000; i++) {
		char name[24];
		struct kept_key key = {{"c", 1}, {name, 0}};
		struct taken t = {.text = NULL};

		snprintf(name, sizeof name, "resp_%u", i);
		key.name.n = strlen(name);
		if (kept_get(txn, &key, &limits, room, &t) == STORE_OK)
			*found += t.n == key.name.n && memcmp(t.text, name, t.n) == 0;
		free(t.text);
	}
	return STORE_OK;
}

static void
many(void **state)
{
	struct env *env = with_book(*state);
	uint64_t found;

	assert_int_equal(env_book_update(env, crowd, &found), STORE_OK);
	assert_int_equal(found, 3000);
	env_close(&env);
}

/* Saving `live` leaves them alone, and so does making a new `live`. */
static void
outlives(void **state)
{
	struct env *env = with_book(*state);
	struct step put = {"put", PUT, "c", "a", 100, 1, 0, 1 << 20, STORE_OK, 1};
	struct step get = {"get", GET, "c", "a", 100, 1, 0, 1 << 20, STORE_OK, 1};
	struct taken t = {.step = &put, .text = calloc(1, 101)};
	struct book_report report;

	assert_int_equal(env_book_update(env, do_step, &t), STORE_OK);
	assert_int_equal(book_save_all(env, &report), STORE_OK);
	env_close(&env);
	env = store_dir_open(*state);
	t.step = &get;
	assert_int_equal(env_book_view(env, do_step, &t), STORE_OK);
	assert_int_equal(t.n, 100);
	free(t.text);
	env_close(&env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(table, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(many, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(outlives, store_dir_setup, store_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
