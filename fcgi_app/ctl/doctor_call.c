#include "ctl/doctor_call.h"

#include "base/clock.h"

#include <curl/curl.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define BODY_MAX 262144
#define CONNECT_MS 10000L

struct transfer {
	CURL *easy;
	const struct doctor_peer *peer;
	const struct doctor_call *call;
	struct doctor_answer *answer;
	struct curl_slist *headers;
	struct mono_ms began;
	size_t sent, seen; /* bytes of the body; of the answer's that were searched for events */
	char error[CURL_ERROR_SIZE];
};

#define SET(easy, option, value)                                             \
	do {                                                                 \
		if (curl_easy_setopt((easy), (option), (value)) != CURLE_OK) \
			die("libcurl refuses %s", #option);                  \
	} while (0)

static size_t
on_header(char *bytes, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	struct doctor_answer *a = t->answer;
	struct span line = text_trim((struct span){bytes, size * n});
	size_t colon = text_find(line, SPAN(":"));
	struct span name = {line.p, colon}, value = text_trim(text_from(line, colon + 1));
	const struct {
		const char *name;
		char *dst;
		size_t cap;
	} wanted[] = {{"server", a->server, sizeof a->server},
	    {"content-type", a->content_type, sizeof a->content_type},
	    {"content-encoding", a->encoding, sizeof a->encoding},
	    {"location", a->location, sizeof a->location},
	    {"x-service", a->service, sizeof a->service},
	    {"cache-control", a->cache_control, sizeof a->cache_control},
	    {"x-accel-buffering", a->accel, sizeof a->accel}};

	for (size_t i = 0; i < NELEM(wanted); i++)
		if (text_is_fold(name, wanted[i].name))
			text_clean(wanted[i].dst, wanted[i].cap, value);
	if (text_is_fold(name, "x-sluice-attempts"))
		a->ours = true;
	return size * n;
}

/* Note each event that is whole now. */
static void
find_events(struct transfer *t, int64_t now_ms)
{
	struct doctor_answer *a = t->answer;
	struct span rest;

	for (;;) {
		size_t end;

		rest = text_from(buf_text(&a->body), t->seen);
		end = text_find(rest, SPAN("\n\n"));
		if (end == rest.n)
			return;
		t->seen += end + 2;
		rest.n = end;
		if (text_is(rest, "data: [DONE]"))
			a->done = true;
		else if (text_starts(rest, "data:") && a->nevents < DOCTOR_CALL_EVENTS)
			a->arrived[a->nevents++] = now_ms;
	}
}

static size_t
on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	int64_t now_ms = clock_mono().v - t->began.v;

	if (t->answer->first_ms < 0)
		t->answer->first_ms = now_ms;
	buf_add(&t->answer->body, bytes, size * n);
	if (!t->answer->body.over)
		find_events(t, now_ms);
	return t->answer->body.over ? 0 : size * n;
}

static size_t
give_body(char *dst, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	struct span left = text_from(t->call->body, t->sent);
	size_t k = left.n < size * n ? left.n : size * n;

	if (k > 0)
		memcpy(dst, left.p, k);
	t->sent += k;
	return k;
}

static bool
is_interrupted(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

static int
on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)arg, (void)a, (void)b, (void)c, (void)d;
	return is_interrupted() ? 1 : 0;
}

static void
add_header(struct transfer *t, const char *line)
{
	struct curl_slist *list = curl_slist_append(t->headers, line);

	if (list == NULL)
		die("no memory");
	t->headers = list;
}

