#include "forward.h"

#include "lib/forward_rig.h"

/* {"choices":[{"message":{"content":"hi"}}],"usage":{...}} */
#define GZIP                                                                                       \
	"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x3d\x8b\x3d\x0e\x80\x20\x0c\x46\xef\xf2\xcd\x2c" \
	"\x46\x27\xae\x62\x8c\x21\xa4\x11\x22\x50\x22\x75\x22\xbd\xbb\x2c\xb2\xbe\x9f\x0e\x1f\x38" \
	"\x7a\x6a\xb0\x7b\x47\xa6\xd6\xdc\x45\xb0\x1d\x9e\x8b\x50\x11\x58\x84\x08\xd5\xc3\xe0\xfd" \
	"\x55\x7d\x38\x57\x39\x85\x6f\x2a\xe3\x5b\xcd\x88\x73\x4d\x24\x91\xcb\xa4\x8b\x81\xb0\xb8" \
	"\x34\xc1\xa6\xfa\x01\x28\xfe\x3b\x0b\x6d\x00\x00\x00"
#define ANSWER "{\"choices\":[{\"message\":{\"content\":\"hi\"}}]}"
#define JSON_200 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define WHOLE(head, body) DO_SEND(head "Connection: close\r\n\r\n" body)

static void
test_plain(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, WHOLE(JSON_200 "x-request-id: up-1\r\n", ANSWER)},
	};

	(void)state;
	FORWARD(steps, "", false);
	forward_rig_want(VERDICT_OK, TRANSPORT_OK, 200);
	assert_true(text_is(rig.out.body, ANSWER));
	assert_true(text_is(rig.out.content_type, "application/json"));
	assert_true(text_is(rig.out.upstream_id, "up-1"));
	assert_false(rig.respond.committed); /* a plain answer is delivered by the caller */
	assert_int_equal(rig.m.out.n, 0);
	assert_true(rig.out.first_byte.v >= rig.out.started.v);
}

static void
test_gzip(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(JSON_200 "Content-Encoding: gzip\r\nConnection: close\r\n\r\n"),
	        DO_SEND_N(GZIP, sizeof GZIP - 1)},
	};

	(void)state;
	FORWARD(steps, "", false);
	forward_rig_want(VERDICT_OK, TRANSPORT_OK, 200);
	assert_true(text_find(rig.out.body, SPAN("\"content\":\"hi\"")) < rig.out.body.n);
	assert_int_equal(rig.out.tap.usage.prompt, 3);
	assert_int_equal(rig.out.tap.usage.completion, 1);
}

/* Only the final header block counts. */
static void
test_early_hints(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ,
	        DO_SEND("HTTP/1.1 103 Early Hints\r\nRetry-After: 7777\r\nContent-Type: x/y\r\n"
	                "x-request-id: early\r\nx-ratelimit-reset-requests: 2h\r\n\r\n"
	                "HTTP/1.1 100 Continue\r\nRetry-After: 8888\r\n\r\n"),
	        WHOLE("HTTP/1.1 429 Too Many Requests\r\n",
	            "{\"error\":{\"message\":\"slow down\"}}")},
	};

	(void)state;
	FORWARD(steps, "", false);
	assert_int_equal(rig.out.status, 429);
	assert_false(rig.out.finding.reset.stated);
	assert_int_equal(rig.out.retry_after.n, 0);
	assert_int_equal(rig.out.content_type.n, 0);
	assert_int_equal(rig.out.upstream_id.n, 0);
	assert_string_equal(rig.out.finding.message, "slow down");
}

static void
test_retry_after(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, WHOLE("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 30\r\n", "{}")},
	};
	int64_t left;

	(void)state;
	FORWARD(steps, "", false);
	assert_true(rig.out.finding.reset.stated);
	left = rig.out.finding.reset.at.v - clock_wall().v;
	assert_in_range(left, 28000, 30000);
	assert_true(text_is(rig.out.retry_after, "30"));
}

/* A redirect is an upstream that does not work, and never followed. */
static void
test_redirect(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, WHOLE("HTTP/1.1 307 Temporary Redirect\r\nLocation: /v1/other\r\n", "")},
	};

	(void)state;
	FORWARD(steps, "", false);
	forward_rig_want(VERDICT_SERVER, TRANSPORT_OK, 307);
	nap_ms(20);
	assert_int_equal(rig.server.seen->heads, 1);
}

