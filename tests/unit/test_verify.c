#include "store/verify.h"

#include "lib/store_boot.h"
#include "store/seal.h"

#include <lmdb.h>

#define FLIPS 300

struct copy {
	unsigned char *bytes;
	size_t n;
};

static bool
sealed(uint64_t key, const void *row, size_t n, void *arg)
{
	(void)arg;
	return seal_holds(key, row, n);
}

static enum store_rc
verify_path(const char *path, bool seals, struct store_why *why)
{
	int fd = open(path, O_RDONLY);
	enum store_rc rc;

	assert_true(fd >= 0);
	rc = verify_file(fd, "book", seals ? sealed : NULL, NULL, why);
	close(fd);
	return rc;
}

/* ---- no false alarm ---- */

struct churn {
	unsigned n;
	size_t most;
};

static enum store_rc
churn(struct txn *txn, void *arg)
{
	static char bytes[20000];
	const struct churn *c = arg;
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < c->n && rc == STORE_OK; i++) {
		uint64_t key = key_of(KEY_STAT, 0, (uint64_t)random() % 4000);

		bytes[0] = (char)random();
		rc = random() % 3 == 0 ? txn_del(txn, key)
		                       : txn_put(txn, key, bytes, 1 + (size_t)random() % c->most);
	}
	return rc;
}

static void
sound_files_pass(void **state)
{
	static const struct churn kinds[] = {
	    {1, 100}, {50, 200}, {300, 2000}, {40, 20000}, {900, 64}};
	const struct store_dir *dir = *state;
	struct env *env = store_dir_open(dir);

	srandom(3);
	for (unsigned i = 0; i < 220; i++) {
		struct churn c = kinds[i % 5];
		struct store_why why = {""};

		assert_int_equal(env_update(env, churn, &c), STORE_OK);
		if (verify_path(store_dir_file(dir, "live/data.mdb"), false, &why) != STORE_OK)
			fail_msg("round %u: live: %s", i, why.text);
		if (i % 10 != 0)
			continue;
		assert_int_equal(store_save(env), STORE_OK);
		if (verify_path(store_dir_file(dir, "book/data.mdb"), true, &why) != STORE_OK)
			fail_msg("round %u: book: %s", i, why.text);
	}
	env_close(&env);
}

/* ---- damage ---- */

static struct copy
file_load(const char *path)
{
	struct stat st;
	struct copy copy;
	int fd = open(path, O_RDONLY);

	assert_int_equal(fstat(fd, &st), 0);
	copy.n = (size_t)st.st_size;
	copy.bytes = malloc(copy.n);
	assert_int_equal(read(fd, copy.bytes, copy.n), (ssize_t)copy.n);
	close(fd);
	return copy;
}

/* The sum over all rows as LMDB shows them; 0 when it refuses. */
static uint64_t
lmdb_sum(MDB_env *mdb)
{
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val k, v;
	uint64_t sum = 1;

	if (mdb_txn_begin(mdb, NULL, MDB_RDONLY, &txn) != 0)
		return 0;
	if (mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &dbi) != 0 ||
	    mdb_cursor_open(txn, dbi, &cursor) != 0)
		return 0;
	while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0) {
		uint64_t key;

		memcpy(&key, k.mv_data, sizeof key);
		sum = sum * 31 + seal_of(key, v.mv_data, v.mv_size);
	}
	mdb_cursor_close(cursor);
	mdb_txn_abort(txn);
	return sum;
}

static bool
lmdb_write(MDB_env *mdb)
{
	for (uint64_t round = 0; round < 4; round++) {
		MDB_txn *txn;
		MDB_dbi dbi;

		if (mdb_txn_begin(mdb, NULL, 0, &txn) != 0)
			return false;
		if (mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &dbi) != 0)
			return false;
		for (uint64_t i = 0; i < 300; i++) {
			uint64_t key = key_of(KEY_TALLY, 0, i), row[20] = {round};
			MDB_val k = {sizeof key, &key}, v = {sizeof row, row};

			if (mdb_put(txn, dbi, &k, &v, 0) != 0)
				return false;
		}
		if (mdb_txn_commit(txn) != 0)
			return false;
	}
	return true;
}

