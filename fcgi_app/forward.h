/*
 * forward - one attempt: send the request to one account, watch the answer, relay it once it commits.
 *
 * A stream is held back until its first content (at most 1 MiB of preamble): until then a failure leaves the client
 * untouched and another account may be asked. From then on whole events are relayed as they came, with a comment line
 * as heartbeat while the upstream is silent. A plain answer, and every error body, is gathered and not relayed here.
 * What the channel says in another API, or in another shape than the client wants, goes through convert_flow.
 *
 * Ends      the terminal event ends a stream even if the upstream keeps the line open; a stream without one but with a
 *           finish reason gets the end marker; anything else after the commit ends in an error event
 * Time-outs connect (libcurl), first byte, first content, idle; none on the whole. A client that has gone, or the end
 *           of the drain, ends it at once.
 * Source    SPEC.md section 5
 */
#ifndef FORWARD_H
#define FORWARD_H

#include "convert.h"
#include "redact.h"
#include "respond.h"
#include "upstream.h"

struct forward_task {
	struct upstream *up;
	struct arena *arena;
	const struct conf *conf;          /* for its keys: none may reach the client */
	const struct upstream_call *call; /* callbacks are filled in here */
	const struct dialect *dialect;    /* the channel's */
	const struct convert *convert;    /* NULL: what comes is passed, whatever it is */
	bool stream; /* the client wants one; `call` tells what the channel is asked for */
	struct respond *respond;
	struct watch *watch;
	struct span model; /* as sent */
	bool wants_usage;  /* the client asked for the usage chunk */
	/* The events that end a stream well, before the client sees them, redacted; NULL: nobody wants them. */
	void (*ending)(void *arg, struct span events);
	void *ending_arg;
	struct mono_ms (*clock)(void);
	struct wall_ms (*wall)(void);
};

struct forward_outcome {
	struct classify_finding finding;
	enum classify_transport transport;
	bool written_whole, connected;
	struct dialect_tap tap;
	int status; /* of the upstream, 0 = none */
	struct span content_type;
	struct span body; /* plain answer, as the client is to get it, or error body; redacted */
	bool whole;       /* the body is an answer that was converted or gathered: it is JSON */
	struct span upstream_id;
	struct span retry_after; /* as the upstream sent it */
	const struct flow_answer
	    *answer; /* whole, where convert->gathers; NULL: not whole by now */
	struct mono_ms started, first_byte, first_content, ended;
	bool stopped; /* the drain was over */
};

void forward_send(const struct forward_task *task, struct forward_outcome *outcome_out);

#endif
