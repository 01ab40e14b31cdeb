#include "errand.h"

#include "base/clock.h"
#include "lib/conf_text.h"
#include "lib/scripted.h"

#define KEY "sk-test-key"
#define ANSWER "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

static struct scripted server;
static struct conf *conf;
static struct trust *trust;
static struct watch watch;
static struct serve serve;
static struct errand_answer answer;
static int waiting, peer; /* a socket where requests may wait, and one that does */

static void
begin(const struct scripted_step steps[][SCRIPTED_STEPS], size_t n)
{
	char json[512];
	struct why why;

	scripted_bind(&server);
	snprintf(json, sizeof json,
	    "{'alerts': {'url': 'http://127.0.0.1:%d/hook?a=b'}, 'channels': {'c': {"
	    " 'base_url': 'http://127.0.0.1:%d/v1', 'accounts': [{'id': 'a', 'api_key': '" KEY
	    "', 'headers': {'X-Own': 'mine'}}]}}}",
	    server.port, server.port);
	conf = conf_alone(json);
	assert_int_equal(trust_load(conf, &trust, &why), ERR_OK);
	assert_true(watch_open(&watch, 0) >= 0);
	serve = (struct serve){.conf = conf,
	    .up = upstream_new(trust),
	    .watch = &watch,
	    .arena = arena_new((size_t)16 << 20),
	    .listen_fd = -1,
	    .away_since = clock_mono()};
	waiting = peer = -1;
	scripted_start(&server, steps, n);
}

static int
end(void **state)
{
	(void)state;
	upstream_free(&serve.up);
	arena_free(&serve.arena);
	trust_free(&trust);
	conf_free(&conf);
	close(watch.signal_fd);
	close(waiting);
	close(peer);
	scripted_stop(&server);
	return 0;
}

#define BEGIN(steps) begin((steps), sizeof(steps) / sizeof((steps)[0]))

static struct upstream_call
models(void)
{
	return (struct upstream_call){.channel = &conf->channels[0],
	    .account = &conf->channels[0].accounts[0],
	    .path = "/models",
	    .get = true};
}

static bool
began_with(unsigned at, const char *line)
{
	return strncmp(server.seen->head[at], line, strlen(line)) == 0;
}

static const struct scripted_step three[][SCRIPTED_STEPS] = {
    {DO_READ, DO_SEND(ANSWER), DO_READ, DO_SEND(ANSWER), DO_READ, DO_SEND(ANSWER), DO_LINGER},
};

/* GET, POST and GET again over one connection; what goes along. */
static void
test_methods(void **state)
{
	struct upstream_call get, post;

	(void)state;
	BEGIN(three);
	get = models();
	errand_run(&serve, &get, &answer);
	assert_int_equal(answer.transport, TRANSPORT_OK);
	assert_int_equal(answer.status, 200);
	assert_true(text_is(answer.body, "{}") && text_is(answer.content_type, "application/json"));
	assert_true(began_with(0, "GET /v1/models HTTP/1.1\r\n"));
	assert_string_equal(scripted_header(&server, 0, "Authorization"), "Bearer " KEY);
	assert_string_equal(scripted_header(&server, 0, "X-Own"), "mine");
	assert_null(scripted_header(&server, 0, "Content-Type"));
	assert_null(scripted_header(&server, 0, "Content-Length"));
	post = get;
	post.get = false;
	post.path = "/chat/completions";
	post.body = SPAN("{\"a\":1}");
	errand_run(&serve, &post, &answer);
	assert_true(began_with(1, "POST /v1/chat/completions HTTP/1.1\r\n"));
	assert_string_equal(scripted_header(&server, 1, "Content-Length"), "7");
	errand_run(&serve, &get, &answer);
	assert_true(began_with(2, "GET /v1/models HTTP/1.1\r\n"));
	assert_null(scripted_header(&server, 2, "Content-Length"));
	assert_int_equal(server.seen->connections, 1);
}

/* To an address of the operator's, with nobody's key. */
static void
test_url(void **state)
{
	struct upstream_call call;

	(void)state;
	BEGIN(three);
	call = (struct upstream_call){
	    .url = conf->alerts.url, .policy = &conf->policy, .body = SPAN("{}")};
	errand_run(&serve, &call, &answer);
	assert_int_equal(answer.status, 200);
	assert_true(began_with(0, "POST /hook?a=b HTTP/1.1\r\n"));
	assert_null(strstr(server.seen->head[0], KEY));
	assert_null(scripted_header(&server, 0, "X-Own"));
}

/* Of the connections between them libcurl makes use of none: it may not send again by itself. */
static const struct scripted_step dying[][SCRIPTED_STEPS] = {
    {DO_READ, DO_SEND(ANSWER), DO_READ, DO_END},
    {DO_READ, DO_END},
    {DO_READ, DO_SEND(ANSWER), DO_READ, DO_END},
    {DO_READ, DO_END},
    {DO_READ, DO_END},
};

