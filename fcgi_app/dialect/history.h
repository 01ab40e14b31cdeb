/*
 * history - a conversation of the Responses API as it is kept, and as the input that it becomes again.
 *
 * Items stay the JSON that client and answer had, so nothing is lost whichever API serves next; but
 *
 * Ids       of messages and calls go: a host takes them for items that it keeps itself
 * Reasoning that only a host of this API can read is marked with its channel (seal.h) and goes back there alone. What
 *           such a host gave without encrypted_content is of use to nobody, and our own to no host of this API.
 *
 * Document  {"channel","account","native","stored","items":[...],"response":{...}}, and "output":[...] where the response
 *           that the client got lacks seals
 * Memory    in the arena, or borrowed from the texts given
 * Source    SPEC.md 13; formats.md B.3, B.6, B.7, E.0 rule 7; cases.md CONV-13, TOOL-14
 */
#ifndef DIALECT_HISTORY_H
#define DIALECT_HISTORY_H

#include "dialect/read.h"

struct history {
	struct span channel, account; /* that gave the answer */
	bool native;                  /* ... and speaks this API */
	bool stored;                  /* ... and keeps it, too, as it said */
	struct span items;            /* raw array: what led to it */
	struct span response;         /* raw object, as the client got it */
	struct span output;           /* raw array: its items with their seals; empty: its own */
};

/* What a client's answer says of itself. False: nothing that could be kept. */
struct history_answer {
	struct span id, response;
	bool stored; /* "store": true */
};
bool history_answer(struct arena *arena, struct span response, struct history_answer *answer_out);
/* The same of the events that end a stream. */
bool history_events(struct arena *arena, struct span events, struct history_answer *answer_out);

void history_write(const struct history *history, struct buf *out);
/* False: it is none. */
bool history_read(struct arena *arena, struct span text, struct history *history_out);

/* Items and answer as the items of the next request: without brackets, marked. */
struct span history_carry(struct arena *arena, const struct history *history);
/* The request's own, without brackets; a text becomes a message. */
struct span history_own(struct arena *arena, const struct dialect_request *request);
/* One list after the other. */
struct span history_join(struct arena *arena, struct span a, struct span b);

/* Carried items as this channel may have them. `native`: it speaks this API. */
struct span history_fit(struct arena *arena, struct span carried, bool native, struct span channel);
/* The body with these items as its input, and without previous_response_id. */
struct span history_body(
    struct arena *arena, const struct dialect_request *request, struct span items);

#endif