static void
set_credentials(struct transfer *t)
{
	char line[2048];

	if (t->call->anonymous)
		return;
	if (t->peer->token != NULL) {
		snprintf(line, sizeof line, "Authorization: Bearer %s", t->peer->token);
		add_header(t, line);
		explicit_bzero(line, sizeof line);
	} else if (t->peer->user != NULL) {
		SET(t->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		SET(t->easy, CURLOPT_USERPWD, t->peer->user);
	}
}

static void
set_body(struct transfer *t)
{
	if (t->call->body.p == NULL)
		return;
	SET(t->easy, CURLOPT_POST, 1L);
	SET(t->easy, CURLOPT_READFUNCTION, give_body);
	SET(t->easy, CURLOPT_READDATA, t);
	if (t->call->chunked)
		add_header(t, "Transfer-Encoding: chunked");
	else
		SET(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->call->body.n);
	add_header(t, "Content-Type: application/json");
	add_header(t, "Expect:");
}

static void
set_peer(struct transfer *t, const char *url)
{
	const struct doctor_peer *peer = t->peer;
	bool tls = text_starts_fold(text_span(peer->url), "https:");
	long version =
	    tls ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;

	SET(t->easy, CURLOPT_URL, url);
	SET(t->easy, CURLOPT_PATH_AS_IS, 1L);
	SET(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	SET(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
	SET(t->easy, CURLOPT_PROXY, "");
	SET(t->easy, CURLOPT_HTTP_VERSION, peer->http2 ? version : (long)CURL_HTTP_VERSION_1_1);
	SET(t->easy, CURLOPT_SSL_VERIFYPEER, peer->insecure ? 0L : 1L);
	SET(t->easy, CURLOPT_SSL_VERIFYHOST, peer->insecure ? 0L : 2L);
	if (peer->ca_file != NULL)
		SET(t->easy, CURLOPT_CAINFO, peer->ca_file);
}

static void
set_rest(struct transfer *t)
{
	SET(t->easy, CURLOPT_NOSIGNAL, 1L);
	SET(t->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	SET(t->easy, CURLOPT_TIMEOUT_MS, (long)t->call->limit_ms);
	SET(t->easy, CURLOPT_ERRORBUFFER, t->error);
	SET(t->easy, CURLOPT_HEADERFUNCTION, on_header);
	SET(t->easy, CURLOPT_HEADERDATA, t);
	SET(t->easy, CURLOPT_WRITEFUNCTION, on_body);
	SET(t->easy, CURLOPT_WRITEDATA, t);
	SET(t->easy, CURLOPT_NOPROGRESS, 0L);
	SET(t->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	SET(t->easy, CURLOPT_USERAGENT, "sluicectl-doctor/" SLUICE_VERSION);
	if (t->call->compressed)
		SET(t->easy, CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
	for (size_t i = 0; i < DOCTOR_CALL_HEADERS && t->call->headers[i] != NULL; i++)
		add_header(t, t->call->headers[i]);
	SET(t->easy, CURLOPT_HTTPHEADER, t->headers);
}

/* Everything that is not named here broke the connection off in some way. */
static enum doctor_fault
fault_of(CURLcode code)
{
	static const struct {
		CURLcode code;
		enum doctor_fault fault;
	} table[] = {{CURLE_OK, DOCTOR_FAULT_NONE},
	    {CURLE_COULDNT_RESOLVE_HOST, DOCTOR_FAULT_CONNECT},
	    {CURLE_COULDNT_CONNECT, DOCTOR_FAULT_CONNECT},
	    {CURLE_URL_MALFORMAT, DOCTOR_FAULT_CONNECT},
	    {CURLE_SSL_CONNECT_ERROR, DOCTOR_FAULT_TLS},
	    {CURLE_PEER_FAILED_VERIFICATION, DOCTOR_FAULT_TLS},
	    {CURLE_SSL_CERTPROBLEM, DOCTOR_FAULT_TLS}, {CURLE_SSL_CIPHER, DOCTOR_FAULT_TLS},
	    {CURLE_SSL_CACERT_BADFILE, DOCTOR_FAULT_TLS},
	    {CURLE_SSL_ISSUER_ERROR, DOCTOR_FAULT_TLS},
	    {CURLE_OPERATION_TIMEDOUT, DOCTOR_FAULT_TIMEOUT},
	    {CURLE_ABORTED_BY_CALLBACK, DOCTOR_FAULT_INTERRUPTED}};

	for (size_t i = 0; i < NELEM(table); i++)
		if (table[i].code == code)
			return table[i].fault;
	return DOCTOR_FAULT_BROKEN;
}

static void
conclude(struct transfer *t, CURLcode code)
{
	static const struct {
		long curl;
		int version;
	} versions[] = {{CURL_HTTP_VERSION_1_0, 10}, {CURL_HTTP_VERSION_1_1, 11},
	    {CURL_HTTP_VERSION_2_0, 20}, {CURL_HTTP_VERSION_3, 30}};
	struct doctor_answer *a = t->answer;
	const char *text = t->error[0] != '\0' ? t->error : curl_easy_strerror(code);
	long status = 0, version = 0;

	a->end_ms = clock_mono().v - t->began.v;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->easy, CURLINFO_HTTP_VERSION, &version);
	a->status = (int)status;
	for (size_t i = 0; i < NELEM(versions); i++)
		if (versions[i].curl == version)
			a->version = versions[i].version;
	a->fault = fault_of(code);
	if (a->fault != DOCTOR_FAULT_NONE)
		text_clean(a->error, sizeof a->error, text_span(text));
}

void
doctor_call_run(const struct doctor_peer *peer, const struct doctor_call *call,
    struct doctor_answer *answer_out)
{
	struct transfer t = {.peer = peer, .call = call, .answer = answer_out};
	struct buf url;

	*answer_out = (struct doctor_answer){.first_ms = -1};
	buf_init(&answer_out->body, BODY_MAX);
	buf_init(&url, 8192);
	buf_z(&url, peer->url);
	buf_z(&url, call->path);
	t.easy = curl_easy_init();
	if (t.easy == NULL || url.over)
		die("no memory for a call");
	set_peer(&t, url.p);
	set_credentials(&t);
	set_body(&t);
	set_rest(&t);
	t.began = clock_mono();
	conclude(&t, is_interrupted() ? CURLE_ABORTED_BY_CALLBACK : curl_easy_perform(t.easy));
	/* mod_fcgid puts its own page below the gateway's head; ours of errors are JSON */
	if (answer_out->status >= 400 && text_starts(text_trim(buf_text(&answer_out->body)), "<"))
		answer_out->ours = false;
	curl_easy_cleanup(t.easy);
	curl_slist_free_all(t.headers);
	buf_release(&url);
}

void
doctor_call_release(struct doctor_answer *answer)
{
	buf_release(&answer->body);
}
