#include "store/quota.h"

#include "lib/store_dir.h"

#define NELEM(a) (sizeof(a) / sizeof *(a))
#define MINUTE 29500000
#define DAY 20486

static const struct quota_time now = {MINUTE, DAY};

static void
fits(void **state)
{
	static const struct {
		const char *what;
		struct quota_limits limits;
		struct quota_row row;
		uint64_t tokens;
		enum quota_limit hit;
		enum quota_frees frees;
	} rows[] = {
	    {"no limit", {0}, {.minute_requests = UINT32_MAX, .total_tokens = UINT64_MAX},
	        UINT64_MAX, QUOTA_FITS, QUOTA_NOW},
	    {"all unused", {100, 1, 1, 100, 100}, {0}, 100, QUOTA_FITS, QUOTA_NOW},
	    {"just", {.tpm = 100}, {.minute_tokens = 60}, 40, QUOTA_FITS, QUOTA_NOW},
	    {"just not", {.tpm = 100}, {.minute_tokens = 60}, 41, QUOTA_TPM, QUOTA_NEXT_MINUTE},
	    {"rpm", {.rpm = 3}, {.minute_requests = 2}, 99, QUOTA_FITS, QUOTA_NOW},
	    {"rpm reached", {.rpm = 3}, {.minute_requests = 3}, 0, QUOTA_RPM, QUOTA_NEXT_MINUTE},
	    {"rpd reached", {.rpd = 3}, {.day_requests = 3}, 0, QUOTA_RPD, QUOTA_NEXT_DAY},
	    {"tpd reached", {.tpd = 30}, {.day_tokens = 30}, 1, QUOTA_TPD, QUOTA_NEXT_DAY},
	    {"total", {.total_tokens = 30}, {.total_tokens = 30}, 1, QUOTA_TOTAL, QUOTA_NEVER},
	    {"used up, nothing wanted", {.tpm = 30}, {.minute_tokens = 30}, 0, QUOTA_TPM,
	        QUOTA_NEXT_MINUTE},
	    {"one left, nothing wanted", {.tpm = 30}, {.minute_tokens = 29}, 0, QUOTA_FITS,
	        QUOTA_NOW},
	    {"over the limit", {.tpm = 30}, {.minute_tokens = 300}, 1, QUOTA_TPM,
	        QUOTA_NEXT_MINUTE},
	    {"no overflow", {.tpm = 30}, {.minute_tokens = UINT64_MAX}, UINT64_MAX, QUOTA_TPM,
	        QUOTA_NEVER},
	    {"the request alone is too large", {.tpm = 30, .tpd = 1000}, {0}, 31, QUOTA_TPM,
	        QUOTA_NEVER},
	    {"the longest wait is told", {.rpm = 1, .rpd = 2},
	        {.minute_requests = 1, .day_requests = 2}, 1, QUOTA_RPD, QUOTA_NEXT_DAY},
	    {"and the worst", {.total_tokens = 5, .rpm = 1, .tpd = 9},
	        {.minute_requests = 1, .day_tokens = 9, .total_tokens = 5}, 1, QUOTA_TOTAL,
	        QUOTA_NEVER},
	    {"of equal waits the later limit", {.rpd = 2, .tpd = 9},
	        {.day_requests = 2, .day_tokens = 9}, 1, QUOTA_TPD, QUOTA_NEXT_DAY},
	    {"minute over", {.rpm = 3, .tpm = 9},
	        {.minute = MINUTE - 1, .minute_requests = 3, .minute_tokens = 9}, 9, QUOTA_FITS,
	        QUOTA_NOW},
	    {"day over", {.rpd = 3, .tpd = 9}, {.day = DAY - 1, .day_requests = 3, .day_tokens = 9},
	        9, QUOTA_FITS, QUOTA_NOW},
	    {"the day goes on in the next minute", {.tpd = 9},
	        {.minute = MINUTE - 1, .day_tokens = 9}, 9, QUOTA_TPD, QUOTA_NEXT_DAY},
	    {"the total goes on in the next day", {.total_tokens = 9},
	        {.day = DAY - 1, .total_tokens = 9}, 9, QUOTA_TOTAL, QUOTA_NEVER},
	    {"a clock slightly behind", {.rpm = 3}, {.minute = MINUTE + 1, .minute_requests = 3}, 1,
	        QUOTA_RPM, QUOTA_NEXT_MINUTE},
	    {"a row from a wrong clock", {.rpm = 3}, {.minute = MINUTE + 2, .minute_requests = 3},
	        1, QUOTA_FITS, QUOTA_NOW},
	    {"a day slightly behind", {.rpd = 3}, {.day = DAY + 1, .day_requests = 3}, 1, QUOTA_RPD,
	        QUOTA_NEXT_DAY},
	    {"a day from a wrong clock", {.rpd = 3}, {.day = DAY + 2, .day_requests = 3}, 1,
	        QUOTA_FITS, QUOTA_NOW},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct quota_row row = rows[i].row;
		struct quota_fit fit;

		row.minute = row.minute ? row.minute : MINUTE;
		row.day = row.day ? row.day : DAY;
		fit = quota_fits(&row, &rows[i].limits, rows[i].tokens, now);
		if (fit.hit != rows[i].hit || fit.frees != rows[i].frees)
			fail_msg("%s: got limit %d, frees %d, want %d, %d", rows[i].what,
			    (int)fit.hit, (int)fit.frees, (int)rows[i].hit, (int)rows[i].frees);
	}
}

