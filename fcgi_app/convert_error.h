/*
 * convert_error - errors of an upstream where the client is to see them as its own API has them.
 *
 * Source    SPEC.md 4.3; formats.md B.5, C.8, E.9
 */
#ifndef CONVERT_ERROR_H
#define CONVERT_ERROR_H

#include "convert.h"

/* An error document of another API than the client's, whose message and code are kept. */
struct convert_error {
	int status;
	bool
	    context_length; /* the prompt is too long: clients shorten it by themselves when they are told in these words */
	struct span body, content_type;
	const char *message, *code; /* where the body does not tell; may be empty */
};
void convert_error_body(
    const struct convert *c, const struct convert_error *error, struct buf *out);

/* Would the client take this event of a stream that passes as it is for an error? If not, it were a clean end to it. */
bool convert_error_is_own(const struct convert *c, const struct sse_event *event);

/* What must be known of a stream that passes as it is, so that an error ends it in its own grammar. */
struct convert_error_trail {
	int64_t sequence; /* of the last event, -1 = none */
	struct span id;   /* of the response */
};
void convert_error_note(
    const struct convert *c, struct convert_error_trail *trail, const struct sse_event *event);
void convert_error_event(const struct convert *c, const struct convert_error_trail *trail,
    int status, const char *code, struct span message, struct buf *out);

#endif
