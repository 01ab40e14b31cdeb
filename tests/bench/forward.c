/*
 * forward - the bare forwarder: libfcgi takes a request, libcurl posts it on, the answer goes back.
 *
 *   forward -u http://127.0.0.1:PORT [-s SOCKET -n WORKERS] [-e]
 *
 * No pool, no accounts, no checks: what any prefork gateway of libfcgi and libcurl costs at least.
 * Without -s it serves the listening socket on fd 0 in this process. With -s it binds the unix
 * socket and forks workers, which end with their parent. With -e a worker waits in epoll
 * (EPOLLEXCLUSIVE) before it accepts, which wakes the last idle worker first.
 */
#include "wire.h"

#include <curl/curl.h>
#include <fcgiapp.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_BODY (4 << 20)

struct answer {
	FCGX_Request *to;
	int status;
	bool streaming;
	char type[128];
	struct wire_bytes body;
};

static size_t
take_header(char *p, size_t size, size_t n, void *arg)
{
	struct answer *a = arg;
	size_t bytes = size * n;
	if (bytes > 12 && strncmp(p, "HTTP/", 5) == 0) {
		a->status = (int)strtol(p + 9, NULL, 10);
	} else if (bytes > 15 && strncasecmp(p, "content-type: ", 14) == 0) {
		size_t length = bytes - 14;
		while (length > 0 && (p[14 + length - 1] == '\r' || p[14 + length - 1] == '\n'))
			length--;
		if (length > sizeof a->type - 1)
			length = sizeof a->type - 1;
		memcpy(a->type, p + 14, length);
		a->type[length] = 0;
	}
	return bytes;
}

static size_t
take_body(char *p, size_t size, size_t n, void *arg)
{
	struct answer *a = arg;
	size_t bytes = size * n;
	if (strncmp(a->type, "text/event-stream", 17) != 0) {
		wire_put(&a->body, p, bytes);
		return bytes;
	}
	if (!a->streaming)
		FCGX_FPrintF(a->to->out,
		    "Status: %d\r\nContent-Type: %s\r\nCache-Control: no-cache\r\n\r\n", a->status,
		    a->type);
	a->streaming = true;
	if (FCGX_PutStr(p, (int)bytes, a->to->out) < 0 || FCGX_FFlush(a->to->out) < 0)
		return 0;
	return bytes;
}

static struct curl_slist *
headers_of(const FCGX_Request *r)
{
	char authorization[512];
	const char *given = FCGX_GetParam("HTTP_AUTHORIZATION", r->envp);
	snprintf(authorization, sizeof authorization, "Authorization: %s",
	    given != NULL ? given : "Bearer sk-upstream");
	struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");
	list = curl_slist_append(list, authorization);
	list = curl_slist_append(list, "Expect:");
	return curl_slist_append(list, "Accept:");
}

static int
body_read(FCGX_Request *r, char *body)
{
	int total = 0;
	for (int n; total < MAX_BODY; total += n) {
		n = FCGX_GetStr(body + total, MAX_BODY - total, r->in);
		if (n <= 0)
			break;
	}
	return total;
}

static void
serve_one(CURL *curl, FCGX_Request *r, struct answer *a, const char *upstream, char *body)
{
	int length = body_read(r, body);
	char url[512];
	const char *path = FCGX_GetParam("REQUEST_URI", r->envp);
	snprintf(url, sizeof url, "%s%s", upstream, path != NULL ? path : "/");
	struct curl_slist *headers = headers_of(r);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)length);
	*a = (struct answer){.to = r, .status = 502, .body = {a->body.p, 0, a->body.cap}};
	if (curl_easy_perform(curl) != CURLE_OK && !a->streaming) {
		a->status = 502;
		a->body.n = 0;
	}
	if (!a->streaming) {
		FCGX_FPrintF(r->out, "Status: %d\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
		    a->status, a->type, (int)a->body.n);
		FCGX_PutStr(a->body.p, (int)a->body.n, r->out);
	}
	FCGX_Finish_r(r);
	curl_slist_free_all(headers);
}

static void
worker_run(int listener, const char *upstream, bool in_epoll)
{
	FCGX_Request r;
	FCGX_InitRequest(&r, listener, 0);
	struct answer a = {.status = 0};
	char *body = wire_grown(NULL, MAX_BODY);
	CURL *curl = curl_easy_init();
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, &a);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &a);

	struct epoll_event e = {.events = EPOLLIN | EPOLLEXCLUSIVE};
	int epoll = in_epoll ? epoll_create1(EPOLL_CLOEXEC) : -1;
	if (in_epoll)
		epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e);
	for (;;) {
		if (in_epoll)
			epoll_wait(epoll, &e, 1, -1);
		/* With epoll the socket does not block: another worker may have been quicker. */
		if (FCGX_Accept_r(&r) == 0)
			serve_one(curl, &r, &a, upstream, body);
		else if (!in_epoll)
			return;
	}
}

int
main(int argc, char **argv)
{
	const char *upstream = NULL, *path = NULL;
	long workers = 1;
	bool in_epoll = false;
	for (int o; (o = getopt(argc, argv, "u:s:n:e")) != -1;) {
		switch (o) {
		case 'u': upstream = optarg; break;
		case 's': path = optarg; break;
		case 'n': workers = wire_option(optarg, 1, 1024); break;
		case 'e': in_epoll = true; break;
		default: return 2;
		}
	}
	if (upstream == NULL || strncmp(upstream, "http://127.", 11) != 0) {
		fputs("usage: forward -u http://127.0.0.1:PORT [-s SOCKET -n WORKERS] [-e]\n",
		    stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	FCGX_Init();
	curl_global_init(CURL_GLOBAL_DEFAULT);
	int listener = path == NULL ? 0 : FCGX_OpenSocket(path, 1024);
	if (listener < 0)
		return 1;
	if (in_epoll)
		fcntl(listener, F_SETFL, O_NONBLOCK);
	for (long i = 0; path != NULL && i < workers; i++) {
		if (fork() != 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		worker_run(listener, upstream, in_epoll);
		return 0;
	}
	if (path == NULL)
		worker_run(listener, upstream, in_epoll);
	while (wait(NULL) > 0)
		continue;
	return 0;
}
