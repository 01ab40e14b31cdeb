#include "upstream.h"

#include "base/clock.h"
#include "lib/conf_text.h"
#include "lib/scripted.h"

#define KEY "sk-test-key"
#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
#define LARGE ((size_t)2 << 20)
#define HUGE_BODY ((size_t)64 << 20) /* more than socket buffers take */

static struct scripted server;
static struct conf *conf;
static struct trust *trust;
static struct upstream *up;
static struct watch watch;
static struct arena *arena;
static char *large; /* a body of HUGE_BODY bytes */

/* What the last call brought. */
static struct {
	char headers[4096], body[4096];
	unsigned blocks; /* of headers */
} got;

static void
on_header(struct span line, void *arg)
{
	size_t n = strlen(got.headers);

	(void)arg;
	got.blocks += text_starts(line, "HTTP/");
	snprintf(got.headers + n, sizeof got.headers - n, "%.*s\n", (int)line.n, line.p);
}

static bool
on_body(struct span bytes, void *arg)
{
	size_t n = strlen(got.body);

	(void)arg;
	snprintf(got.body + n, sizeof got.body - n, "%.*s", (int)bytes.n, bytes.p);
	return true;
}

/* One channel of `provider`, whose base_url is the server; `more` are members of the account. */
static void
begin(const struct scripted_step steps[][SCRIPTED_STEPS], size_t n, const char *provider,
    const char *more)
{
	char json[512];
	struct why why;

	scripted_bind(&server);
	snprintf(json, sizeof json,
	    "{'channels': {'c': {'provider': '%s', 'base_url': 'http://127.0.0.1:%d/v1',"
	    " 'accounts': [{'id': 'a', 'api_key': '" KEY "'%s}]}}}",
	    provider, server.port, more);
	conf = conf_alone(json);
	assert_int_equal(trust_load(conf, &trust, &why), ERR_OK);
	assert_true(watch_open(&watch, 0) >= 0);
	up = upstream_new(trust);
	arena = arena_new((size_t)16 << 20);
	scripted_start(&server, steps, n);
}

static int
end(void **state)
{
	(void)state;
	upstream_free(&up);
	trust_free(&trust);
	conf_free(&conf);
	arena_free(&arena);
	close(watch.signal_fd);
	scripted_stop(&server);
	return 0;
}

#define BEGIN(steps, ...) begin((steps), sizeof(steps) / sizeof((steps)[0]), __VA_ARGS__)

static struct upstream_end
call_with(struct span body, const struct upstream_header *headers, size_t n)
{
	struct upstream_call call = {.channel = &conf->channels[0],
	    .account = &conf->channels[0].accounts[0],
	    .path = "/chat/completions",
	    .body = body,
	    .headers = headers,
	    .nheaders = n,
	    .on_header = on_header,
	    .on_body = on_body};
	int64_t until = clock_mono().v + 5000;
	struct why why = {""};

	memset(&got, 0, sizeof got);
	assert_int_equal(upstream_begin(up, arena, &call, &why), ERR_OK);
	while (upstream_turn(up, &watch, 100, clock_mono()) == UPSTREAM_RUNNING)
		assert_true(clock_mono().v < until);
	return upstream_finish(up);
}

static struct upstream_end
call(struct span body)
{
	return call_with(body, NULL, 0);
}

static const struct scripted_step plain[][SCRIPTED_STEPS] = {
    {DO_READ, DO_SEND(ANSWER), DO_READ, DO_SEND(ANSWER), DO_LINGER},
};

static void
want_header(const char *name, const char *want)
{
	const char *value = scripted_header(&server, 0, name);

	if ((value == NULL) != (want == NULL) || (value != NULL && strcmp(value, want) != 0))
		fail_msg("%s: '%s'", name, value == NULL ? "(none)" : value);
}

