#include "forward.h"

#include "lib/forward_rig.h"

#define SSE "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nx-request-id: up-1\r\n\r\n"
#define ROLE \
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
#define TEXT(z) "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" z "\"}}]}\n\n"
#define STOP "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define USAGE \
	"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"total_tokens\":9}}\n\n"
#define DONE "data: [DONE]\n\n"
#define ERROR_429 "data: {\"error\":{\"code\":\"11140\",\"message\":\"rate limit reached\"}}\n\n"
#define BROKEN "data: {\"error\":{\"message\":\""

/* What goes out for what comes in, and what it is taken for. */
static const struct {
	const char *what;
	struct scripted_step steps[6];
	enum verdict verdict;
	bool usage_wanted;
	const char *
	    body; /* to the client; NULL: nothing went out. Ends at '|' where only the beginning is told */
} streams[] = {
    {"a whole answer, byte for byte",
        {DO_READ, DO_SEND(SSE ": ping\n\n" ROLE TEXT("a") TEXT("b") STOP DONE)}, VERDICT_OK, false,
        ": ping\n\n" ROLE TEXT("a") TEXT("b") STOP DONE},
    {"usage is withheld", {DO_READ, DO_SEND(SSE TEXT("a") STOP USAGE DONE)}, VERDICT_OK, false,
        TEXT("a") STOP DONE},
    {"usage was asked for", {DO_READ, DO_SEND(SSE TEXT("a") STOP USAGE DONE)}, VERDICT_OK, true,
        TEXT("a") STOP USAGE DONE},
    {"the line stays open after the end", {DO_READ, DO_SEND(SSE TEXT("a") STOP DONE), DO_LINGER},
        VERDICT_OK, false, TEXT("a") STOP DONE},
    {"what follows the end is nobody's", {DO_READ, DO_SEND(SSE TEXT("a") STOP DONE TEXT("z"))},
        VERDICT_OK, false, TEXT("a") STOP DONE},
    {"no end marker, but a finish reason: we add it", {DO_READ, DO_SEND(SSE TEXT("a") STOP)},
        VERDICT_OK, false, TEXT("a") STOP DONE},
    {"the last event without its empty line", {DO_READ, DO_SEND(SSE TEXT("a") STOP "data: [DONE]")},
        VERDICT_OK, false, TEXT("a") STOP "data: [DONE]\n\n"},
    {"byte by byte", {DO_READ, DO_DRIBBLE(SSE TEXT("a") STOP DONE, 0)}, VERDICT_OK, false,
        TEXT("a") STOP DONE},
    {"CRLF",
        {DO_READ,
            DO_SEND(SSE
                "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\ndata: [DONE]\r\n\r\n")},
        VERDICT_OK, false,
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\ndata: [DONE]\r\n\r\n"},
    {"cut after content", {DO_READ, DO_SEND(SSE TEXT("a"))}, VERDICT_SERVER, false,
        TEXT("a") BROKEN "|"},
    {"cut in the middle of an event", {DO_READ, DO_SEND(SSE TEXT("a") "data: {\"choi")},
        VERDICT_SERVER, false, TEXT("a") BROKEN "|"},
    {"reset after content", {DO_READ, DO_SEND(SSE TEXT("a")), DO_SLEEP(30), DO_RESET},
        VERDICT_SERVER, false, TEXT("a") BROKEN "|"},
    {"cut before content", {DO_READ, DO_SEND(SSE ROLE)}, VERDICT_SERVER, false, NULL},
    {"nothing in it", {DO_READ, DO_SEND(SSE)}, VERDICT_SERVER, false, NULL},
    {"only comments", {DO_READ, DO_SEND(SSE ": ping\n\n: ping\n\n")}, VERDICT_SERVER, false, NULL},
    {"only the end", {DO_READ, DO_SEND(SSE DONE)}, VERDICT_SERVER, false, NULL},
    {"error as the first event", {DO_READ, DO_SEND(SSE ERROR_429 DONE)}, VERDICT_SOFT_RATE, false,
        NULL},
    {"error after the role", {DO_READ, DO_SEND(SSE ROLE ERROR_429)}, VERDICT_SOFT_RATE, false,
        NULL},
    {"error after content: passes, and no end",
        {DO_READ, DO_SEND(SSE ROLE TEXT("a") ERROR_429 DONE)}, VERDICT_SOFT_RATE, false,
        ROLE TEXT("a") ERROR_429},
    {"an object where a stream was asked for",
        {DO_READ,
            DO_SEND(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{\"code\":11140,\"msg\":\"rate limit, try later\"}")},
        VERDICT_SOFT_RATE, false, NULL},
    {"HTML where a stream was asked for", {DO_READ, DO_SEND(SSE "<html>")}, VERDICT_SERVER, false,
        NULL},
    {"our key in it", {DO_READ, DO_SEND(SSE TEXT("see " RIG_KEY "!") TEXT("b") STOP DONE)},
        VERDICT_OK, false, TEXT("see [redacted]!") TEXT("b") STOP DONE},
};

static bool
as_wanted(const char *got, const char *want)
{
	size_t n = strlen(want);

	if (n > 0 && want[n - 1] == '|')
		return strncmp(got, want, n - 1) == 0 && strstr(got, DONE) == NULL &&
		       strcmp(got + strlen(got) - 2, "\n\n") == 0;
	return strcmp(got, want) == 0;
}

static void
test_streams(void **state)
{
	for (size_t i = 0; i < NELEM(streams); i++) {
		struct scripted_step steps[1][SCRIPTED_STEPS] = {{DO_END}};
		const char *want = streams[i].body;

		memcpy(steps[0], streams[i].steps, sizeof streams[i].steps);
		forward_rig_begin(steps, 1, "");
		forward_rig_send(true, streams[i].usage_wanted);
		if (rig.out.finding.verdict != streams[i].verdict ||
		    rig.respond.committed != (want != NULL))
			fail_msg("%s: %s (%s), committed %d", streams[i].what,
			    verdict_table[rig.out.finding.verdict].name, rig.out.finding.message,
			    rig.respond.committed);
		if (!as_wanted(forward_rig_body(), want == NULL ? "" : want))
			fail_msg("%s: got\n%s", streams[i].what, forward_rig_body());
		if (want == NULL)
			assert_int_equal(rig.m.out.n, 0);
		else
			assert_non_null(
			    strstr(memory_text(&rig.m), "X-Upstream-Request-Id: up-1\r\n"));
		assert_true(rig.took_ms < 2000);
		if (i + 1 < NELEM(streams))
			forward_rig_end(state);
	}
}

static void
test_usage(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(SSE TEXT("a") STOP USAGE DONE)}};

	(void)state;
	FORWARD(steps, "", true);
	assert_int_equal(rig.out.tap.usage.prompt, 7);
	assert_int_equal(rig.out.tap.usage.completion, 2);
	assert_true(rig.out.tap.content && rig.out.tap.finished && rig.out.tap.ended);
	assert_true(rig.out.first_content.v >= rig.out.first_byte.v);
}

