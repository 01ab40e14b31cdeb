/*
 * classify - from what came back to a verdict: rules of the channel, then the provider's table, then the generic one.
 *
 * Bodies are asked before bare statuses. The same table serves error bodies inside HTTP 200 and in-band error events.
 * Only error fields are read, never echoed request text. Pure: the clock is a parameter, nothing is logged.
 *
 * Source    SPEC.md section 6; formats.md F
 */
#ifndef CLASSIFY_H
#define CLASSIFY_H

#include "conf/conf.h"
#include "reset.h"
#include "verdict.h"

/* How a transfer ended below HTTP. */
enum classify_transport {
	TRANSPORT_OK,
	TRANSPORT_CONNECT,   /* resolve, connect, TLS, or broken before an answer */
	TRANSPORT_TIMEOUT,   /* any of the four */
	TRANSPORT_TRUNCATED, /* the answer began and did not end */
	TRANSPORT_TOO_BIG,   /* a header line, an event or a body beyond its limit */
	TRANSPORT_REUSED,    /* no answer on a connection that had served before */
	TRANSPORT_TLS,       /* certificate not accepted: a fault of the channel */
};

struct classify_answer {
	enum classify_transport transport;
	int status; /* of the final header block; 0 = none */
	struct span content_type;
	struct span
	    body; /* error body, or the data of an in-band error event; may be cut at 64 kB */
	bool
	    in_band; /* the body is an event of a 200 stream, or a 200 body without the shape of an answer */
	const struct reset_headers *headers;
	bool judged;       /* the endpoint is one of chat, messages, responses */
	struct span model; /* as sent upstream; for "names this model" */
};

struct classify_finding {
	enum verdict verdict;
	struct reset_time reset; /* stated reset, if any */
	int status;              /* effective: an in-band 429 behaves like a real one */
	const char *
	    rule; /* static or in the arena: which rule decided: "generic:code:insufficient_quota" */
	char message[256]; /* the upstream's words, cleaned; "" = none */
	char code[64];
};

void classify_answer(struct arena *arena, const struct conf_channel *channel,
    const struct classify_answer *answer, struct wall_ms now, struct classify_finding *finding_out);

#endif