static void
used(void **state)
{
	struct quota_row row = {.minute = MINUTE,
	    .day = DAY,
	    .minute_requests = 2,
	    .day_requests = 3,
	    .minute_tokens = 40,
	    .day_tokens = 50,
	    .total_tokens = UINT64_MAX};
	const struct quota_row as_it_was = row;
	struct quota_limits got = quota_used(&row, now);

	(void)state;
	assert_int_equal(got.rpm, 2);
	assert_int_equal(got.rpd, 3);
	assert_int_equal(got.tpm, 40);
	assert_int_equal(got.tpd, 50);
	assert_true(got.total_tokens == INT64_MAX);
	got = quota_used(&row, (struct quota_time){MINUTE + 1, DAY});
	assert_int_equal(got.rpm, 0);
	assert_int_equal(got.tpm, 0);
	assert_int_equal(got.rpd, 3);
	got = quota_used(&row, (struct quota_time){MINUTE + 1440, DAY + 1});
	assert_int_equal(got.rpd, 0);
	assert_int_equal(got.tpd, 0);
	assert_memory_equal(&row, &as_it_was, sizeof row); /* looking begins no window */
}

/* One request of 100 reserved tokens among others, settled later: what the row then says. */
static void
settling(void **state)
{
	static const struct {
		const char *what;
		uint64_t tokens;
		bool sent;
		uint32_t minutes, days; /* later */
		uint64_t minute_tokens, day_tokens, total_tokens;
		uint32_t minute_requests, day_requests;
	} rows[] = {
	    {"exact", 100, true, 0, 0, 150, 150, 150, 2, 2},
	    {"less", 30, true, 0, 0, 80, 80, 80, 2, 2},
	    {"more", 130, true, 0, 0, 180, 180, 180, 2, 2},
	    {"given back by the dead", 0, true, 0, 0, 50, 50, 50, 2, 2},
	    {"never sent", 0, false, 0, 0, 50, 50, 50, 1, 1},
	    {"less, next minute", 30, true, 1, 0, 0, 80, 80, 0, 2},
	    {"more, next minute", 130, true, 1, 0, 30, 180, 180, 0, 2},
	    {"never sent, next minute", 0, false, 1, 0, 0, 50, 50, 0, 1},
	    {"less, next day", 30, true, 600, 1, 0, 0, 80, 0, 0},
	    {"more, next day", 130, true, 600, 1, 30, 30, 180, 0, 0},
	    {"never sent, next day", 0, false, 600, 1, 0, 0, 50, 0, 0},
	    {"largest", UINT64_MAX, true, 0, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX, 2, 2},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct quota_time later = {MINUTE + rows[i].minutes, DAY + rows[i].days};
		struct quota_row row = {0};
		struct quota_hold hold, other;

		quota_reserve(&row, 50, now, &other);
		quota_reserve(&row, 100, now, &hold);
		assert_true(row.minute_tokens == 150 && row.day_tokens == 150);
		assert_true(row.total_tokens == 150 && row.minute_requests == 2);
		quota_settle(&row, &hold, rows[i].tokens, rows[i].sent, later);
		if (row.minute_tokens != rows[i].minute_tokens ||
		    row.day_tokens != rows[i].day_tokens ||
		    row.total_tokens != rows[i].total_tokens ||
		    row.minute_requests != rows[i].minute_requests ||
		    row.day_requests != rows[i].day_requests)
			fail_msg("%s: got tokens %llu %llu %llu, requests %u %u", rows[i].what,
			    (unsigned long long)row.minute_tokens,
			    (unsigned long long)row.day_tokens,
			    (unsigned long long)row.total_tokens, row.minute_requests,
			    row.day_requests);
	}
}