/* Nothing waits in a buffer: what is there goes out before the next piece comes. */
static void
test_flushed(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(SSE TEXT("a")), DO_SLEEP(60), DO_SEND(TEXT("b")), DO_SLEEP(60),
	        DO_SEND(STOP), DO_SLEEP(60), DO_SEND(DONE)}};

	(void)state;
	FORWARD(steps, "", true);
	assert_int_equal(rig.out.finding.verdict, VERDICT_OK);
	assert_int_equal(rig.m.flushes, 3); /* the end is flushed by whoever ends the request */
	assert_string_equal(forward_rig_body(), TEXT("a") TEXT("b") STOP DONE);
}

/* Silence after the commit: a comment now and then, between events only; before it nothing. */
static void
test_heartbeat(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(SSE ROLE), DO_SLEEP(250), DO_SEND(TEXT("a") "data: {\"cho"),
	        DO_SLEEP(250), DO_SEND("ices\":[]}\n\n" STOP DONE)}};
	static const char begin[] = ROLE TEXT("a"), beat[] = ": hb\n\n";
	const char *body;
	unsigned beats = 0;

	(void)state;
	forward_rig_begin(steps, 1, "");
	rig.conf->channels[0].policy.upstream.heartbeat_ms = 100;
	forward_rig_send(true, false);
	assert_int_equal(rig.out.finding.verdict, VERDICT_OK);
	body = forward_rig_body();
	assert_int_equal(strncmp(body, begin, sizeof begin - 1), 0);
	/* how many there are is a matter of the machine; none is within the event that was cut */
	for (body += sizeof begin - 1; strncmp(body, beat, sizeof beat - 1) == 0; beats++)
		body += sizeof beat - 1;
	assert_true(beats >= 1);
	assert_string_equal(body, "data: {\"choices\":[]}\n\n" STOP DONE);
}