static void
test_request(void **state)
{
	struct upstream_end e;

	(void)state;
	BEGIN(plain, "openai", "");
	e = call(SPAN("{\"model\":\"m\"}"));
	assert_int_equal(e.transport, TRANSPORT_OK);
	assert_true(e.written_whole && e.connected && !e.reused);
	assert_string_equal(got.body, "{}");
	assert_non_null(strstr(got.headers, "HTTP/1.1 200 OK\nContent-Length: 2\n"));
	assert_ptr_equal(strstr(server.seen->head[0], "POST /v1/chat/completions HTTP/1.1\r\n"),
	    server.seen->head[0]);
	want_header("Authorization", "Bearer " KEY);
	want_header("Content-Type", "application/json");
	want_header("Accept", "application/json");
	want_header("Accept-Encoding", "identity");
	want_header("Content-Length", "13");
	want_header("User-Agent", "sluice/" SLUICE_VERSION);
	want_header("Expect", NULL);
	want_header("Transfer-Encoding", NULL);
	assert_int_equal(server.seen->body_hash[0], key_hash(0, "{\"model\":\"m\"}", 13));
	e = call(SPAN("{}")); /* the connection is kept */
	assert_true(e.reused);
	assert_int_equal(server.seen->connections, 1);
	assert_int_equal(server.seen->requests, 2);
}

static const struct {
	const char *provider, *header, *value;
} credentials[] = {
    {"openai", "Authorization", "Bearer " KEY},
    {"anthropic", "x-api-key", KEY},
    {"azure", "api-key", KEY},
};

static void
test_credentials(void **state)
{
	for (size_t i = 0; i < NELEM(credentials); i++) {
		BEGIN(plain, credentials[i].provider, "");
		assert_int_equal(call(SPAN("{}")).transport, TRANSPORT_OK);
		for (size_t k = 0; k < NELEM(credentials); k++)
			want_header(credentials[k].header, k == i ? credentials[k].value : NULL);
		if (i + 1 < NELEM(credentials))
			end(state);
	}
}

/* What passes from a client, and what never does. */
static void
test_headers(void **state)
{
	const struct upstream_header headers[] = {
	    {"Idempotency-Key", SPAN("abc")},
	    {"OpenAI-Beta", SPAN("x\r\nX-Evil: 1")},
	    {"X-Nul", SPAN("a\0b")},
	};

	(void)state;
	BEGIN(plain, "openai", ", 'headers': {'X-Own': 'mine', 'OpenAI-Organization': 'org'}");
	assert_int_equal(call_with(SPAN("{}"), headers, NELEM(headers)).transport, TRANSPORT_OK);
	want_header("Idempotency-Key", "abc");
	want_header("OpenAI-Beta", NULL);
	want_header("X-Evil", NULL);
	want_header("X-Nul", NULL);
	want_header("X-Own", "mine");
	want_header("OpenAI-Organization", "org");
}

/* No Expect, and no second's wait for an answer to it. */
static void
test_large_body(void **state)
{
	int64_t from = clock_mono().v;
	struct upstream_end e;

	(void)state;
	BEGIN(plain, "openai", "");
	e = call((struct span){large, LARGE});
	assert_int_equal(e.transport, TRANSPORT_OK);
	assert_true(e.written_whole);
	want_header("Expect", NULL);
	assert_int_equal(server.seen->body_n[0], LARGE);
	assert_true(server.seen->body_hash[0] == key_hash(0, large, LARGE));
	assert_true(clock_mono().v - from < 900);
}

static void
test_redirect(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ,
	        DO_SEND("HTTP/1.1 302 Found\r\nLocation: /v1/other\r\nContent-Length: 0\r\n\r\n"),
	        DO_READ, DO_SEND(ANSWER)},
	};

	(void)state;
	BEGIN(steps, "openai", "");
	assert_int_equal(call(SPAN("{}")).transport, TRANSPORT_OK);
	assert_non_null(strstr(got.headers, "HTTP/1.1 302 Found\n"));
	nap_ms(20);
	assert_int_equal(server.seen->heads, 1);
}

static void
test_environment_proxy(void **state)
{
	static const char *const names[] = {
	    "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"};

	(void)state;
	for (size_t i = 0; i < NELEM(names); i++)
		setenv(names[i], "http://127.0.0.1:1", 1);
	BEGIN(plain, "openai", "");
	assert_int_equal(call(SPAN("{}")).transport, TRANSPORT_OK);
	assert_int_equal(server.seen->requests, 1);
	for (size_t i = 0; i < NELEM(names); i++)
		unsetenv(names[i]);
}

