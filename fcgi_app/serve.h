/*
 * serve - one request from its first byte to its log line; the only loop over attempts.
 *
 *     request -> route -> { pick -> forward -> settle }* -> respond -> log line
 *
 * Rules     committed is final; a lease is taken once and settled once; no transaction spans the network
 * Source    SPEC.md section 5
 */
#ifndef SERVE_H
#define SERVE_H

#include "base/log.h"
#include "board.h"
#include "dialect/tokens.h"
#include "exchange.h"
#include "pool.h"
#include "session.h"
#include "upstream.h"

#define SERVE_HARD_MAX 16
#define SERVE_UNCOUNTED_MAX 16
#define SERVE_MODELS_MAX 4
#define SERVE_REALM_MAX 65

/* What a process needs to serve; one per worker, the same for all its requests. */
struct serve {
	const struct conf *conf;
	const struct pool *pool;
	struct env *env;
	const struct slot *slot;
	struct upstream *up;
	struct watch *watch;
	struct log *log;
	struct session_secret secret; /* for session keys */
	bool has_secret;
	bool degraded;   /* too few accounts are active, or an operator said so */
	bool hard_facts; /* something must go into the book before the next request ... */
	struct account_ref
	    hard[SERVE_HARD_MAX]; /* ... of these accounts, besides what is of channels */
	unsigned nhard;           /* may be more than there is room for */
	bool unreleased; /* a settled lease still stands in the store: tried again every second */
	struct arena *arena;   /* of the running request */
	struct buf body;       /* kept between requests while it is small */
	uint64_t random;       /* state of the generator */
	struct tokens *tokens; /* once it was sought (tokenizer.h); NULL = all is estimated */
	bool tokens_sought, tokens_lost;
	/* of errands (errand.h): where requests wait, -1 = nowhere; since when we are away from it */
	int listen_fd;
	struct mono_ms away_since;
	struct board *board; /* of the pool, NULL = there is none; and our place there */
	unsigned place;
	/* channels of which it is known, until then, that they cannot count tokens (count.h) */
	struct serve_uncounted {
		uint16_t channel;
		uint64_t generation; /* of the configuration that was in force */
		struct mono_ms until;
	} uncounted[SERVE_UNCOUNTED_MAX];
	unsigned nuncounted; /* noted in all: the oldest gives way */
	/* /v1/models as it was told lately, by shape and realm (page_models.h) */
	struct serve_models {
		struct buf text; /* no room yet: nothing was */
		char realm[SERVE_REALM_MAX];
		bool anthropic;
		uint64_t generation, newest; /* of the configuration; transaction of the store */
		struct wall_ms at;
	} models[SERVE_MODELS_MAX];
	unsigned nmodels;                /* kept in all: the oldest gives way */
	struct mono_ms classifier_rests; /* it was late: not asked until then (task_of.h) */
	struct mono_ms notes_from;       /* no summary is asked for before: the last one failed */
	int alert_pid; /* a command of alerts.command that still runs (alert.h), 0 = none */
	struct mono_ms alert_until; /* ... and is ended then */
	uint64_t generation;        /* of the configuration */
	struct wall_ms loaded_at;
	const char *conf_error;  /* why the file on disk is not in force, or NULL */
	const char *store_error; /* why there is no store: env is NULL then, and requests get 503 */
	char checked_root[512];  /* the DOCUMENT_ROOT that was last looked at */
	bool exposed;            /* the configuration lies below it */
};

void serve_exchange(struct serve *s, struct exchange *x);

#endif
