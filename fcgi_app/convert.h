/*
 * convert - a request on its way from the client's API to the one that a channel speaks.
 *
 * Same wire     the body passes with only the edited values replaced: the model's name, stream_options, and what the
 *               channel's quirks and the target's defaults ask for; of a conversation that is not the client's alone also
 *               the list (convert_turns.h), and "thinking" where it wants thoughts that are not there
 * Another wire  the body is read once into the one form, checked, and written for each channel that it is aimed at
 * Errors        ERR_BAD_INPUT: the request cannot be put into the channel's API; the text is the client's 400. It comes
 *               before anybody is asked.
 * Memory        in the request's arena
 * Source        SPEC.md 4.3, 4.4, 5; formats.md A.9, E
 */
#ifndef CONVERT_H
#define CONVERT_H

#include "conf/conf.h"
#include "dialect/flow.h"
#include "request.h"

/* The way to the channel that it was aimed at last. */
struct convert_way {
	bool same; /* the channel speaks the client's API */
	const struct conf_channel *channel;
	const struct dialect *dialect; /* the channel's: it judges the answer */
	struct span model;             /* its name there */
	struct span body;              /* as it is to be sent */
	struct span more[2];           /* it goes on with these */
	bool stream;                   /* it asks for a stream */
	struct span dropped;           /* what could not be kept: for X-Sluice-Dropped */
	struct form_loss loss;
};

struct convert_target {
	const struct conf_channel *channel;
	struct span model;                  /* its name there */
	int64_t max_output;                 /* tokens that it may write at most, 0 = unknown */
	const struct conf_header *defaults; /* fields for requests that lack them: name, raw JSON */
	size_t ndefaults;
};

struct convert {
	struct arena *arena;
	const struct request *rq;
	int64_t created_s; /* Unix seconds, of answers that we make */
	struct convert_way way;
	/* of another wire only */
	enum { CONVERT_UNREAD, CONVERT_READ, CONVERT_UNREADABLE } state;
	struct form form;
	struct why fault; /* of the unreadable */
	/* of responses: given by who keeps them */
	struct span response_id, previous_id;
	bool store;
	/* given by who keeps conversations */
	const struct form *say; /* what is written in place of `form`; NULL: `form` */
	size_t say_bytes;       /* that it may have beyond the client's body */
	bool gathers;           /* the answer is wanted whole, too: forward_outcome.answer */
	struct convert_target target;
	struct span account; /* that is asked, given with each attempt: run tells it */
};

/* `rq` is of an endpoint that forwards, and outlives it. */
void convert_begin(
    struct convert *c, struct arena *arena, const struct request *rq, int64_t created_s);

enum err convert_aim(
    struct convert *c, const struct convert_target *target, struct why *why) MUST_CHECK;
/* Once more for the same target: what is said has changed. */
enum err convert_again(struct convert *c, struct why *why) MUST_CHECK;

/* `form` from the body, unless that was done. */
enum err convert_read(struct convert *c, struct why *why) MUST_CHECK;
/* For convert_turns.c: how the channel's writer is told what to write; and how large that may be. */
struct form_target convert_form_target(
    const struct convert *c, const struct convert_target *target);
size_t convert_room(const struct convert *c);

#endif