static const struct {
	const char *what;
	struct scripted_step steps[6];
	enum verdict verdict;
	enum classify_transport transport;
	int status;
} failures[] = {
    {"reset right after connect", {DO_RESET}, VERDICT_NETWORK, TRANSPORT_CONNECT, 0},
    {"closed after the request", {DO_READ, DO_END}, VERDICT_NETWORK, TRANSPORT_CONNECT, 0},
    {"header line of 110 kB",
        {DO_READ, DO_SEND(JSON_200 "X-Long: "), DO_FILL(110), DO_SEND("\r\n\r\n" ANSWER)},
        VERDICT_SERVER, TRANSPORT_TOO_BIG, 200},
    {"cut", {DO_READ, DO_SEND(JSON_200 "Content-Length: 99\r\n\r\n" ANSWER)}, VERDICT_SERVER,
        TRANSPORT_TRUNCATED, 200},
    {"empty", {DO_READ, DO_SEND(JSON_200 "Content-Length: 0\r\n\r\n")}, VERDICT_SERVER,
        TRANSPORT_OK, 200},
    {"HTML", {DO_READ, WHOLE("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", "<html>hi</html>")},
        VERDICT_SERVER, TRANSPORT_OK, 200},
    {"JSON of no answer", {DO_READ, WHOLE(JSON_200, "{\"choices\":")}, VERDICT_SERVER, TRANSPORT_OK,
        200},
    {"a limit inside a 200",
        {DO_READ,
            WHOLE(JSON_200, "{\"code\":11140,\"msg\":\"provider side rate limit, try later\"}")},
        VERDICT_SOFT_RATE, TRANSPORT_OK, 200},
    {"broken gzip", {DO_READ, WHOLE(JSON_200 "Content-Encoding: gzip\r\n", "no gzip at all")},
        VERDICT_SERVER, TRANSPORT_TRUNCATED, 200},
    {"500", {DO_READ, WHOLE("HTTP/1.1 500 x\r\n", "{}")}, VERDICT_SERVER, TRANSPORT_OK, 500},
    {"400", {DO_READ, WHOLE("HTTP/1.1 400 x\r\n", "{\"error\":{\"message\":\"bad\"}}")},
        VERDICT_CLIENT, TRANSPORT_OK, 400},
    {"401",
        {DO_READ, WHOLE("HTTP/1.1 401 x\r\n",
                      "{\"error\":{\"code\":\"invalid_api_key\",\"message\":\"bad key\"}}")},
        VERDICT_AUTH_FAILED, TRANSPORT_OK, 401},
};

static void
test_failures(void **state)
{
	for (size_t i = 0; i < 2 * NELEM(failures); i++) {
		struct scripted_step steps[1][SCRIPTED_STEPS] = {{DO_END}};
		bool stream = i % 2 != 0;

		memcpy(steps[0], failures[i / 2].steps, sizeof failures[i / 2].steps);
		FORWARD(steps, "", stream);
		if (rig.out.finding.verdict != failures[i / 2].verdict ||
		    rig.out.transport != failures[i / 2].transport ||
		    rig.out.status != failures[i / 2].status || rig.respond.committed ||
		    rig.m.out.n > 0)
			fail_msg("%s, stream %d: %s, transport %d, status %d: %s",
			    failures[i / 2].what, stream,
			    verdict_table[rig.out.finding.verdict].name, (int)rig.out.transport,
			    rig.out.status, rig.out.finding.message);
		if (i + 1 < 2 * NELEM(failures))
			forward_rig_end(state);
	}
}

/* An error body as it came, but for our key: raw, in the message, and in another form. */
static void
test_redacted(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, WHOLE("HTTP/1.1 400 x\r\n",
	                  "{\"error\":{\"message\":\"key " RIG_KEY " c2stcmlnLXNlY3JldA==\"}}")},
	};

	(void)state;
	FORWARD(steps, "", false);
	assert_true(
	    text_is(rig.out.body, "{\"error\":{\"message\":\"key [redacted] [redacted]\"}}"));
	assert_string_equal(rig.out.finding.message, "key [redacted] [redacted]");
}

#define LIMITS                                                                              \
	"'first_byte_timeout': '80ms', 'plain_timeout': '150ms', 'idle_timeout': '100ms', " \
	"'first_content_timeout': '130ms'"
#define SSE_200 "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
#define DRIBBLED \
	"HTTP/1.1 200 OK\r\nX-Slowly: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* Each time-out of ours, and that nothing else may stretch it. */
static const struct {
	const char *what;
	struct scripted_step steps[6];
	bool stream;
	const char *message;
	int64_t least, most; /* ms */
} timeouts[] = {
    {"silent, plain", {DO_READ, DO_LINGER}, false, "no answer in time", 150, 340},
    {"silent, stream", {DO_READ, DO_LINGER}, true, "no answer in time", 80, 270},
    {"a head that dribbles", {DO_READ, DO_DRIBBLE(DRIBBLED, 5)}, true, "no answer in time", 80,
        270},
    {"a head that dribbles, plain", {DO_READ, DO_DRIBBLE(DRIBBLED, 5)}, false, "no answer in time",
        150, 340},
    {"a head and no body", {DO_READ, DO_SEND(SSE_200), DO_LINGER}, true, "no answer in time", 80,
        270},
    {"nobody reads", {DO_LINGER}, true, "no answer in time", 80, 270},
    {"the body stalls", {DO_READ, DO_SEND(JSON_200 "Content-Length: 99\r\n\r\n{"), DO_LINGER},
        false, "the answer stalled", 100, 290},
    {"only comments",
        {DO_READ, DO_SEND(SSE_200), DO_DRIBBLE("::::::::::::::::::::::::::::::::::::::::", 10)},
        true, "no content in time", 130, 320},
};

