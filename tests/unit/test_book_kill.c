/*
 * test_book_kill - processes killed at random points, the machine started anew, and what `book` had.
 */
#include "store/book.h"

#include "lib/store_boot.h"
#include "store/journal.h"

#define WORKERS 3
#define ROUNDS 30u

struct shared {
	const struct store_dir *dir;
	volatile uint64_t hard[WORKERS], saved[WORKERS]; /* acknowledged */
	volatile uint64_t sent[WORKERS];                 /* begun */
};

struct worker {
	struct shared *s;
	unsigned number;
};

/* One account per worker, all its rows with the same number. The first two share a shard, which is saved as a whole: there
 * the hot row may be newer than the totals. */
#define ALONE 2u
static struct account_ref
ref_of(unsigned worker)
{
	return (struct account_ref){0, worker * 20};
}

struct step {
	unsigned worker;
	uint64_t n;
	bool hard;
};

static enum store_rc
take_step(struct txn *txn, void *arg)
{
	const struct step *step = arg;
	struct account_ref ref = ref_of(step->worker);
	struct account_row row = {.success = (uint32_t)step->n,
	    .flags = step->hard ? ACCOUNT_DISABLED : 0,
	    .failed_txn = txn_number(txn)};
	struct account_stat stat;
	struct account_note note = {.version = 1};
	enum store_rc rc = account_stat_get(txn, ref, &stat);

	if (rc == STORE_NONE)
		rc = STORE_OK;
	stat.calls = step->n;
	if (step->hard)
		stat.prompt = step->n;
	snprintf(note.reason, sizeof note.reason, "%llu", (unsigned long long)step->n);
	if (rc == STORE_OK)
		rc = account_stat_put(txn, ref, &stat);
	if (rc == STORE_OK)
		rc = account_put(txn, ref, &row);
	if (rc == STORE_OK)
		rc = account_note_put(txn, ref, &note);
	if (rc == STORE_OK && step->hard) {
		struct journal_row event = {.level = JOURNAL_ALERT,
		    .at_ms = (int64_t)step->n,
		    .status = (uint16_t)step->worker};

		rc = journal_add(txn, &event);
	}
	return rc;
}

static int
work(void *arg)
{
	struct worker *w = arg;
	struct env *env = store_dir_open(w->s->dir);
	struct account_ref ref = ref_of(w->number);
	uint64_t n = w->s->sent[w->number];

	if (env == NULL)
		return 1;
	for (;;) {
		struct step step = {w->number, n + 1, (n + 1) % 5 == 0};
		struct book_report report;

		w->s->sent[w->number] = ++n;
		if (env_update(env, take_step, &step) != STORE_OK)
			return 2;
		if (step.hard) {
			if (store_save_now(env, &ref, 1) != STORE_OK)
				return 3;
			w->s->hard[w->number] = n;
		}
		if (n % 32 == 0) {
			if (book_save(env, &report) != STORE_OK)
				return 4;
			w->s->saved[w->number] = n;
		}
	}
}

struct found {
	uint64_t calls[WORKERS], hard[WORKERS], event[WORKERS];
	uint64_t events;
	const char *bad;
};

static bool
add_event(uint64_t sequence, const struct journal_row *row, void *arg)
{
	struct found *found = arg;

	if (sequence != ++found->events)
		found->bad = "a gap in the journal";
	if (row->status < WORKERS)
		found->event[row->status] = (uint64_t)row->at_ms;
	return true;
}

static enum store_rc
read_all(struct txn *txn, void *arg)
{
	struct found *found = arg;

	*found = (struct found){.events = 0};
	for (unsigned i = 0; i < WORKERS; i++) {
		struct account_row row;
		struct account_stat stat;
		struct account_note note;
		enum store_rc rc = account_stat_get(txn, ref_of(i), &stat);

		if (rc == STORE_NONE)
			continue;
		if (account_get(txn, ref_of(i), &row) != STORE_OK ||
		    account_note_get(txn, ref_of(i), &note) != STORE_OK)
			found->bad = "a row is missing";
		else if (strtoull(note.reason, NULL, 10) != stat.calls ||
		         row.success < stat.calls || (i == ALONE && row.success != stat.calls))
			found->bad = "rows of different moments";
		else if (row.failed_txn != 0 && strcmp(env_epoch(txn_env(txn))->aside, "") != 0)
			found->bad = "a number of the old live";
		found->calls[i] = stat.calls;
		found->hard[i] = stat.prompt;
	}
	return journal_walk(txn, 0, add_event, found);
}