/* A proxy that the configuration names is used: the server plays it here. */
static void
test_own_proxy(void **state)
{
	char *more;
	struct conf_account *account;

	(void)state;
	BEGIN(plain, "openai", "");
	more = arena_print(arena, "http://127.0.0.1:%d", server.port);
	account = &conf->channels[0].accounts[0];
	account->proxy = text_span(more);
	conf->channels[0].base_url = SPAN("http://provider.invalid/v1");
	assert_int_equal(call(SPAN("{}")).transport, TRANSPORT_OK);
	assert_ptr_equal(strstr(server.seen->head[0],
	                     "POST http://provider.invalid/v1/chat/completions HTTP/1.1\r\n"),
	    server.seen->head[0]);
}

/*
 * The provider closes a kept connection after it read the whole request: the request may have been served, so it is not
 * sent again.
 */
static void
second_post(struct span body)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(ANSWER), DO_READ, DO_END},
	    {DO_READ, DO_SEND(ANSWER), DO_LINGER},
	};
	struct upstream_end e;

	BEGIN(steps, "openai", "");
	assert_int_equal(call(SPAN("{}")).transport, TRANSPORT_OK);
	e = call(body);
	assert_int_equal(e.transport, TRANSPORT_REUSED);
	assert_true(e.reused && e.written_whole && e.connected);
	nap_ms(30);
	assert_int_equal(server.seen->heads, 2); /* begun requests, at the server */
	assert_int_equal(server.seen->requests, 2);
	assert_string_equal(got.body, "");
	/* and the handle is good for the next call */
	assert_int_equal(call(SPAN("{}")).transport, TRANSPORT_OK);
	assert_int_equal(server.seen->requests, 3);
}

static void
test_second_post_small(void **state)
{
	(void)state;
	second_post(SPAN("{\"model\":\"m\"}"));
}

static void
test_second_post_large(void **state)
{
	(void)state;
	second_post((struct span){large, LARGE});
}

/* It breaks while the body is still being sent: nobody can have served it. */
static void
test_broken_sending(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND(ANSWER), DO_HEAD, DO_SLEEP(20), DO_RESET},
	    {DO_READ, DO_SEND(ANSWER), DO_LINGER},
	};
	struct upstream_end e;

	(void)state;
	BEGIN(steps, "openai", "");
	assert_int_equal(call(SPAN("{}")).transport, TRANSPORT_OK);
	e = call((struct span){large, HUGE_BODY});
	if (e.transport == TRANSPORT_OK) { /* sent again by libcurl, which is fine here */
		assert_int_equal(server.seen->requests, 2);
		assert_true(server.seen->body_n[2] == HUGE_BODY);
	} else {
		assert_true(e.transport == TRANSPORT_REUSED || e.transport == TRANSPORT_CONNECT);
		assert_false(e.written_whole);
		assert_true(e.connected);
		assert_int_equal(server.seen->requests, 1);
	}
}