/* A connection that was kept too long is nobody's failure; a new one that dies is the host's. */
static void
test_kept(void **state)
{
	struct upstream_call call;

	(void)state;
	BEGIN(dying);
	call = (struct upstream_call){
	    .url = conf->alerts.url, .policy = &conf->policy, .body = SPAN("{}")};
	for (unsigned i = 0; i < 2; i++) {
		errand_run(&serve, &call, &answer);
		assert_int_equal(answer.status, 200);
	}
	assert_int_equal(server.seen->requests, 3);
	errand_run(&serve, &call, &answer);
	assert_int_equal(answer.transport, TRANSPORT_CONNECT);
	assert_int_equal(server.seen->requests, 5);
}

static const struct scripted_step long_one[][SCRIPTED_STEPS] = {
    {DO_READ, DO_SEND("HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n"), DO_FILL(1024),
        DO_LINGER},
    {DO_READ, DO_SEND(ANSWER), DO_LINGER},
};

static void
test_long(void **state)
{
	struct upstream_call call;

	(void)state;
	BEGIN(long_one);
	call = models();
	errand_run(&serve, &call, &answer);
	assert_true(answer.cut);
	assert_int_equal(answer.transport, TRANSPORT_OK);
	assert_int_equal(answer.body.n, ERRAND_BODY_MAX);
	errand_run(&serve, &call, &answer);
	assert_true(!answer.cut && text_is(answer.body, "{}"));
}

static const struct scripted_step refusal[][SCRIPTED_STEPS] = {
    {DO_READ,
        DO_SEND("HTTP/1.1 429 No\r\nRetry-After: 30\r\nContent-Length: 51\r\n\r\n"
                "{\"error\":{\"message\":\"slow down, " KEY "\",\"a\":1234}}"),
        DO_LINGER},
};

static void
test_classify(void **state)
{
	struct classify_finding finding;
	struct upstream_call call;

	(void)state;
	BEGIN(refusal);
	call = models();
	errand_run(&serve, &call, &answer);
	errand_classify(&serve, &call, &answer, SPAN(""), &finding);
	assert_int_equal(finding.verdict, VERDICT_SOFT_RATE);
	assert_true(finding.reset.stated);
	assert_null(strstr(finding.message, KEY));
}

static const struct scripted_step silent[][SCRIPTED_STEPS] = {{DO_READ, DO_LINGER}};

static void
test_refused(void **state)
{
	struct classify_finding finding;
	struct upstream_call call;

	(void)state;
	BEGIN(silent);
	close(server.listener);
	kill(server.pid, SIGKILL);
	waitpid(server.pid, NULL, 0);
	server.pid = 0;
	server.listener = -1;
	call = models();
	errand_run(&serve, &call, &answer);
	assert_int_equal(answer.transport, TRANSPORT_CONNECT);
	errand_classify(&serve, &call, &answer, SPAN(""), &finding);
	assert_int_equal(finding.verdict, VERDICT_NETWORK);
	assert_true(finding.message[0] != '\0');
}

/* A socket to listen on, with one connection that nobody takes. */
static void
let_wait(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof at;

	waiting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(waiting, (const struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(waiting, 1), 0);
	assert_int_equal(getsockname(waiting, (struct sockaddr *)&at, &n), 0);
	serve.listen_fd = waiting;
	assert_false(errand_must_return(&serve));
	assert_int_equal(connect(peer, (const struct sockaddr *)&at, sizeof at), 0);
}

/* Back to the socket only after a while, and only if somebody waits there. */
static void
test_returns(void **state)
{
	struct upstream_call call;
	int64_t began;

	(void)state;
	BEGIN(silent);
	serve.away_since.v -= ERRAND_AWAY_MS;
	assert_false(errand_must_return(&serve));
	let_wait();
	assert_true(errand_must_return(&serve));
	serve.away_since = clock_mono();
	assert_false(errand_must_return(&serve));
	serve.away_since.v -= ERRAND_AWAY_MS - 300;
	call = models();
	began = clock_mono().v;
	errand_run(&serve, &call, &answer);
	assert_true(answer.interrupted);
	assert_in_range(clock_mono().v - began, 250, 900);
}

static void
test_signal(void **state)
{
	struct upstream_call call;
	int64_t began;

	(void)state;
	BEGIN(silent);
	call = models();
	began = clock_mono().v;
	kill(getpid(), SIGTERM); /* blocked: it is read from the watch */
	errand_run(&serve, &call, &answer);
	assert_true(answer.interrupted && watch.stopping);
	assert_true(clock_mono().v - began < 500);
	watch = (struct watch){.signal_fd = watch.signal_fd, .client_fd = -1, .replace = true};
	assert_true(errand_must_return(&serve));
}

#define TEST(name) cmocka_unit_test_teardown(name, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_methods),
	    TEST(test_url),
	    TEST(test_kept),
	    TEST(test_long),
	    TEST(test_classify),
	    TEST(test_refused),
	    TEST(test_returns),
	    TEST(test_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