static void
check_round(struct shared *s, const struct found *found, bool rebooted, unsigned round)
{
	if (found->bad != NULL)
		fail_msg("round %u: %s", round, found->bad);
	for (unsigned i = 0; i < WORKERS; i++) {
		uint64_t sent = s->sent[i];

		if (found->hard[i] < s->hard[i] || found->event[i] < s->hard[i])
			fail_msg(
			    "round %u worker %u: hard fact %llu acknowledged, found %llu, event %llu",
			    round, i, (unsigned long long)s->hard[i],
			    (unsigned long long)found->hard[i],
			    (unsigned long long)found->event[i]);
		if (found->calls[i] < s->saved[i] || found->calls[i] > sent)
			fail_msg("round %u worker %u: %llu calls, saved %llu, sent %llu", round, i,
			    (unsigned long long)found->calls[i], (unsigned long long)s->saved[i],
			    (unsigned long long)sent);
		/* without a reboot at most the step in hand is lost */
		if (!rebooted && found->calls[i] + 1 < sent)
			fail_msg("round %u worker %u: %llu calls of %llu", round, i,
			    (unsigned long long)found->calls[i], (unsigned long long)sent);
		s->sent[i] = found->calls[i];
		/* after a reboot `live` is what `book` had; else it may be ahead */
		if (rebooted) {
			s->saved[i] = found->calls[i];
			s->hard[i] = found->hard[i];
		}
	}
}

static int
look(void *arg)
{
	struct worker *w = arg;
	struct env *env = store_dir_open(w->s->dir);

	/* leaves without closing: the next round opens what a killed process left */
	return env == NULL || env_view(env, read_all, (struct found *)(w->s + 1)) != STORE_OK;
}

static void
kill_and_reboot(void **state)
{
	struct shared *s = shared_bytes(sizeof *s + sizeof(struct found));
	struct found *found = (struct found *)(s + 1);
	struct worker worker[WORKERS];
	unsigned reboots = 0;
	uint64_t facts = 0;

	s->dir = *state;
	srandom(5);
	for (unsigned round = 0; round < ROUNDS; round++) {
		bool reboot = random() % 4 != 0;
		pid_t pid[WORKERS];

		for (unsigned i = 0; i < WORKERS; i++) {
			worker[i] = (struct worker){s, i};
			pid[i] = child_start(work, &worker[i]);
		}
		for (int i = 0; i < 3000 && s->sent[0] == found->calls[0]; i++)
			nap_ms(1);
		nap_ms(random() % 60);
		/* one first, so that its locks and its half save are found by the others */
		kill(pid[round % WORKERS], SIGKILL);
		nap_ms(random() % 20);
		for (unsigned i = 0; i < WORKERS; i++)
			kill(pid[i], SIGKILL);
		for (unsigned i = 0; i < WORKERS; i++)
			assert_int_equal(child_end(pid[i]), 128 + SIGKILL);
		if (reboot)
			store_reboot(*state);
		reboots += reboot;
		assert_int_equal(child_end(child_start(look, &worker[0])), 0);
		check_round(s, found, reboot, round);
		facts = found->events;
	}
	fprintf(stderr, "%u rounds, %u reboots, %llu hard facts acknowledged or found\n", ROUNDS,
	    reboots, (unsigned long long)facts);
	assert_true(facts > 20);
}

/* ---- a commit that nobody told of ---- */

#define TOLD_AT 48 /* in LMDB's lock file: the newest commit that looks are to see */

static enum store_rc
put_mark(struct txn *txn, void *arg)
{
	return txn_put(txn, key_of(KEY_KEPT, 0, 1), arg, sizeof(unsigned));
}

static enum store_rc
get_mark(struct txn *txn, void *arg)
{
	struct env_bytes row;
	enum store_rc rc = txn_get(txn, key_of(KEY_KEPT, 0, 1), &row);

	if (rc == STORE_OK && row.n == sizeof(unsigned))
		memcpy(arg, row.p, row.n);
	return rc;
}

/* As a process leaves it that is killed behind the commit before this one. */
static enum store_rc
die_untold(struct txn *txn, void *arg)
{
	const struct store_dir *dir = arg;
	int fd = open(store_dir_file(dir, "book/lock.mdb"), O_RDWR);
	uint64_t told;

	if (pread(fd, &told, sizeof told, TOLD_AT) != (ssize_t)sizeof told ||
	    told != txn_number(txn) - 1)
		_exit(9); /* another LMDB keeps it elsewhere */
	told--;
	if (pwrite(fd, &told, sizeof told, TOLD_AT) != (ssize_t)sizeof told)
		_exit(8);
	raise(SIGKILL);
	return STORE_OK;
}

static int
write_and_die(void *arg)
{
	struct env *env = store_dir_open(arg);
	unsigned mark = 2;

	if (env == NULL || env_book_update(env, put_mark, &mark) != STORE_OK)
		return 1;
	return (int)env_book_update(env, die_untold, arg);
}

/* It was committed, so who comes next sees it, whether he looks or changes something. */
static void
untold(void **state)
{
	struct env *env = store_dir_open(*state);
	struct book_report report;
	unsigned mark = 1;

	assert_int_equal(book_save(env, &report), STORE_OK);
	assert_int_equal(env_book_update(env, put_mark, &mark), STORE_OK);
	for (int i = 0; i < 3; i++) {
		mark = 1;
		assert_int_equal(env_book_update(env, put_mark, &mark), STORE_OK);
		assert_int_equal(child_end(child_start(write_and_die, *state)), 128 + SIGKILL);
		mark = 0;
		assert_int_equal(env_book_view(env, get_mark, &mark), STORE_OK);
		assert_int_equal(mark, 2);
	}
	env_close(&env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(kill_and_reboot, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test_setup_teardown(untold, store_dir_setup, store_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