/* What was reserved in a row that is gone takes nothing below zero. */
static void
settling_a_stranger(void **state)
{
	struct quota_row row = {.minute = MINUTE, .day = DAY};
	struct quota_hold hold = {now, 100};

	(void)state;
	quota_settle(&row, &hold, 30, false, now);
	assert_true(row.minute_tokens == 0 && row.day_tokens == 0 && row.total_tokens == 0);
	assert_int_equal(row.minute_requests + row.day_requests, 0);
}

static void
shares(void **state)
{
	static const struct {
		const char *what;
		struct quota_limits limits;
		struct quota_row row;
		unsigned permille;
		struct quota_limits left;
	} rows[] = {
	    {"no limits", {0}, {.total_tokens = 5}, 0, {-1, -1, -1, -1, -1}},
	    {"unused", {1, 2, 3, 4, 5}, {0}, 0, {1, 2, 3, 4, 5}},
	    {"the largest counts", {.rpm = 10, .tpd = 1000},
	        {.minute_requests = 4, .day_tokens = 250}, 400, {-1, 6, -1, -1, 750}},
	    {"not rounded up", {.tpm = 10000}, {.minute_tokens = 8999}, 899,
	        {-1, -1, -1, 1001, -1}},
	    {"used up", {.rpd = 7}, {.day_requests = 7}, 1000, {-1, -1, 0, -1, -1}},
	    {"more than all", {.total_tokens = 7}, {.total_tokens = UINT64_MAX}, 1000,
	        {0, -1, -1, -1, -1}},
	    {"last minute", {.rpm = 7}, {.minute = MINUTE - 1, .minute_requests = 7}, 0,
	        {-1, 7, -1, -1, -1}},
	    {"a limit beyond all", {.tpm = INT64_MAX}, {.minute_tokens = INT64_MAX / 2 + 1}, 500,
	        {-1, -1, -1, INT64_MAX / 2, -1}},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct quota_row row = rows[i].row;
		struct quota_limits left;
		unsigned permille;

		row.minute = row.minute ? row.minute : MINUTE;
		row.day = DAY;
		permille = quota_used_permille(&row, &rows[i].limits, now);
		left = quota_left(&row, &rows[i].limits, now);
		if (permille != rows[i].permille || memcmp(&left, &rows[i].left, sizeof left) != 0)
			fail_msg("%s: got %u, left %lld %lld %lld %lld %lld", rows[i].what,
			    permille, (long long)left.total_tokens, (long long)left.rpm,
			    (long long)left.rpd, (long long)left.tpm, (long long)left.tpd);
		assert_int_equal(quota_is_set(&rows[i].limits), i > 0);
	}
}

