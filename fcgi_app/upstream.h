/*
 * upstream - one HTTP call to a provider over libcurl; the only file that knows libcurl, and the only one but redact
 * that reads a key.
 *
 * One easy and one multi handle per process, reused for connections' sake. The rules that libcurl does not keep by
 * itself: no redirect, no proxy from the environment, no Expect, no POST sent twice. A second sending inside libcurl
 * (a kept connection that died) is allowed only while the first was not written whole.
 *
 * HTTP/2    where the host offers it with TLS
 * Keys      go as the provider wants them. Anthropic's that begin with "sk-ant-oat", and tokens of Entra (JWT) on
 *           azure, go as "Authorization: Bearer". An account with a header of its own for that sends no key beside.
 * Source    SPEC.md section 5; formats.md 0.5, C.1, D.7; cases.md "libcurl 7.88.1 defaults"
 */
#ifndef UPSTREAM_H
#define UPSTREAM_H

#include "classify.h"
#include "trust.h"
#include "watch.h"

struct upstream;

struct upstream_header {
	const char *name;
	struct span value;
};

struct upstream_call {
	const struct conf_channel *channel;
	const struct conf_account *account;
	const char *path;  /* below base_url: see address.h */
	struct span model; /* as sent; in the address of some */
	/* Of errands only: an address of the operator's own in place of base_url and path; GET, without a body; */
	struct span url;
	bool get;
	const struct conf_policy
	    *policy; /* where channel and account are NULL: no key goes along */
	struct span body;
	struct span more[2];      /* it goes on with these */
	struct span content_type; /* empty: JSON */
	bool any;                 /* the answer may be of any type */
	bool stream;
	/* Of the client, from the allow-list; what the account has of its own counts instead. */
	const struct upstream_header *headers;
	size_t nheaders;
	/* One header line of the current block, without its end; a status line starts a new block. */
	void (*on_header)(struct span line, void *arg);
	/* False ends the transfer. */
	bool (*on_body)(struct span bytes, void *arg);
	void *arg;
};

enum upstream_step {
	UPSTREAM_RUNNING,
	UPSTREAM_DONE,
};

struct upstream_end {
	enum classify_transport transport;
	bool written_whole; /* the request reached the wire completely */
	bool connected;     /* a connection was there */
	bool reused;        /* ... that had served before */
	char text[160];     /* what went wrong, for people; names no host, path or key */
};

/* Before the fork: libcurl does what it does once. Nothing stays open. */
void upstream_warm(void);

/* After fork. `trust` outlives it. */
struct upstream *upstream_new(const struct trust *trust);
void upstream_free(struct upstream **up);
/* For the next configuration; connections stay. */
void upstream_use(struct upstream *up, const struct trust *trust);

enum err upstream_begin(struct upstream *up, struct arena *arena, const struct upstream_call *call,
    struct why *why) MUST_CHECK;
/*
 * Move bytes; wait up to wait_ms for more, for the client (watch->client_gone) or a signal. The callbacks run in here.
 */
enum upstream_step upstream_turn(
    struct upstream *up, struct watch *watch, int64_t wait_ms, struct mono_ms now);
/* End it, finished or not (an unfinished connection is closed), and tell how it went. */
struct upstream_end upstream_finish(struct upstream *up);

#endif
