#include "store/talk.h"

#include "store/book.h"

#include "lib/store_dir.h"

#define T0 INT64_C(1700000000000)
#define TTL 1000000
#define TURNS_MAX 8
#define TEXT_MAX 2000000
#define ALL (1 << 24)
#define P SHELF_PIECE

enum op { APPEND, REPLACE, PREPEND, READ, DROP, SWEEP };

/* A turn of `n` times the letter; 0 ends a list. */
struct turn {
	char letter;
	size_t n;
};

/* One store over all steps. Keys are the text, filled up with zeros: "1234567a" and "1234567b" have one hash. */
static const struct step {
	const char *what;
	enum op op;
	const char *key;
	struct turn turns[TURNS_MAX];
	int64_t at_ms;
	uint64_t max_bytes, max_total; /* SWEEP: most to remove, max_total */
	enum store_rc rc;
	uint64_t rows; /* conversations that are left */
} steps[] = {
    {"nothing is there", READ, "a", {{0}}, 0, ALL, ALL, STORE_NONE, 0},
    {"nothing to drop", DROP, "a", {{0}}, 0, ALL, ALL, STORE_NONE, 0},
    {"nothing to sweep", SWEEP, "", {{0}}, 0, 10, ALL, STORE_OK, 0},
    {"first", APPEND, "a", {{'s', 5}, {'u', 3}, {'v', 4}}, 0, ALL, ALL, STORE_OK, 1},
    {"are there", READ, "a", {{'s', 5}, {'u', 3}, {'v', 4}}, 1, ALL, ALL, STORE_OK, 1},
    {"more", APPEND, "a", {{'w', 1}, {'x', 2}}, 1, ALL, ALL, STORE_OK, 1},
    {"in their order", READ, "a", {{'s', 5}, {'u', 3}, {'v', 4}, {'w', 1}, {'x', 2}}, 1, ALL, ALL,
        STORE_OK, 1},
    {"another key", READ, "b", {{0}}, 1, ALL, ALL, STORE_NONE, 1},
    {"another first one, and more", REPLACE, "a", {{'t', 50}, {'y', 1}}, 2, ALL, ALL, STORE_OK, 1},
    {"took its place", READ, "a", {{'t', 50}, {'u', 3}, {'v', 4}, {'w', 1}, {'x', 2}, {'y', 1}}, 2,
        ALL, ALL, STORE_OK, 1},
    {"one of many pieces", REPLACE, "a", {{'S', 3 * P + 7}}, 2, ALL, ALL, STORE_OK, 1},
    {"took its place, too", READ, "a",
        {{'S', 3 * P + 7}, {'u', 3}, {'v', 4}, {'w', 1}, {'x', 2}, {'y', 1}}, 2, ALL, ALL, STORE_OK,
        1},
    {"a small one again", REPLACE, "a", {{'s', 1}}, 2, ALL, ALL, STORE_OK, 1},
    {"one before it", PREPEND, "a", {{'p', P}}, 2, ALL, ALL, STORE_OK, 1},
    {"stands before it", READ, "a",
        {{'p', P}, {'s', 1}, {'u', 3}, {'v', 4}, {'w', 1}, {'x', 2}, {'y', 1}}, 2, ALL, ALL,
        STORE_OK, 1},
    {"instead of that one", REPLACE, "a", {{'q', 2 * P}, {'z', 0}}, 2, ALL, ALL, STORE_OK, 1},
    {"and nothing at the end", READ, "a",
        {{'q', 2 * P}, {'s', 1}, {'u', 3}, {'v', 4}, {'w', 1}, {'x', 2}, {'y', 1}, {'z', 0}}, 2,
        ALL, ALL, STORE_OK, 1},
    {"dropped", DROP, "a", {{0}}, 2, ALL, ALL, STORE_OK, 0},
    {"is gone", READ, "a", {{0}}, 2, ALL, ALL, STORE_NONE, 0},

    {"a first one where none is", REPLACE, "b", {{'s', 2}, {'u', 1}}, 3, ALL, ALL, STORE_OK, 1},
    {"one before where none is", PREPEND, "c", {{'s', 3}, {'v', 1}}, 3, ALL, ALL, STORE_OK, 2},
    {"was appended", READ, "b", {{'s', 2}, {'u', 1}}, 3, ALL, ALL, STORE_OK, 2},
    {"was appended, too", READ, "c", {{'s', 3}, {'v', 1}}, 3, ALL, ALL, STORE_OK, 2},
    {"whole pieces", APPEND, "d", {{'a', P}, {'b', P - 1}, {'c', P + 1}, {'d', 2 * P}}, 4, ALL, ALL,
        STORE_OK, 3},
    {"are there whole", READ, "d", {{'a', P}, {'b', P - 1}, {'c', P + 1}, {'d', 2 * P}}, 4, ALL,
        ALL, STORE_OK, 3},
    {"of one hash", APPEND, "1234567a", {{'1', 1}}, 5, ALL, ALL, STORE_OK, 4},
    {"of the same", APPEND, "1234567b", {{'2', 1}}, 5, ALL, ALL, STORE_OK, 5},
    {"and again", APPEND, "1234567a", {{'3', 1}}, 5, ALL, ALL, STORE_OK, 5},
    {"the one", READ, "1234567a", {{'1', 1}, {'3', 1}}, 5, ALL, ALL, STORE_OK, 5},
    {"the other", READ, "1234567b", {{'2', 1}}, 5, ALL, ALL, STORE_OK, 5},
    {"the one goes", DROP, "1234567a", {{0}}, 5, ALL, ALL, STORE_OK, 4},
    {"the other does not", READ, "1234567b", {{'2', 1}}, 5, ALL, ALL, STORE_OK, 4},

    {"larger than one may be", APPEND, "b", {{'x', 100}}, 6, 102, ALL, STORE_FULL, 4},
    {"nothing of it is there", READ, "b", {{'s', 2}, {'u', 1}}, 6, ALL, ALL, STORE_OK, 4},
    {"just as large", APPEND, "b", {{'x', 100}}, 6, 103, ALL, STORE_OK, 4},
    {"larger than all may be", APPEND, "e", {{'x', 70000}}, 6, ALL, 70000, STORE_FULL, 4},
    {"b was used last: c is the first to go, and d", APPEND, "e", {{'x', 90000}}, 7, ALL, 100000,
        STORE_OK, 3},
    {"c is gone", READ, "c", {{0}}, 7, ALL, ALL, STORE_NONE, 3},
    {"d is gone", READ, "d", {{0}}, 7, ALL, ALL, STORE_NONE, 3},
    {"b is not", READ, "b", {{'s', 2}, {'u', 1}, {'x', 100}}, 7, ALL, ALL, STORE_OK, 3},
    {"never the one that grows", APPEND, "1234567b", {{'y', 90000}}, 7, ALL, 100000, STORE_OK, 1},
    {"it has grown", READ, "1234567b", {{'2', 1}, {'y', 90000}}, 7, ALL, ALL, STORE_OK, 1},

    {"two more", APPEND, "f", {{'f', 1}}, 8, ALL, ALL, STORE_OK, 2},
    {"that are small", APPEND, "g", {{'g', 1}}, 8, ALL, ALL, STORE_OK, 3},
    {"too much: one", SWEEP, "", {{0}}, 8, 1, 1, STORE_OK, 2},
    {"as much as may be", SWEEP, "", {{0}}, 8, 10, 2000, STORE_OK, 2},
    {"f, not expired", READ, "f", {{'f', 1}}, 8 + TTL - 1, ALL, ALL, STORE_OK, 2},
    {"f, expired", READ, "f", {{0}}, 8 + TTL, ALL, ALL, STORE_NONE, 2},
    {"expired, so not to be dropped", DROP, "f", {{0}}, 8 + TTL, ALL, ALL, STORE_NONE, 2},
    {"the clock went back", READ, "f", {{'f', 1}}, 8 - TTL, ALL, ALL, STORE_OK, 2},
    {"used in a far future", READ, "f", {{0}}, 7 - TTL, ALL, ALL, STORE_NONE, 2},
    {"it begins anew, and g has expired", APPEND, "f", {{'F', 1}}, 8 + TTL, ALL, ALL, STORE_OK, 1},
    {"only that", READ, "f", {{'F', 1}}, 8 + TTL, ALL, ALL, STORE_OK, 1},
    {"using it is what counts", APPEND, "f", {{'G', 1}}, 7 + 2 * TTL, ALL, ALL, STORE_OK, 1},
    {"not expired", SWEEP, "", {{0}}, 6 + 3 * TTL, 10, ALL, STORE_OK, 1},
    {"expired", SWEEP, "", {{0}}, 7 + 3 * TTL, 10, ALL, STORE_OK, 0},
};

