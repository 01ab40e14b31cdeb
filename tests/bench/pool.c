/*
 * pool - what a lease costs: taking it and settling it, without any web server or provider.
 *
 * One line for each size of a channel: a pair hot (this process did the one before), hot with a session and a known
 * price, cold (the first of a new process), and choosing alone (a read transaction that takes nobody). Then 64 processes
 * without think time. Medians in microseconds; the store is in a directory of its own below TMPDIR, else /tmp.
 */
#include "base/clock.h"
#include "bench/measure.h"
#include "lib/conf_text.h"
#include "pick.h"
#include "session.h"
#include "settle.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define STORE_BYTES (UINT64_C(1) << 30)
#define PAIRS 3000
#define COLD_STARTS 15
#define SESSIONS 500
#define MANY 64
#define MANY_MS 2000

struct bench {
	char dir[128];
	struct conf *conf;
	struct env *env;
	struct slot *slot;
	struct pool *pool;
	uint64_t random;
};

struct shared {
	volatile int go, ready;
	double first_us[COLD_STARTS];
	unsigned pairs[MANY];
	double longest_us[MANY];
};

static void
attach(struct bench *b)
{
	struct store_why store_why = {""};
	struct why why = {""};

	if (env_open(b->dir, STORE_BYTES, true, &b->env, &store_why) != STORE_OK ||
	    slot_open(b->env, &b->slot, &store_why) != STORE_OK)
		die("store: %s", store_why.text);
	if (pool_open(b->env, b->conf, true, &b->pool, &why) != ERR_OK)
		die("pool: %s", why.text);
}

static void
detach(struct bench *b)
{
	pool_free(&b->pool);
	slot_close(&b->slot);
	env_close(&b->env);
}

static struct pick_wish
wish_of(struct bench *b, const uint8_t *session)
{
	b->random = b->random * 6364136223846793005U + 1442695040888963407U;
	return (struct pick_wish){.pool = b->pool,
	    .model = "m",
	    .realm = SPAN(""),
	    .insist = PICK_ANY,
	    .random = b->random,
	    .session = session};
}

static void
settle(struct bench *b, struct pick_lease *lease, struct settle_session *session)
{
	static const struct classify_finding ok = {.verdict = VERDICT_OK, .status = 200};
	static const struct dialect_usage usage = {.seen = true,
	    .prompt = 900,
	    .completion = 300,
	    .cached = 0,
	    .cache_write = -1,
	    .reasoning = -1,
	    .total = 1200,
	    .has_credit = true,
	    .credit_micros = 1500};
	struct settle_outcome outcome = {.finding = &ok,
	    .usage = &usage,
	    .model = "m",
	    .client = "c",
	    .latency_ms = 900,
	    .first_content_ms = 300,
	    .sent = true,
	    .target = true,
	    .estimated = 850,
	    .session = session};
	struct settle_report report;
	struct why why = {""};

	if (settle_lease(b->env, b->slot, b->pool, lease, &outcome, clock_wall(), &report, &why) !=
	    ERR_OK)
		die("settle: %s", why.text);
}

/* One lease taken and settled; how long it took. */
static double
pair(struct bench *b, const uint8_t *key)
{
	struct pick_wish wish = wish_of(b, key);
	struct settle_session session = {.key = key};
	struct pick_reason reason;
	struct pick_lease lease;
	struct why why = {""};
	double begun = measure_us(CLOCK_MONOTONIC);

	if (pick_take(b->env, b->slot, &wish, clock_wall(), &lease, &reason, &why) != ERR_OK)
		die("pick: %s", why.text);
	if (!lease.taken)
		die("nobody was picked: %d", (int)reason.result);
	session.found = reason.session;
	settle(b, &lease, key == NULL ? NULL : &session);
	return measure_us(CLOCK_MONOTONIC) - begun;
}

static enum store_rc
look(struct txn *txn, void *arg)
{
	struct bench *b = arg;
	struct pick_wish wish = wish_of(b, NULL);
	struct pick_reason reason;

	return pick_look(txn, b->slot, &wish, clock_wall(), &reason);
}

static double
hot(struct bench *b, bool sessions)
{
	static double us[PAIRS];
	uint8_t key[SESSION_HASH_BYTES] = {0};

	for (unsigned i = 0; i < PAIRS / 10 + (sessions ? SESSIONS : 0); i++) {
		memcpy(key, &(unsigned){i % SESSIONS}, sizeof(unsigned));
		(void)pair(b, sessions ? key : NULL);
	}
	for (unsigned i = 0; i < PAIRS; i++) {
		memcpy(key, &(unsigned){i * 7 % SESSIONS}, sizeof(unsigned));
		us[i] = pair(b, sessions ? key : NULL);
	}
	return measure_median(us, PAIRS);
}