struct use {
	const char *path;
	uint64_t sum;
};

/* What was called sound: everything is there, and writing to it keeps it sound. */
static int
use_file(void *arg)
{
	const struct use *use = arg;
	struct store_why why;
	MDB_env *mdb;
	int rc = 1;

	signal(SIGABRT, SIG_DFL);
	if (mdb_env_create(&mdb) != 0 || mdb_env_set_mapsize(mdb, 64 * MIB) != 0 ||
	    mdb_env_open(mdb, use->path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0600) != 0)
		return 1;
	if (lmdb_sum(mdb) == use->sum)
		rc = lmdb_write(mdb) ? 0 : 2;
	mdb_env_close(mdb);
	if (rc == 0 && verify_path(use->path, false, &why) != STORE_OK)
		return 3;
	return rc;
}

struct score {
	unsigned found, harmless, wrong;
};

static void
file_put(const char *path, const struct copy *copy, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, copy->bytes, n), (ssize_t)n);
	close(fd);
}

/* True: it was called sound, and used. */
static bool
judge(const char *path, bool seals, uint64_t sum, const char *what, struct score *score)
{
	struct store_why why = {""};
	struct use use = {path, sum};
	int end;

	if (verify_path(path, seals, &why) != STORE_OK) {
		assert_string_not_equal(why.text, "");
		score->found++;
		return false;
	}
	end = child_end(child_start(use_file, &use));
	score->harmless += end == 0;
	score->wrong += end != 0;
	if (end != 0 && seals)
		fail_msg("%s: called sound, then ended with %d", what, end);
	return true;
}

static void
flip_bits(const struct store_dir *dir, const char *name, bool seals, struct score *score)
{
	struct copy copy = file_load(store_dir_file(dir, name));
	char path[128], what[64];
	uint64_t sum;
	MDB_env *mdb;

	snprintf(path, sizeof path, "%s", store_dir_file(dir, "copy"));
	file_put(path, &copy, copy.n);
	assert_int_equal(mdb_env_create(&mdb), 0);
	assert_int_equal(mdb_env_open(mdb, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_RDONLY, 0600), 0);
	sum = lmdb_sum(mdb);
	mdb_env_close(mdb);
	assert_true(sum != 0);
	for (unsigned i = 0; i < FLIPS; i++) {
		/* half of them into heads of pages, where it hurts */
		size_t at = i % 2 == 0 ? (size_t)random() % copy.n
		                       : ((size_t)random() % (copy.n / 4096)) * 4096 +
		                             (size_t)random() % 160;
		unsigned char bits;

		bits = i % 8 == 0 ? (unsigned char)random() : (unsigned char)(1u << random() % 8);
		snprintf(what, sizeof what, "%s byte %zu: %u ^ %u", name, at, copy.bytes[at], bits);
		store_dir_flip(dir, "copy", (off_t)at, bits);
		if (judge(path, seals, sum, what, score))
			file_put(path, &copy, copy.n); /* it was written to */
		else
			store_dir_flip(dir, "copy", (off_t)at, bits);
	}
	free(copy.bytes);
}

/* A store with deep trees, rows in pages of their own, and free pages. */
static void
fill(const struct store_dir *dir)
{
	struct env *env = store_dir_open(dir);
	struct churn c = {300, 300};

	srandom(11);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(env_update(env, churn, &c), STORE_OK);
		assert_int_equal(store_save(env), STORE_OK);
	}
	c = (struct churn){30, 20000};
	assert_int_equal(env_update(env, churn, &c), STORE_OK);
	env_close(&env);
}