/* What a step is given, and what came of it. */
struct job {
	const struct step *step;
	char *text; /* of all turns */
	size_t read_n, nturns;
	struct env_bytes read[TURNS_MAX];
	struct talk_head head;
	struct shelf_sum sum;
};

static size_t
spell(const struct turn *turns, char *dst, struct env_bytes *out)
{
	size_t n = 0;

	while (n < TURNS_MAX && turns[n].letter != '\0') {
		memset(dst, turns[n].letter, turns[n].n);
		out[n] = (struct env_bytes){dst, turns[n].n};
		dst += turns[n].n;
		n++;
	}
	return n;
}

static char *
room(const struct talk_head *head, void *arg)
{
	struct job *job = arg;

	assert_true(head->bytes <= TEXT_MAX);
	job->head = *head;
	job->nturns = 0;
	return job->text;
}

static enum store_rc
take_turn(uint32_t place, struct env_bytes turn, void *arg)
{
	struct job *job = arg;

	assert_int_equal(place, job->nturns);
	assert_true(place < TURNS_MAX);
	job->read[job->nturns++] = turn;
	return STORE_OK;
}

static enum store_rc
do_step(struct txn *txn, void *arg)
{
	struct job *job = arg;
	const struct step *s = job->step;
	struct talk_limits limits = {{T0 + s->at_ms}, TTL, s->max_bytes, s->max_total};
	struct talk_reader reader = {room, take_turn, job};
	struct env_bytes turns[TURNS_MAX];
	struct talk_append append = {.client = {"cl", 2}, .turns = turns};
	struct talk_head head = {.turns = 0};
	uint8_t key[TALK_KEY_BYTES] = {0};
	unsigned removed;
	enum store_rc rc = STORE_OK, sums;

	memcpy(key, s->key, strlen(s->key));
	if (s->op == APPEND || s->op == REPLACE || s->op == PREPEND)
		append.nturns = spell(s->turns, job->text, turns);
	if (talk_find(txn, key, &limits, &head) == STORE_OK)
		append.had = head.turns;
	append.first = s->op == REPLACE   ? TALK_REPLACE
	               : s->op == PREPEND ? TALK_PREPEND
	                                  : TALK_APPEND;
	switch (s->op) {
	case APPEND:
	case REPLACE:
	case PREPEND: rc = talk_append(txn, key, &append, &limits); break;
	case READ: rc = talk_read(txn, key, &limits, &reader); break;
	case DROP: rc = talk_drop(txn, key, &limits); break;
	case SWEEP: rc = talk_sweep(txn, &limits, (unsigned)s->max_bytes, &removed); break;
	}
	sums = talk_sums(txn, &job->sum);
	return rc != STORE_OK ? rc : sums;
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
check_read(const struct step *s, const struct job *job)
{
	static char text[TEXT_MAX];
	struct env_bytes want[TURNS_MAX];
	size_t n = spell(s->turns, text, want), bytes = 0;

	if (n != job->nturns || job->head.turns != n)
		fail_msg("%s: %zu turns, want %zu", s->what, job->nturns, n);
	for (size_t i = 0; i < n; i++) {
		bytes += want[i].n;
		if (want[i].n != job->read[i].n ||
		    memcmp(want[i].p, job->read[i].p, want[i].n) != 0)
			fail_msg("%s: turn %zu of %zu bytes is not the right one of %zu", s->what,
			    i, job->read[i].n, want[i].n);
	}
	assert_int_equal(job->head.bytes, bytes);
	assert_true(memcmp(job->head.key, s->key, strlen(s->key)) == 0);
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
	return txn_walk(txn, shelf_key(KEY_TALK, 1), key_last_of(KEY_TALK_TURN), count_rows, arg);
}

static void
table(void **state)
{
	static char text[TEXT_MAX];
	struct env *env = with_book(*state);
	struct shelf_sum sum = {.rows = 0};
	uint64_t left;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		const struct step *s = &steps[i];
		struct job job = {.step = s, .text = text, .sum = sum};
		enum store_rc rc = env_book_update(env, do_step, &job);

		if (rc != s->rc)
			fail_msg("%s: %d, want %d: %s", s->what, rc, s->rc, env_error(env));
		if (rc == STORE_OK)
			sum = job.sum;
		if (sum.rows != s->rows)
			fail_msg("%s: %llu rows, want %llu", s->what, (unsigned long long)sum.rows,
			    (unsigned long long)s->rows);
		if (s->op == READ && rc == STORE_OK)
			check_read(s, &job);
	}
	assert_int_equal(sum.bytes, 0);
	assert_int_equal(env_book_view(env, count_all, &left), STORE_OK);
	assert_int_equal(left, 0);
	env_close(&env);
}

