#include "upstream.h"

#include "address.h"
#include "beta.h"
#include "resolve.h"

#include <curl/curl.h>
#include <openssl/ssl.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BETA "anthropic-beta"
#define SMALL_BODY 65536 /* libcurl sends a smaller one together with its headers */

struct upstream {
	CURL *easy;
	CURLM *multi;
	const struct trust *trust;
	void *store; /* X509_STORE of the running call */
	const struct upstream_call *call;
	struct arena *arena; /* of the running call, with its address and proxy */
	const char *url, *proxy;
	struct curl_slist *headers, *resolved;
	size_t handed; /* body bytes given to libcurl, when it reads a large one */
	unsigned sendings;
	bool done;
	CURLcode code;
	char error[CURL_ERROR_SIZE];
};

#define SET(up, option, value)                                                   \
	do {                                                                     \
		if (curl_easy_setopt((up)->easy, (option), (value)) != CURLE_OK) \
			die("libcurl refuses %s", #option);                      \
	} while (0)

static size_t
on_header(char *bytes, size_t size, size_t n, void *arg)
{
	struct upstream *up = arg;
	struct span line = {bytes, size * n};

	while (line.n > 0 && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
		line.n--;
	up->call->on_header(line, up->call->arg);
	return size * n;
}

static size_t
on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct upstream *up = arg;
	struct span span = {bytes, size * n};

	return up->call->on_body(span, up->call->arg) ? span.n : 0;
}

static size_t
read_body(char *dst, size_t size, size_t n, void *arg)
{
	struct upstream *up = arg;
	const struct upstream_call *call = up->call;
	const struct span parts[] = {call->body, call->more[0], call->more[1]};
	size_t skip = up->handed, k = 0;

	for (size_t i = 0; i < NELEM(parts) && k < size * n; i++) {
		struct span left = text_from(parts[i], skip);

		skip -= parts[i].n - left.n;
		if (left.n > size * n - k)
			left.n = size * n - k;
		if (left.n > 0)
			memcpy(dst + k, left.p, left.n);
		k += left.n;
	}
	up->handed += k;
	return k;
}

static size_t
body_bytes(const struct upstream_call *call)
{
	return call->body.n + call->more[0].n + call->more[1].n;
}

/* libcurl gets it at once, or asks for it bit by bit. */
static bool
is_small(const struct upstream_call *call)
{
	return call->body.n < SMALL_BODY && call->body.n == body_bytes(call);
}

/* Was the request written to the connection in whole? */
static bool
written_whole(struct upstream *up)
{
	long sent = 0;

	if (!is_small(up->call))
		return up->handed == body_bytes(up->call);
	curl_easy_getinfo(up->easy, CURLINFO_REQUEST_SIZE, &sent);
	return sent > (long)up->call->body.n;
}

/*
 * libcurl sends a POST again by itself when a kept connection dies without an answer. It asks here before each sending:
 * the second one is refused unless the first did not get out whole, a third always.
 */
static int
before_sending(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct upstream *up = arg;

	(void)ip, (void)local_ip, (void)port, (void)local_port;
	up->sendings++;
	if (up->sendings == 1)
		return CURL_PREREQFUNC_OK;
	return up->sendings == 2 && !written_whole(up) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static CURLcode
use_store(CURL *easy, void *ssl_ctx, void *arg)
{
	struct upstream *up = arg;

	(void)easy;
	if (up->store != NULL)
		SSL_CTX_set1_cert_store(ssl_ctx, up->store);
	return CURLE_OK;
}

static void
set_once(struct upstream *up)
{
	SET(up, CURLOPT_NOSIGNAL, 1L);
	SET(up, CURLOPT_FOLLOWLOCATION, 0L);
	SET(up, CURLOPT_PROTOCOLS_STR, "http,https");
	SET(up, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	SET(up, CURLOPT_ACCEPT_ENCODING, "identity");
	SET(up, CURLOPT_QUICK_EXIT, 1L);
	SET(up, CURLOPT_ERRORBUFFER, up->error);
	SET(up, CURLOPT_WRITEFUNCTION, on_body);
	SET(up, CURLOPT_WRITEDATA, up);
	SET(up, CURLOPT_HEADERFUNCTION, on_header);
	SET(up, CURLOPT_HEADERDATA, up);
	SET(up, CURLOPT_READFUNCTION, read_body);
	SET(up, CURLOPT_READDATA, up);
	SET(up, CURLOPT_PREREQFUNCTION, before_sending);
	SET(up, CURLOPT_PREREQDATA, up);
	SET(up, CURLOPT_SSL_CTX_FUNCTION, use_store);
	SET(up, CURLOPT_SSL_CTX_DATA, up);
	/* the store comes from trust.c; libcurl must not parse the certificates again */
	SET(up, CURLOPT_CAINFO, NULL);
	SET(up, CURLOPT_CAPATH, NULL);
	/* libcurl would keep the store that use_store() gave to one connection, and put it under the next one's feet */
	SET(up, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	SET(up, CURLOPT_TCP_KEEPALIVE, 1L);
}

struct upstream *
upstream_new(const struct trust *trust)
{
	struct upstream *up = calloc(1, sizeof *up);

	if (up == NULL)
		die("no memory");
	up->trust = trust;
	return up;
}

/* Not before the first call: a process may end without one. */
static void
start(struct upstream *up)
{
	up->easy = curl_easy_init();
	up->multi = curl_multi_init();
	if (up->easy == NULL || up->multi == NULL)
		die("libcurl does not start");
	set_once(up);
}

void
upstream_warm(void)
{
	struct upstream *up = upstream_new(NULL);

	start(up);
	upstream_free(&up);
}

void
upstream_free(struct upstream **up)
{
	if (*up == NULL)
		return;
	curl_easy_cleanup((*up)->easy);
	curl_multi_cleanup((*up)->multi);
	free(*up);
	*up = NULL;
}

void
upstream_use(struct upstream *up, const struct trust *trust)
{
	up->trust = trust;
}

static void
add_header(struct upstream *up, struct arena *arena, const char *name, struct span value)
{
	/* a value from outside never carries a line end or NUL into the request */
	for (size_t i = 0; i < value.n; i++)
		if ((unsigned char)value.p[i] < 0x20 && value.p[i] != '\t')
			return;
	up->headers = curl_slist_append(
	    up->headers, arena_join(arena, (struct span[]){text_span(name), SPAN(": "), value}, 3));
	if (up->headers == NULL)
		die("no memory");
}

static bool
account_has(const struct conf_account *account, const char *name)
{
	for (size_t i = 0; account != NULL && i < account->nheaders; i++)
		if (text_is_fold(account->headers[i].name, name))
			return true;
	return false;
}

/* A token of a person's login, which Anthropic takes in another header than a key. */
static bool
is_oauth(const struct upstream_call *call)
{
	return call->account != NULL && call->channel->provider->auth == AUTH_X_API_KEY &&
	       text_starts(secret_reveal(&call->account->key), "sk-ant-oat");
}

static enum provider_auth
auth_of(const struct upstream_call *call, struct span key)
{
	enum provider_auth auth = call->channel->provider->auth;

	if (is_oauth(call) || (auth == AUTH_API_KEY && text_starts(key, "eyJ")))
		return AUTH_BEARER;
	return auth;
}

static void
add_credential(struct upstream *up, struct arena *arena, const struct upstream_call *call)
{
	struct span key = secret_reveal(&call->account->key);

	if (key.n == 0 || account_has(call->account, "Authorization") ||
	    account_has(call->account, "x-api-key") || account_has(call->account, "api-key"))
		return;
	switch (auth_of(call, key)) {
	case AUTH_BEARER:
		key = text_span(arena_join(arena, (struct span[]){SPAN("Bearer "), key}, 2));
		add_header(up, arena, "Authorization", key);
		break;
	case AUTH_X_API_KEY: add_header(up, arena, "x-api-key", key); break;
	case AUTH_API_KEY: add_header(up, arena, "api-key", key); break;
	}
}

/* The client's flags, the account's, and the one that a token needs: one line. */
static void
add_betas(struct upstream *up, struct arena *arena, const struct upstream_call *call)
{
	size_t most = call->nheaders + (call->account != NULL ? call->account->nheaders : 0) + 1,
	       n = 0;
	struct span *lists = arena_alloc(arena, most * sizeof *lists), merged;

	for (size_t i = 0; i < call->nheaders; i++)
		if (text_is_fold(text_span(call->headers[i].name), BETA))
			lists[n++] = call->headers[i].value;
	for (size_t i = 0; call->account != NULL && i < call->account->nheaders; i++)
		if (text_is_fold(call->account->headers[i].name, BETA))
			lists[n++] = call->account->headers[i].value;
	if (is_oauth(call))
		lists[n++] = SPAN(BETA_OAUTH);
	merged = beta_merge(arena, lists, n);
	if (merged.n > 0)
		add_header(up, arena, BETA, merged);
}

static void
set_headers(struct upstream *up, struct arena *arena, const struct upstream_call *call)
{
	up->headers = NULL;
	if (!call->get)
		add_header(up, arena, "Content-Type",
		    call->content_type.n > 0 ? call->content_type : SPAN("application/json"));
	add_header(up, arena, "Accept",
	    call->any      ? SPAN("*/*")
	    : call->stream ? SPAN("text/event-stream")
	                   : SPAN("application/json"));
	add_header(up, arena, "User-Agent", SPAN("sluice/" SLUICE_VERSION));
	if (call->account != NULL)
		add_credential(up, arena, call);
	for (size_t i = 0; i < call->nheaders; i++)
		if (!text_is_fold(text_span(call->headers[i].name), BETA) &&
		    !account_has(call->account, call->headers[i].name))
			add_header(up, arena, call->headers[i].name, call->headers[i].value);
	for (size_t i = 0; call->account != NULL && i < call->account->nheaders; i++) {
		const struct conf_header *h = &call->account->headers[i];

		if (!text_is_fold(h->name, BETA))
			add_header(up, arena, arena_z(arena, h->name), h->value);
	}
	add_betas(up, arena, call);
	up->headers = curl_slist_append(up->headers, "Expect:");
	SET(up, CURLOPT_HTTPHEADER, up->headers);
}

static void
set_body(struct upstream *up, const struct upstream_call *call)
{
	SET(up, call->get ? CURLOPT_HTTPGET : CURLOPT_POST, 1L);
	if (call->get)
		return;
	SET(up, CURLOPT_POSTFIELDS, is_small(call) ? call->body.p : NULL);
	SET(up, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_bytes(call));
}

enum err
upstream_begin(
    struct upstream *up, struct arena *arena, const struct upstream_call *call, struct why *why)
{
	const struct conf_policy *policy =
	    call->channel != NULL ? &call->channel->policy : call->policy;
	struct span proxy = call->account != NULL && call->account->proxy.n > 0
	                        ? call->account->proxy
	                        : policy->upstream.proxy;
	char *url = call->url.n > 0 ? arena_z(arena, call->url)
	                            : address_join(arena, call->channel, call->path, call->model);

	if (up->easy == NULL)
		start(up);
	up->call = call;
	up->arena = arena;
	up->url = url;
	up->proxy = proxy.n > 0 ? arena_z(arena, proxy) : "";
	up->handed = 0;
	up->sendings = 0;
	up->done = false;
	up->code = CURLE_OK;
	up->error[0] = '\0';
	up->store = text_starts_fold(text_span(url), "https:")
	                ? trust_store(up->trust, policy->upstream.ca_file)
	                : NULL;
	SET(up, CURLOPT_URL, url);
	SET(up, CURLOPT_PROXY, up->proxy);
	SET(up, CURLOPT_CONNECTTIMEOUT_MS, (long)policy->upstream.connect_timeout_ms);
	set_headers(up, arena, call);
	set_body(up, call);
	if (curl_multi_add_handle(up->multi, up->easy) != CURLM_OK) {
		err_why(why, "libcurl takes no call");
		return ERR_IO;
	}
	return ERR_OK;
}

static void
wait_for_more(struct upstream *up, struct watch *watch, int64_t wait_ms, struct mono_ms now)
{
	struct curl_waitfd fds[2] = {{.fd = watch->signal_fd, .events = CURL_WAIT_POLLIN},
	    {.fd = watch->client_fd,
	        .events = watch_client_events(watch) == 0 ? 0 : CURL_WAIT_POLLIN}};
	unsigned n = watch->client_fd < 0 ? 1 : 2;

	if (curl_multi_poll(up->multi, fds, n, (int)wait_ms, NULL) != CURLM_OK)
		return;
	if (fds[0].revents != 0)
		watch_signals(watch, now);
	if (n == 2 && (fds[1].revents != 0 || fds[1].events == 0))
		watch_client(watch, now);
}

/* No thread could be had to look the name up: look it up here, and begin again. Nothing was sent. */
static bool
resolve_here(struct upstream *up)
{
	bool by_proxy = up->proxy[0] != '\0';
	const char *entry;

	if (up->code != CURLE_COULDNT_RESOLVE_HOST && up->code != CURLE_COULDNT_RESOLVE_PROXY)
		return false;
	if (up->resolved != NULL || strstr(up->error, "thread failed to start") == NULL)
		return false;
	entry = resolve_entry(up->arena, text_span(by_proxy ? up->proxy : up->url), by_proxy);
	if (entry == NULL)
		return false;
	up->resolved = curl_slist_append(NULL, entry);
	if (up->resolved == NULL)
		die("no memory");
	SET(up, CURLOPT_RESOLVE, up->resolved);
	curl_multi_remove_handle(up->multi, up->easy);
	return curl_multi_add_handle(up->multi, up->easy) == CURLM_OK;
}

enum upstream_step
upstream_turn(struct upstream *up, struct watch *watch, int64_t wait_ms, struct mono_ms now)
{
	CURLMsg *msg;
	int running = 0, left;

	if (wait_ms > 0)
		wait_for_more(up, watch, wait_ms, now);
	curl_multi_perform(up->multi, &running);
	while ((msg = curl_multi_info_read(up->multi, &left)) != NULL) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		up->done = true;
		up->code = msg->data.result;
	}
	if (up->done && resolve_here(up)) {
		up->done = false;
		up->code = CURLE_OK;
		curl_multi_wakeup(up->multi); /* the next turn need not wait */
	}
	return up->done ? UPSTREAM_DONE : UPSTREAM_RUNNING;
}

/* What libcurl's code means for us. */
static enum classify_transport
transport_of(const struct upstream *up, bool answered, bool reused)
{
	switch ((int)up->code) {
	case CURLE_OK: return TRANSPORT_OK;
	case CURLE_OPERATION_TIMEDOUT: return TRANSPORT_TIMEOUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR: return TRANSPORT_TLS;
	case CURLE_OUT_OF_MEMORY:
		return TRANSPORT_TOO_BIG; /* a header line beyond libcurl's limit */
	case CURLE_ABORTED_BY_CALLBACK:   /* a second sending was refused */
	case CURLE_SEND_FAIL_REWIND: return TRANSPORT_REUSED;
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		if (answered)
			return TRANSPORT_TRUNCATED;
		return reused ? TRANSPORT_REUSED : TRANSPORT_CONNECT;
	default: return answered ? TRANSPORT_TRUNCATED : TRANSPORT_CONNECT;
	}
}

struct upstream_end
upstream_finish(struct upstream *up)
{
	struct upstream_end end = {.transport = TRANSPORT_OK};
	long status = 0, connects = 0, system_error = 0;
	curl_off_t connected = 0;

	curl_easy_getinfo(up->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(up->easy, CURLINFO_NUM_CONNECTS, &connects);
	curl_easy_getinfo(up->easy, CURLINFO_CONNECT_TIME_T, &connected);
	curl_easy_getinfo(up->easy, CURLINFO_OS_ERRNO, &system_error);
	/* a sending that libcurl could not begin again was one on a kept connection */
	end.reused = up->sendings > 1 || (connects == 0 && up->sendings == 1) ||
	             up->code == CURLE_SEND_FAIL_REWIND;
	/* a reset can come before libcurl has seen that the connection stood */
	end.connected = connected > 0 || end.reused ||
	                (up->code == CURLE_COULDNT_CONNECT && system_error == ECONNRESET);
	end.written_whole = up->sendings > 0 && written_whole(up);
	end.transport = transport_of(up, status != 0, end.reused);
	if (up->code != CURLE_OK)
		snprintf(end.text, sizeof end.text, "%s", curl_easy_strerror(up->code));
	/* on HTTP/2 libcurl would keep the connection, and tell the host only with the next request */
	SET(up, CURLOPT_FORBID_REUSE, up->done ? 0L : 1L);
	curl_multi_remove_handle(up->multi, up->easy);
	SET(up, CURLOPT_FORBID_REUSE, 0L);
	curl_slist_free_all(up->headers);
	up->headers = NULL;
	if (up->resolved != NULL) {
		SET(up, CURLOPT_RESOLVE, NULL);
		curl_slist_free_all(up->resolved);
		up->resolved = NULL;
	}
	up->call = NULL;
	return end;
}