static void
no_damage_passes(void **state)
{
	struct score book = {0, 0, 0}, live = {0, 0, 0};

	fill(*state);
	flip_bits(*state, "book/data.mdb", true, &book);
	flip_bits(*state, "live/data.mdb", false, &live);
	print_message(
	    "%d damaged bytes each: book %u found, %u harmless; live (no seals) %u found, "
	    "%u harmless, %u not seen\n",
	    FLIPS, book.found, book.harmless, live.found, live.harmless, live.wrong);
	assert_int_equal(book.wrong, 0);
	assert_true(book.found > 30 && live.found > 3);
}

/* The free pages that LMDB would hand out, by number. */
static void
free_pages(const char *path, bool *is_free, size_t cap, struct copy *list_out)
{
	MDB_env *mdb;
	MDB_txn *txn;
	MDB_cursor *cursor;
	MDB_val k, v;

	assert_int_equal(mdb_env_create(&mdb), 0);
	assert_int_equal(mdb_env_open(mdb, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_RDONLY, 0600), 0);
	assert_int_equal(mdb_txn_begin(mdb, NULL, MDB_RDONLY, &txn), 0);
	assert_int_equal(mdb_cursor_open(txn, 0, &cursor), 0);
	while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0) {
		uint64_t word[600];
		size_t n = v.mv_size < sizeof word ? v.mv_size : sizeof word;

		memcpy(word, v.mv_data, n);
		for (size_t i = 1; i <= word[0] && i < n / 8; i++)
			is_free[word[i] < cap ? word[i] : 0] = true;
		if (list_out->bytes == NULL && word[0] > 2) {
			list_out->n = (word[0] + 1) * 8;
			list_out->bytes = malloc(list_out->n);
			memcpy(list_out->bytes, word, list_out->n);
		}
	}
	mdb_cursor_close(cursor);
	mdb_txn_abort(txn);
	mdb_env_close(mdb);
}

/* A page in use that is called free would be overwritten by a later write. */
static void
no_page_is_used_and_free(void **state)
{
	bool is_free[4096] = {false};
	struct copy list = {NULL, 0}, file;
	struct store_why why = {""};
	unsigned char *at;
	uint64_t lowest;
	char path[128];

	fill(*state);
	snprintf(path, sizeof path, "%s", store_dir_file(*state, "book/data.mdb"));
	free_pages(path, is_free, 4096, &list);
	assert_non_null(list.bytes);
	memcpy(&lowest, list.bytes + list.n - 8, 8);
	for (lowest--; lowest > 2 && is_free[lowest]; lowest--)
		;
	assert_true(lowest > 2);
	file = file_load(path);
	at = memmem(file.bytes, file.n, list.bytes, list.n);
	for (; at != NULL; at = memmem(at, file.n - (size_t)(at - file.bytes), list.bytes, list.n))
		memcpy(at + list.n - 8, &lowest, 8);
	file_put(path, &file, file.n);
	assert_int_equal(verify_path(path, true, &why), STORE_BAD);
	assert_non_null(strstr(why.text, "in use and free"));
	free(list.bytes);
	free(file.bytes);
}

static void
no_cut_passes(void **state)
{
	struct score score = {0, 0, 0};
	char path[128];
	struct copy copy;

	fill(*state);
	copy = file_load(store_dir_file(*state, "book/data.mdb"));
	snprintf(path, sizeof path, "%s", store_dir_file(*state, "copy"));
	for (size_t n = 0; n < copy.n; n += n < 3 * 4096 ? 1000 : 3 * 4096 + 8) {
		struct store_why why;

		file_put(path, &copy, n);
		if (verify_path(path, true, &why) == STORE_BAD)
			score.found++;
		else
			score.harmless++; /* only slack is missing */
	}
	assert_true(score.found > 10);
	free(copy.bytes);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_DIR(sound_files_pass),
	    WITH_DIR(no_damage_passes),
	    WITH_DIR(no_page_is_used_and_free),
	    WITH_DIR(no_cut_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