/* ---- all of them ---- */

#define CROWD 60 /* more than one hash can have */

static const struct talk_limits many = {{T0}, TTL, ALL, ALL};

static enum store_rc
append_number(struct txn *txn, void *arg)
{
	const unsigned *number = arg;
	uint8_t key[TALK_KEY_BYTES] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct env_bytes turn = {number, sizeof *number};
	struct talk_append append = {
	    .client = {"someone", 1 + *number % 7}, .turns = &turn, .nturns = 1};
	struct talk_head head = {.turns = 0};

	memcpy(key + 12, number, sizeof *number);
	if (talk_find(txn, key, &many, &head) == STORE_OK)
		append.had = head.turns;
	return talk_append(txn, key, &append, &many);
}

struct seen {
	unsigned n, numbers[CROWD];
};

static enum store_rc
see(const struct talk_head *head, struct env_bytes client, void *arg)
{
	struct seen *seen = arg;
	unsigned number;

	memcpy(&number, head->key + 12, sizeof number);
	assert_true(seen->n < CROWD);
	assert_int_equal(client.n, 1 + number % 7);
	assert_memory_equal(client.p, "someone", client.n);
	assert_true(head->created_ms == T0 && head->used_ms == T0);
	seen->numbers[seen->n++] = number;
	return STORE_OK;
}