/* More preamble than can be held is given out. */
static void
test_preamble(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(SSE ROLE ":"), DO_FILL(600), DO_SEND("\n\n:"), DO_FILL(600),
	        DO_SEND("\n\n" ERROR_429)}};

	(void)state;
	FORWARD(steps, "", true);
	assert_int_equal(rig.out.finding.verdict, VERDICT_SOFT_RATE);
	assert_true(rig.respond.committed);
	assert_true(rig.respond.bytes > 1200 * 1024);
	assert_ptr_equal(strstr(forward_rig_body(), ROLE ":xxx"), forward_rig_body());
	assert_non_null(strstr(forward_rig_body() + 1200 * 1024, ERROR_429));
}

/* An event beyond max_event ends the stream, in an error. */
static void
test_too_big(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(SSE TEXT("a") "data: \""), DO_FILL(200), DO_SEND("\"\n\n" DONE)}};

	(void)state;
	FORWARD(steps, "'max_event': '64k'", true);
	assert_int_equal(rig.out.transport, TRANSPORT_TOO_BIG);
	assert_int_equal(rig.out.finding.verdict, VERDICT_SERVER);
	assert_true(as_wanted(forward_rig_body(), TEXT("a") BROKEN "|"));
}

static void
test_idle(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(SSE TEXT("a")), DO_LINGER}};

	(void)state;
	FORWARD(steps, "'idle_timeout': '150ms'", true);
	forward_rig_want(VERDICT_NETWORK, TRANSPORT_TIMEOUT, 200);
	assert_in_range(rig.took_ms, 140, 600);
	assert_true(as_wanted(forward_rig_body(), TEXT("a") BROKEN "the answer stalled|"));
}

/* The answer was finished when the line fell silent: it is whole. */
static void
test_idle_at_the_end(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(SSE TEXT("a") STOP), DO_LINGER}};

	(void)state;
	FORWARD(steps, "'idle_timeout': '100ms'", true);
	forward_rig_want(VERDICT_OK, TRANSPORT_OK, 200);
	assert_string_equal(forward_rig_body(), TEXT("a") STOP DONE);
}

/* The client is gone: the transfer ends at once, and it is nobody's failure. */
static void
test_client_gone(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(SSE TEXT("a")), DO_SLEEP(50), DO_SEND(TEXT("b")), DO_LINGER}};

	(void)state;
	forward_rig_begin(steps, 1, "");
	rig.m.writes_left = 2; /* the head and the first event */
	forward_rig_send(true, false);
	assert_int_equal(rig.out.finding.verdict, VERDICT_CANCELLED);
	assert_false(rig.out.stopped);
	assert_true(rig.took_ms < 1000);
	assert_string_equal(forward_rig_body(), TEXT("a")); /* no error event after it */
	for (int i = 0; i < 1000 && rig.server.seen->closed == 0; i++)
		nap_ms(1);
	assert_int_equal(rig.server.seen->closed, 1);
}

/* It went while the upstream was silent: seen by its connection. */
static void
test_client_gone_early(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {{DO_READ, DO_LINGER}};
	int pair[2];

	(void)state;
	forward_rig_begin(steps, 1, "");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	watch_begin(&rig.watch, pair[0]);
	close(pair[1]);
	forward_rig_send(true, false);
	close(pair[0]);
	assert_int_equal(rig.out.finding.verdict, VERDICT_CANCELLED);
	assert_true(rig.took_ms < 100);
	assert_int_equal(rig.m.out.n, 0);
}

/* The drain is over in the middle of a stream: it ends in an error, not as if it were whole. */
static void
test_drain(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(SSE TEXT("a")), DO_LINGER}};

	(void)state;
	forward_rig_begin(steps, 1, "");
	rig.watch.stopping = true;
	rig.watch.stop_by.v = clock_mono().v + 100;
	forward_rig_send(true, false);
	assert_int_equal(rig.out.finding.verdict, VERDICT_CANCELLED);
	assert_true(rig.out.stopped);
	assert_true(as_wanted(forward_rig_body(), TEXT("a") BROKEN "the gateway is restarting|"));
}

#define TEST(name) cmocka_unit_test_teardown(name, forward_rig_end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_streams),
	    TEST(test_usage),
	    TEST(test_flushed),
	    TEST(test_heartbeat),
	    TEST(test_preamble),
	    TEST(test_too_big),
	    TEST(test_idle),
	    TEST(test_idle_at_the_end),
	    TEST(test_client_gone),
	    TEST(test_client_gone_early),
	    TEST(test_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
