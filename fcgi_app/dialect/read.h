/*
 * read - what routing must know of a request body, found in one pass over its bytes.
 *
 * Every value is a view of the body as it stands, so edit.h can replace just its bytes. Members
 * that are not named here are nobody's business and pass as they are; those that are named may
 * stand only once.
 *
 * Errors    ERR_BAD_INPUT with a text for the client: "'messages' must be an array of message
 *           objects"
 * Source    SPEC.md 4.3, 11; formats.md A.1, D.1, D.2, D.4; cases.md REQ-11, JSON-07
 */
#ifndef DIALECT_READ_H
#define DIALECT_READ_H

#include "dialect/dialect.h"

/*
 * Absent members are SCAN_ABSENT; types are checked where a comment says so, for all others any
 * type is possible.
 */
struct dialect_request {
	struct span body;
	struct scan_value model;  /* not empty, no control characters; absent where allowed */
	struct scan_value stream; /* true, false, null; checked where the dialect streams */
	struct scan_value stream_options; /* object, null; checked where the dialect has it */
	struct scan_value
	    include_usage; /* in stream_options: true, false, null; checked likewise */
	struct scan_value max_tokens, max_completion_tokens, max_output_tokens, n, user;
	struct scan_value messages, prompt, input; /* as the dialect's check() wants them */
	/* keys of a session and of a task */
	struct scan_value metadata_conversation_id, metadata_conversation_id_camel;
	struct scan_value metadata_user_id, metadata_task_type;
	struct scan_value conversation_id, conversation_id_camel, session_id;
	struct scan_value prompt_cache_key, previous_response_id;
	struct scan_value task_type; /* of run */
};

/* Check the body strictly as JSON and for what the dialect wants, and find the values. */
enum err dialect_read(const struct dialect *dialect, struct span body,
    struct dialect_request *request_out, struct why *why) MUST_CHECK;

/* The value at a dotted path; NULL if it is none that dialect_read() looks for. */
const struct scan_value *dialect_value(const struct dialect_request *request, struct span path);

/* Tokens that the answer may have, as the client says; -1 = it does not. */
int64_t dialect_answer_limit(const struct dialect_request *request);

/* For the check() functions. Of the model: a non-empty string without control characters. */
enum err dialect_check_model(const struct dialect_request *request, struct why *why) MUST_CHECK;
/* The messages: an array of objects, at least one. */
enum err dialect_check_messages(const struct dialect_request *request, struct why *why) MUST_CHECK;
/* The member `name` is there, and a string or an array. */
enum err dialect_check_text(
    const struct scan_value *value, const char *name, struct why *why) MUST_CHECK;

#endif