static double
choosing(struct bench *b)
{
	static double us[PAIRS];

	for (unsigned i = 0; i < PAIRS; i++) {
		double begun = measure_us(CLOCK_MONOTONIC);

		if (env_view(b->env, look, b) != STORE_OK)
			die("look: %s", env_error(b->env));
		us[i] = measure_us(CLOCK_MONOTONIC) - begun;
	}
	return measure_median(us, PAIRS);
}

/* The first pair of a process that has just opened the store. */
static double
cold(struct bench *b, struct shared *shared)
{
	for (unsigned i = 0; i < COLD_STARTS; i++) {
		pid_t pid = fork();
		int status;

		if (pid < 0)
			die("fork failed");
		if (pid == 0) {
			uint8_t key[SESSION_HASH_BYTES] = {1};

			alarm(30);
			attach(b);
			shared->first_us[i] = pair(b, key);
			detach(b);
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status != 0)
			die("a process failed");
	}
	return measure_median(shared->first_us, COLD_STARTS);
}

static int
one_of_many(struct bench *b, struct shared *shared, unsigned number)
{
	uint8_t key[SESSION_HASH_BYTES] = {0};
	double end;

	alarm(60);
	attach(b);
	b->random = number + 1;
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!shared->go)
		usleep(1000);
	for (end = measure_us(CLOCK_MONOTONIC) + MANY_MS * 1e3; measure_us(CLOCK_MONOTONIC) < end;
	     shared->pairs[number]++) {
		double us;

		memcpy(key, &(unsigned){shared->pairs[number] % SESSIONS}, sizeof(unsigned));
		us = pair(b, key);
		if (us > shared->longest_us[number])
			shared->longest_us[number] = us;
	}
	detach(b);
	return 0;
}

static void
many(struct bench *b, struct shared *shared)
{
	unsigned least = UINT_MAX, most = 0, sum = 0;
	double longest = 0;
	pid_t pids[MANY];
	int status;

	for (unsigned i = 0; i < MANY; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork failed");
		if (pids[i] == 0)
			_exit(one_of_many(b, shared, i));
	}
	while (shared->ready < MANY)
		usleep(1000);
	shared->go = 1;
	for (unsigned i = 0; i < MANY; i++) {
		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			die("a process failed");
		sum += shared->pairs[i];
		least = shared->pairs[i] < least ? shared->pairs[i] : least;
		most = shared->pairs[i] > most ? shared->pairs[i] : most;
		if (shared->longest_us[i] > longest)
			longest = shared->longest_us[i];
	}
	printf("%d processes, 100 accounts, with sessions: %.0f pairs/s, longest pair %.1f ms, "
	       "slowest/fastest %.2f\n",
	    MANY, sum * 1e3 / MANY_MS, longest / 1e3, (double)least / most);
}

static char *
configuration(const char *dir, unsigned accounts)
{
	size_t cap = 512 + (size_t)accounts * 64, n;
	char *text = malloc(cap);

	if (text == NULL)
		die("no memory");
	n = (size_t)snprintf(text, cap,
	    "{'state_dir': '%s', 'pool': {'max_in_flight': 0, 'min_pick_gap': '0s'}, 'channels': "
	    "{'c': {'provider': 'openai', 'accounts': [",
	    dir);
	for (unsigned i = 0; i < accounts; i++)
		n += (size_t)snprintf(text + n, cap - n, "%s{'id': 'a%u', 'api_key': 'key-%u'}",
		    i == 0 ? "" : ", ", i, i);
	snprintf(text + n, cap - n, "]}}}");
	return text;
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static void
measure(unsigned accounts, struct shared *shared)
{
	const char *tmp = getenv("TMPDIR");
	struct bench b = {.random = 1};
	char *text;
	double plain, bound, first, alone;

	snprintf(b.dir, sizeof b.dir, "%s/sluice-bench-XXXXXX", tmp == NULL ? "/tmp" : tmp);
	if (mkdtemp(b.dir) == NULL)
		die("no temporary directory");
	text = configuration(b.dir, accounts);
	b.conf = conf_text(b.dir, text);
	free(text);
	attach(&b);
	plain = hot(&b, false);
	bound = hot(&b, true);
	alone = choosing(&b);
	detach(&b);
	first = cold(&b, shared);
	printf("%8u %10.1f %14.1f %10.1f %12.1f\n", accounts, plain, bound, first, alone);
	if (accounts == 100)
		many(&b, shared);
	fflush(stdout);
	conf_free(&b.conf);
	nftw(b.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int
main(void)
{
	static const unsigned sizes[] = {10, 100, 1000, 10000};
	struct shared *shared =
	    mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		die("no memory");
	printf("== a lease taken and settled, us (median)\n%8s %10s %14s %10s %12s\n", "accounts",
	    "hot", "hot, session", "cold", "choose only");
	for (size_t i = 0; i < NELEM(sizes); i++)
		measure(sizes[i], shared);
	return 0;
}