static void
test_timeouts(void **state)
{
	for (size_t i = 0; i < NELEM(timeouts); i++) {
		struct scripted_step steps[1][SCRIPTED_STEPS] = {{DO_END}};

		memcpy(steps[0], timeouts[i].steps, sizeof timeouts[i].steps);
		FORWARD(steps, LIMITS, timeouts[i].stream);
		if (rig.out.finding.verdict != VERDICT_NETWORK ||
		    rig.out.transport != TRANSPORT_TIMEOUT ||
		    strcmp(rig.out.finding.message, timeouts[i].message) != 0 ||
		    rig.took_ms < timeouts[i].least || rig.took_ms > timeouts[i].most)
			fail_msg("%s: %s, transport %d, '%s', %lld ms", timeouts[i].what,
			    verdict_table[rig.out.finding.verdict].name, (int)rig.out.transport,
			    rig.out.finding.message, (long long)rig.took_ms);
		assert_false(rig.respond.committed);
		assert_int_equal(rig.m.out.n, 0);
		if (i + 1 < NELEM(timeouts))
			forward_rig_end(state);
	}
}

/* Bytes that come one by one, but come, are no stall. */
static void
test_slow_is_fine(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(JSON_200 "Connection: close\r\n\r\n"), DO_DRIBBLE(ANSWER, 10)},
	};

	(void)state;
	FORWARD(steps, LIMITS, false);
	forward_rig_want(VERDICT_OK, TRANSPORT_OK, 200);
	assert_true(rig.took_ms > 300);
	assert_true(rig.out.first_byte.v < rig.out.started.v + 150);
}

/* A kept connection that dies without an answer is an attempt, and nobody's failure. */
static void
test_nobody(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(JSON_200 "Content-Length: 42\r\n\r\n" ANSWER), DO_READ, DO_END},
	    {DO_READ, DO_SEND(JSON_200 "Content-Length: 42\r\n\r\n" ANSWER), DO_LINGER},
	};

	(void)state;
	assert_int_equal(sizeof ANSWER - 1, 42);
	FORWARD(steps, "", false);
	forward_rig_want(VERDICT_OK, TRANSPORT_OK, 200);
	forward_rig_send(false, false);
	forward_rig_want(VERDICT_NOBODY, TRANSPORT_REUSED, 0);
	assert_true(rig.out.written_whole && rig.out.connected);
	nap_ms(20);
	assert_int_equal(rig.server.seen->heads, 2);
	forward_rig_send(false, false);
	forward_rig_want(VERDICT_OK, TRANSPORT_OK, 200);
}

static void
test_drain(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {{DO_READ, DO_LINGER}};

	(void)state;
	forward_rig_begin(steps, 1, "");
	rig.watch.stopping = true;
	rig.watch.stop_by.v = clock_mono().v + 100;
	forward_rig_send(false, false);
	assert_int_equal(rig.out.finding.verdict, VERDICT_CANCELLED);
	assert_true(rig.out.stopped);
	assert_in_range(rig.took_ms, 90, 500);
}

/* The time for a question of our own is over: nobody's failure, and a half-closed client has not gone for it. */
static void
test_late(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {{DO_READ, DO_LINGER}};

	(void)state;
	forward_rig_begin(steps, 1, "");
	rig.watch.half_closed = true;
	rig.watch.half_closed_at.v = clock_mono().v - 2 * WATCH_HALF_CLOSED_MS;
	rig.watch.deadline.v = clock_mono().v + 100;
	forward_rig_send(false, false);
	assert_int_equal(rig.out.finding.verdict, VERDICT_CANCELLED);
	assert_string_equal(rig.out.finding.rule, "limit");
	assert_false(rig.out.stopped || rig.watch.client_gone);
	assert_in_range(rig.took_ms, 90, 500);
}

#define TEST(name) cmocka_unit_test_teardown(name, forward_rig_end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_plain),
	    TEST(test_gzip),
	    TEST(test_early_hints),
	    TEST(test_retry_after),
	    TEST(test_redirect),
	    TEST(test_failures),
	    TEST(test_redacted),
	    TEST(test_timeouts),
	    TEST(test_slow_is_fine),
	    TEST(test_nobody),
	    TEST(test_drain),
	    TEST(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