/* One account: limits 10 requests a minute, 100 tokens a day, and a total. */
static void
crossing(void **state)
{
	static const struct {
		const char *what;
		uint32_t minutes, days; /* since the row before */
		unsigned requests;
		uint64_t tokens; /* each */
		int64_t total;
		unsigned crossed;
	} rows[] = {
	    {"below", 0, 0, 8, 1, 1000, 0},
	    {"90 % of the minute's requests", 0, 0, 1, 1, 1000, QUOTA_MINUTE},
	    {"once", 0, 0, 1, 1, 1000, 0},
	    {"next minute: below again", 1, 0, 1, 79, 1000, 0},
	    {"90 % of the day's tokens", 0, 0, 1, 1, 1000, QUOTA_DAY},
	    {"once a day", 1, 0, 1, 1, 1000, 0},
	    {"both of the next day", 60, 1, 9, 10, 1000, QUOTA_MINUTE | QUOTA_DAY},
	    {"the total as well", 1, 0, 1, 719, 1000, QUOTA_LIFE},
	    {"once", 60, 1, 1, 1, 1000, 0},
	    {"raised and reached again", 1, 0, 1, 5, 2000, 0},
	    {"", 60, 1, 1, 905, 2000, QUOTA_DAY | QUOTA_LIFE},
	};
	struct quota_row row = {0};
	struct quota_time at = now;

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct quota_limits limits = {.total_tokens = rows[i].total, .rpm = 10, .tpd = 100};
		unsigned crossed = 0;

		at.minute += rows[i].minutes;
		at.day += rows[i].days;
		for (unsigned j = 0; j < rows[i].requests; j++) {
			struct quota_hold hold;

			quota_reserve(&row, rows[i].tokens, at, &hold);
			crossed |= quota_crossed(&row, &limits, at);
		}
		if (crossed != rows[i].crossed)
			fail_msg(
			    "%zu %s: got %u, want %u", i, rows[i].what, crossed, rows[i].crossed);
		assert_int_equal(quota_crossed(&row, &limits, at), 0);
	}
}

static uint64_t random_state;

static uint64_t
next_random(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 11) % below;
}

#define HOLDERS 8
#define DAY_MINUTES 7
#define MINUTES 4000

/* What has been used, counted apart from the row. */
struct book {
	uint64_t minute_tokens[MINUTES], minute_requests[MINUTES];
	uint64_t day_tokens[MINUTES], day_requests[MINUTES];
	uint64_t total;
};

struct holder {
	bool busy;
	uint32_t minute; /* of the reservation */
	struct quota_hold hold;
};

static void
book_settle(struct book *book, const struct holder *h, uint64_t real, bool sent, uint32_t minute)
{
	uint32_t day = minute / DAY_MINUTES, then = h->minute / DAY_MINUTES;

	book->total += real - h->hold.tokens;
	if (minute == h->minute) {
		book->minute_tokens[minute] += real - h->hold.tokens;
		book->minute_requests[minute] -= !sent;
	}
	if (day == then) {
		book->day_tokens[day] += real - h->hold.tokens;
		book->day_requests[day] -= !sent;
	}
}

static void
check_book(const struct book *book, const struct quota_row *row, const struct quota_limits *limits,
    uint32_t minute)
{
	uint32_t day = minute / DAY_MINUTES;

	assert_true(row->minute == MINUTE + minute && row->day == DAY + day);
	assert_true(row->minute_tokens == book->minute_tokens[minute]);
	assert_true(row->minute_requests == book->minute_requests[minute]);
	assert_true(row->day_tokens == book->day_tokens[day]);
	assert_true(row->day_requests == book->day_requests[day]);
	assert_true(row->total_tokens == book->total);
	assert_true(book->minute_tokens[minute] <= (uint64_t)limits->tpm);
	assert_true(book->minute_requests[minute] <= (uint64_t)limits->rpm);
	assert_true(book->day_tokens[day] <= (uint64_t)limits->tpd);
	assert_true(book->day_requests[day] <= (uint64_t)limits->rpd);
	assert_true(book->total <= (uint64_t)limits->total_tokens);
}

