/*
 * test_talk_kill - processes killed while they append, each to a conversation of its own and all to one that they hold in
 * turn: what was acknowledged is there, and never half an exchange.
 */
#include "store/talk.h"

#include "lib/store_dir.h"
#include "store/book.h"
#include "store/hold.h"

#define WORKERS 3u
#define ROUNDS 20u
#define TALKS (WORKERS + 1) /* the last one is everybody's */
#define LARGE 70000         /* bytes: more than a piece */
#define NOW INT64_C(1700000000000)

static const struct talk_limits limits = {{NOW}, 1000000, 1 << 30, 1 << 30};

struct shared {
	const struct store_dir *dir;
	/* exchanges: the numbers begun, and acknowledged */
	volatile unsigned sent[WORKERS][TALKS], done[WORKERS][TALKS];
};

struct worker {
	struct shared *s;
	unsigned number;
};

/* One turn: who, which exchange, question or answer; and more bytes where it is large. */
struct mark {
	unsigned worker, n, answer;
};

struct exchange {
	unsigned talk;
	struct mark mark;
	uint32_t had; /* turns, before it */
};

static void
key_of_talk(unsigned talk, uint8_t key[TALK_KEY_BYTES])
{
	memset(key, 0, TALK_KEY_BYTES);
	key[0] = (uint8_t)('a' + talk);
}

static enum store_rc
append_in(struct txn *txn, void *arg)
{
	const struct exchange *x = arg;
	static char texts[2][LARGE];
	struct env_bytes turns[2];
	struct talk_append append = {
	    .client = {"c", 1}, .turns = turns, .nturns = 2, .had = x->had};
	uint8_t key[TALK_KEY_BYTES];

	key_of_talk(x->talk, key);
	for (unsigned answer = 0; answer < 2; answer++) {
		struct mark mark = {x->mark.worker, x->mark.n, answer};

		memcpy(texts[answer], &mark, sizeof mark);
		turns[answer].p = texts[answer];
		turns[answer].n = x->mark.n % 8 == answer ? LARGE : sizeof mark;
	}
	return talk_append(txn, key, &append, &limits);
}

/* What it goes on from, as long as it is held. */
static enum store_rc
look_in(struct txn *txn, void *arg)
{
	struct exchange *x = arg;
	struct talk_head head = {.turns = 0};
	uint8_t key[TALK_KEY_BYTES];
	enum store_rc rc;

	key_of_talk(x->talk, key);
	rc = talk_find(txn, key, &limits, &head);
	x->had = rc == STORE_OK ? head.turns : 0;
	return rc == STORE_NONE ? STORE_OK : rc;
}

static enum store_rc
hold_wait(struct env *env, unsigned name, struct hold *hold)
{
	enum store_rc rc;

	while ((rc = hold_take(env, name, hold)) == STORE_BUSY)
		nanosleep(&(struct timespec){0, 100000}, NULL);
	return rc;
}

static int
work(void *arg)
{
	const struct worker *w = arg;
	struct shared *s = w->s;
	struct env *env = store_dir_open(s->dir);

	if (env == NULL)
		return 1;
	for (unsigned i = 0;; i++) {
		unsigned talk = i % 2 == 0 ? w->number : WORKERS;
		unsigned n = s->sent[w->number][talk] + 1;
		struct exchange x = {talk, {w->number, n, 0}, 0};
		struct hold hold;

		if (hold_wait(env, 1000 + 4 * talk, &hold) != STORE_OK)
			return 2;
		s->sent[w->number][talk] = n;
		if (env_book_view(env, look_in, &x) != STORE_OK)
			return 4;
		if (env_book_update(env, append_in, &x) != STORE_OK)
			return 3;
		s->done[w->number][talk] = n;
		hold_release(&hold);
	}
}

struct found {
	unsigned talk;
	char *text;
	struct talk_head head;
	struct mark open; /* the question that waits for its answer */
	bool is_open;
	unsigned last[WORKERS];
	const char *bad;
};

static char *
room(const struct talk_head *head, void *arg)
{
	struct found *f = arg;

	free(f->text);
	f->text = malloc(head->bytes + 1);
	assert_non_null(f->text);
	f->head = *head;
	f->is_open = false;
	f->bad = NULL;
	memset(f->last, 0, sizeof f->last);
	return f->text;
}