static const struct {
	const char *what;
	struct scripted_step steps[4];
	enum classify_transport transport;
	bool connected;
} breaks[] = {
    {"reset right after connect", {DO_RESET}, TRANSPORT_CONNECT, true},
    {"closed right after connect", {DO_END}, TRANSPORT_CONNECT, true},
    {"closed after the request", {DO_READ, DO_END}, TRANSPORT_CONNECT, true},
    {"reset after the request", {DO_READ, DO_RESET}, TRANSPORT_CONNECT, true},
    {"head cut: an empty answer to libcurl", {DO_READ, DO_SEND("HTTP/1.1 200 OK\r\nConte")},
        TRANSPORT_OK, true},
    {"body shorter than announced",
        {DO_READ, DO_SEND("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}")}, TRANSPORT_TRUNCATED,
        true},
    {"chunked body cut",
        {DO_READ, DO_SEND("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")},
        TRANSPORT_TRUNCATED, true},
    {"chunk size that is none",
        {DO_READ, DO_SEND("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")},
        TRANSPORT_TRUNCATED, true},
    {"reset in the body",
        {DO_READ, DO_SEND("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), DO_SLEEP(20), DO_RESET},
        TRANSPORT_TRUNCATED, true},
    {"until the end of the connection", {DO_READ, DO_SEND("HTTP/1.1 200 OK\r\n\r\n{}")},
        TRANSPORT_OK, true},
    {"no HTTP", {DO_READ, DO_SEND("SSH-2.0-OpenSSH_9\r\n\r\n")}, TRANSPORT_CONNECT, true},
    {"a header line of 110 kB",
        {DO_READ, DO_SEND("HTTP/1.1 200 OK\r\nX-Long: "), DO_FILL(110),
            DO_SEND("\r\nContent-Length: 0\r\n\r\n")},
        TRANSPORT_TOO_BIG, true},
};

static void
test_breaks(void **state)
{
	for (size_t i = 0; i < NELEM(breaks); i++) {
		struct scripted_step steps[1][SCRIPTED_STEPS] = {{DO_END}};
		struct upstream_end e;

		memcpy(steps[0], breaks[i].steps, sizeof breaks[i].steps);
		BEGIN(steps, "openai", "");
		e = call(SPAN("{}"));
		if (e.transport != breaks[i].transport || e.connected != breaks[i].connected)
			fail_msg("%s: transport %d, connected %d (%s)", breaks[i].what,
			    (int)e.transport, e.connected, e.text);
		if ((e.transport == TRANSPORT_OK) != (e.text[0] == '\0'))
			fail_msg("%s: text '%s'", breaks[i].what, e.text);
		assert_null(strstr(e.text, "127.0.0.1")); /* names no host */
		assert_true(server.seen->heads <= 1);
		if (i + 1 < NELEM(breaks))
			end(state);
	}
}

static void
test_nobody_listens(void **state)
{
	struct upstream_end e;

	(void)state;
	BEGIN(plain, "openai", "");
	kill(server.pid, SIGKILL);
	waitpid(server.pid, NULL, 0);
	server.pid = 0;
	shutdown(server.listener, SHUT_RDWR);
	e = call(SPAN("{}"));
	assert_int_equal(e.transport, TRANSPORT_CONNECT);
	assert_false(e.connected || e.written_whole || e.reused);
}

/* Ended by us in the middle: the connection is closed, the next call is not disturbed by what was left of it. */
static void
test_ended_early(void **state)
{
	static const struct scripted_step steps[][SCRIPTED_STEPS] = {
	    {DO_READ, DO_SEND("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), DO_LINGER},
	    {DO_READ, DO_SEND(ANSWER), DO_LINGER},
	};
	struct upstream_call c;
	struct why why;

	(void)state;
	BEGIN(steps, "openai", "");
	c = (struct upstream_call){.channel = &conf->channels[0],
	    .account = &conf->channels[0].accounts[0],
	    .path = "/x",
	    .body = SPAN("{}"),
	    .on_header = on_header,
	    .on_body = on_body};
	memset(&got, 0, sizeof got);
	assert_int_equal(upstream_begin(up, arena, &c, &why), ERR_OK);
	for (int i = 0; i < 50 && got.body[0] == '\0'; i++)
		assert_int_equal(upstream_turn(up, &watch, 100, clock_mono()), UPSTREAM_RUNNING);
	assert_string_equal(got.body, "{");
	upstream_finish(up);
	for (int i = 0; i < 1000 && server.seen->closed == 0; i++)
		nap_ms(1);
	assert_int_equal(server.seen->closed, 1);
	assert_int_equal(call(SPAN("{}")).transport, TRANSPORT_OK);
	assert_string_equal(got.body, "{}");
	assert_int_equal(server.seen->connections, 2);
}

static int
make_large(void **state)
{
	(void)state;
	large = malloc(HUGE_BODY);
	assert_non_null(large);
	for (size_t i = 0; i < HUGE_BODY; i++)
		large[i] = (char)(i * 2654435761U >> 24);
	return 0;
}

static int
free_large(void **state)
{
	(void)state;
	free(large);
	return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_request),
	    TEST(test_credentials),
	    TEST(test_headers),
	    TEST(test_large_body),
	    TEST(test_redirect),
	    TEST(test_environment_proxy),
	    TEST(test_own_proxy),
	    TEST(test_second_post_small),
	    TEST(test_second_post_large),
	    TEST(test_broken_sending),
	    TEST(test_breaks),
	    TEST(test_nobody_listens),
	    TEST(test_ended_early),
	};

	return cmocka_run_group_tests(tests, make_large, free_large);
}