/* Estimates that hold (real use at most what was reserved), clocks that lag a minute, workers that die. */
static void
never_over(void **state)
{
	const struct quota_limits limits = {900000, 12, 60, 2000, 9000};
	unsigned taken = 0, refused[QUOTA_TOTAL + 1] = {0};
	struct holder holders[HOLDERS] = {{0}};
	struct book *book = calloc(1, sizeof *book);
	struct quota_row row = {0};
	uint32_t minute = 0;

	(void)state;
	random_state = 88172645463325252U;
	assert_non_null(book);
	while (minute < MINUTES - 2) {
		struct holder *h = &holders[next_random(HOLDERS)];
		/* a lagging clock may speak of the minute, and the day, before */
		uint32_t seen = minute > 0 && row.minute == MINUTE + minute && next_random(4) == 0
		                    ? minute - 1
		                    : minute;
		struct quota_time at = {MINUTE + seen, DAY + seen / DAY_MINUTES};

		if (h->busy) {
			bool sent = next_random(8) != 0;
			uint64_t real = sent ? next_random(h->hold.tokens + 1) : 0;

			quota_settle(&row, &h->hold, real, sent, at);
			book_settle(book, h, real, sent, minute);
			h->busy = false;
		} else {
			uint64_t tokens = 1 + next_random(700);
			struct quota_fit fit = quota_fits(&row, &limits, tokens, at);

			refused[fit.hit]++;
			if (fit.hit == QUOTA_FITS) {
				quota_reserve(&row, tokens, at, &h->hold);
				h->busy = true;
				h->minute = minute;
				book->minute_tokens[minute] += tokens;
				book->minute_requests[minute]++;
				book->day_tokens[minute / DAY_MINUTES] += tokens;
				book->day_requests[minute / DAY_MINUTES]++;
				book->total += tokens;
				taken++;
			}
		}
		if (row.minute == MINUTE + minute)
			check_book(book, &row, &limits, minute);
		if (next_random(24) == 0)
			minute++;
	}
	/* every limit was met */
	assert_true(taken > 1000);
	for (int i = QUOTA_RPM; i <= QUOTA_TOTAL; i++)
		if (refused[i] == 0)
			fail_msg("limit %d was never met", i);
	free(book);
}

struct job {
	struct account_ref ref;
	struct quota_row row;
	unsigned n;
	uint64_t sum;
};

static enum store_rc
do_get(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return quota_get(txn, job->ref, &job->row);
}

static enum store_rc
do_put(struct txn *txn, void *arg)
{
	struct job *job = arg;

	return quota_put(txn, job->ref, &job->row);
}

static enum store_rc
do_scan(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct quota_view view;

	quota_open(txn, job->ref.channel, &view);
	job->sum = 0;
	for (uint32_t i = 0; i < job->n; i++) {
		struct quota_row row;

		quota_at(&view, i, &row);
		job->sum += row.version == 1 ? row.total_tokens : 1000000;
	}
	return STORE_OK;
}

static void
rows(void **state)
{
	static const uint32_t numbers[] = {0, 1, 39, 40, 41, 79, 200};
	struct env *env = store_dir_open(*state);
	struct job job = {.ref = {1, 5}, .n = 300};

	assert_int_equal(env_view(env, do_get, &job), STORE_NONE);
	assert_int_equal(job.row.version, 1);
	assert_true(job.row.total_tokens == 0);
	for (size_t i = 0; i < NELEM(numbers); i++) {
		job.ref.number = numbers[i];
		job.row = (struct quota_row){.total_tokens = 10 + i, .minute = numbers[i]};
		assert_int_equal(env_update(env, do_put, &job), STORE_OK);
	}
	for (size_t i = 0; i < NELEM(numbers); i++) {
		job.ref.number = numbers[i];
		assert_int_equal(env_view(env, do_get, &job), STORE_OK);
		assert_true(job.row.total_tokens == 10 + i && job.row.minute == numbers[i]);
	}
	job.ref.number = 38;
	assert_int_equal(env_view(env, do_get, &job), STORE_NONE);
	assert_int_equal(env_view(env, do_scan, &job), STORE_OK);
	assert_true(job.sum == 10 + 11 + 12 + 13 + 14 + 15 + 16);
	job.ref.channel = 2;
	assert_int_equal(env_view(env, do_scan, &job), STORE_OK);
	assert_true(job.sum == 0);
	env_close(&env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fits),
	    cmocka_unit_test(used),
	    cmocka_unit_test(settling),
	    cmocka_unit_test(settling_a_stranger),
	    cmocka_unit_test(shares),
	    cmocka_unit_test(crossing),
	    cmocka_unit_test(never_over),
	    cmocka_unit_test_setup_teardown(rows, store_dir_setup, store_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