static enum store_rc
take_turn(uint32_t place, struct env_bytes turn, void *arg)
{
	struct found *f = arg;
	struct mark mark;

	(void)place;
	memcpy(&mark, turn.p, sizeof mark);
	if (turn.n != (mark.n % 8 == mark.answer ? LARGE : sizeof mark) || mark.worker >= WORKERS)
		f->bad = "a turn is not whole";
	else if (mark.answer != f->is_open)
		f->bad = "a question, or an answer, alone";
	else if (f->is_open && (f->open.worker != mark.worker || f->open.n != mark.n))
		f->bad = "exchanges are mixed";
	else if (!f->is_open && mark.n <= f->last[mark.worker])
		f->bad = "out of order";
	f->is_open = mark.answer == 0;
	f->open = mark;
	if (mark.worker < WORKERS)
		f->last[mark.worker] = mark.n;
	return STORE_OK;
}

static enum store_rc
read_in(struct txn *txn, void *arg)
{
	struct found *f = arg;
	const struct talk_reader reader = {room, take_turn, f};
	uint8_t key[TALK_KEY_BYTES];

	key_of_talk(f->talk, key);
	return talk_read(txn, key, &limits, &reader);
}

/* Numbers of exchanges whose worker was killed may be missing, but none that was acknowledged. */
static void
check_talk(struct env *env, struct shared *s, unsigned talk, unsigned round)
{
	struct found f = {.talk = talk};
	enum store_rc rc = env_book_view(env, read_in, &f);

	if (rc != STORE_OK && rc != STORE_NONE)
		fail_msg("round %u, talk %u: %d %s", round, talk, rc, env_error(env));
	if (f.bad != NULL || f.is_open || f.head.turns % 2 != 0)
		fail_msg("round %u, talk %u: %s", round, talk, f.bad == NULL ? "cut" : f.bad);
	for (unsigned w = 0; w < WORKERS; w++)
		if (f.last[w] < s->done[w][talk] || f.last[w] > s->sent[w][talk])
			fail_msg("round %u, talk %u: worker %u: %u, of %u to %u", round, talk, w,
			    f.last[w], s->done[w][talk], s->sent[w][talk]);
	free(f.text);
}

static unsigned
done_by_all(const struct shared *s)
{
	unsigned n = 0;

	for (unsigned w = 0; w < WORKERS; w++)
		for (unsigned talk = 0; talk < TALKS; talk++)
			n += s->done[w][talk];
	return n;
}

/* On a busy machine nobody may have come to begin; the last one that lives does. */
static void
wait_for_more(const struct shared *s, unsigned n)
{
	unsigned want = done_by_all(s) + n;

	for (int i = 0; i < 5000 && done_by_all(s) < want; i++)
		nap_ms(1);
}

static void
killed(void **state)
{
	struct shared *s = shared_bytes(sizeof *s);
	struct env *env = store_dir_open(*state);
	struct book_report report;
	unsigned random = 1;

	s->dir = *state;
	assert_int_equal(book_save(env, &report), STORE_OK);
	env_close(&env);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct worker workers[WORKERS];
		pid_t pid[WORKERS];

		for (unsigned i = 0; i < WORKERS; i++) {
			workers[i] = (struct worker){s, i};
			pid[i] = child_start(work, &workers[i]);
		}
		for (unsigned i = 0; i < WORKERS; i++) {
			random = random * 1103515245 + 12345;
			wait_for_more(s, (random >> 16) % 4 + (i == 0));
			nap_ms((long)(random >> 20) % 3);
			kill(pid[i], SIGKILL);
		}
		for (unsigned i = 0; i < WORKERS; i++)
			assert_int_equal(child_end(pid[i]), 128 + SIGKILL);
		env = store_dir_open(*state);
		for (unsigned talk = 0; talk < TALKS; talk++)
			check_talk(env, s, talk, round);
		env_close(&env);
	}
	assert_true(done_by_all(s) >= ROUNDS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(killed, store_dir_setup, store_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