static enum store_rc
walk_in(struct txn *txn, void *arg)
{
	struct seen *seen = arg;

	seen->n = 0;
	return talk_walk(txn, &many, see, seen);
}

/* Keys that fall together are all there, up to what one row takes; the walk is in the order of their use. */
static void
crowd(void **state)
{
	struct env *env = with_book(*state);
	struct seen seen;
	unsigned again = 20;

	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(env_book_update(env, append_number, &i), STORE_OK);
	assert_int_equal(env_book_update(env, append_number, &again), STORE_OK);
	assert_int_equal(env_book_view(env, walk_in, &seen), STORE_OK);
	assert_int_equal(seen.n, 48);
	assert_int_equal(seen.numbers[seen.n - 1], again);
	assert_int_equal(seen.numbers[seen.n - 2], CROWD - 1);
	env_close(&env);
}

struct late {
	int64_t at_ms;
	uint32_t had;
};

static enum store_rc
append_late(struct txn *txn, void *arg)
{
	const struct late *late = arg;
	uint8_t key[TALK_KEY_BYTES] = {1};
	struct env_bytes turn = {"x", 1};
	struct talk_append append = {.turns = &turn, .nturns = 1, .had = late->had};
	struct talk_limits limits = {{T0 + late->at_ms}, TTL, ALL, ALL};

	return talk_append(txn, key, &append, &limits);
}

static enum store_rc
drop_late(struct txn *txn, void *arg)
{
	uint8_t key[TALK_KEY_BYTES] = {1};

	(void)arg;
	return talk_drop(txn, key, &many);
}

/* What it was to be the end of has gone, or is another one: a half of one would be left. */
static void
gone_meanwhile(void **state)
{
	static const struct {
		const char *what;
		bool drops;
		struct late late;
		enum store_rc rc;
	} rows[] = {
	    {"nothing was there", false, {0, 1}, STORE_NONE},
	    {"it begins", false, {0, 0}, STORE_OK},
	    {"another one began it, too", false, {0, 0}, STORE_NONE},
	    {"it goes on", false, {1, 1}, STORE_OK},
	    {"it is shorter than it was", false, {1, 3}, STORE_NONE},
	    {"it has expired", false, {1 + TTL, 2}, STORE_NONE},
	    {"it was dropped", true, {1, 2}, STORE_NONE},
	    {"it begins anew", false, {1, 0}, STORE_OK},
	    {"and is not the one that it was", false, {1, 2}, STORE_NONE},
	};
	struct env *env = with_book(*state);

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct late late = rows[i].late;
		enum store_rc rc;

		if (rows[i].drops)
			assert_int_equal(env_book_update(env, drop_late, NULL), STORE_OK);
		rc = env_book_update(env, append_late, &late);
		if (rc != rows[i].rc)
			fail_msg("%s: %d, want %d", rows[i].what, rc, rows[i].rc);
	}
	env_close(&env);
}

/* Saving `live` leaves them alone, and so does making a new `live`. */
static void
outlives(void **state)
{
	static char text[100];
	struct env *env = with_book(*state);
	struct step put = {"put", APPEND, "a", {{'x', 50}}, 0, ALL, ALL, STORE_OK, 1};
	struct step get = {"get", READ, "a", {{'x', 50}}, 0, ALL, ALL, STORE_OK, 1};
	struct job job = {.step = &put, .text = text};
	struct book_report report;

	assert_int_equal(env_book_update(env, do_step, &job), STORE_OK);
	assert_int_equal(book_save_all(env, &report), STORE_OK);
	env_close(&env);
	env = store_dir_open(*state);
	job.step = &get;
	assert_int_equal(env_book_view(env, do_step, &job), STORE_OK);
	check_read(&get, &job);
	env_close(&env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(table, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(crowd, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(gone_meanwhile, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(outlives, store_dir_setup, store_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
