/*
 * dialect - what the pipeline must know of one API's wire format: data and small functions, no I/O.
 *
 * Formats   one const struct dialect per API; the pipeline never asks "is this chat?", it asks the
 *           dialect
 * Memory    nothing is kept; strings are decoded into the given arena or borrowed
 * Source    formats.md A, D; SPEC.md 4.3, 5
 */
#ifndef DIALECT_DIALECT_H
#define DIALECT_DIALECT_H

#include "base/scan.h"
#include "dialect/sse.h"

struct dialect_usage {
	bool seen;      /* the upstream gave figures */
	bool estimated; /* ... or we guessed them */
	/* -1 = not given; prompt includes cached */
	int64_t prompt, completion, cached, cache_write, reasoning, total;
	bool has_credit;
	int64_t credit_micros; /* usage.credit */
};

/* What one event of an answer stream is. */
enum dialect_part {
	PART_NOTHING,  /* comment, ping, empty: passes, does not commit */
	PART_PREAMBLE, /* role chunk and the like: held until the first content */
	PART_CONTENT,  /* text, tool call, refusal, reasoning: commits */
	PART_FINISH,   /* carries a finish reason (and maybe content): commits */
	PART_USAGE,    /* only usage: withheld from a client that did not ask */
	PART_ERROR,    /* in-band error */
	PART_END,      /* terminal event */
};

/* What is gathered over one answer, streamed or plain. */
struct dialect_tap {
	struct dialect_usage usage;
	bool finished;        /* a finish reason was seen */
	bool ended;           /* the terminal event was seen: what follows it is PART_NOTHING */
	bool content;         /* some content was seen */
	size_t content_bytes; /* of text seen, for estimates */
	unsigned invalid;     /* events that were not JSON: the last one may be a torn one */
	char finish[32];
	char model[128]; /* as the answer names it */
};

struct dialect_request; /* read.h */

struct dialect {
	const char *name;  /* "chat" */
	const char *path;  /* below base_url: "/chat/completions" */
	bool judged;       /* feeds health; false: 404, 405, 501 are the caller's fault */
	bool streams;      /* "stream": true has a meaning */
	bool usage_option; /* stream_options.include_usage exists */
	bool media;        /* an answer may be of any type, and passes as it comes */
	bool forms;        /* a request may be multipart/form-data */
	/* What this API asks of a request beside what dialect_read(), who calls it, asks of all. */
	enum err (*check)(const struct dialect_request *request, struct why *why);
	/*
	 * Judge one event and add what it tells to *tap. Invalid JSON is PART_CONTENT (it passes as
	 * it is); valid JSON of a shape that is not known is PART_PREAMBLE.
	 */
	enum dialect_part (*event)(const struct sse_event *event, struct dialect_tap *tap);
	/* Does a plain 200 body have the shape of an answer? Adds usage and finish to *tap. */
	bool (*answer)(struct span body, struct dialect_tap *tap);
	/* The end marker of a stream, as bytes: "data: [DONE]\n\n"; "" where there is none. */
	const char *end_marker;
	/*
	 * An error document, and an error event, in this API's shape. Type NULL: the one that goes
	 * with the status; code NULL: none.
	 */
	void (*error_body)(
	    struct buf *out, int status, const char *type, const char *code, struct span message);
	void (*error_event)(
	    struct buf *out, int status, const char *type, const char *code, struct span message);
};

extern const struct dialect dialect_chat;
extern const struct dialect dialect_completions;
extern const struct dialect dialect_embeddings;
extern const struct dialect dialect_moderations;
extern const struct dialect dialect_images;
extern const struct dialect dialect_image_edits;
extern const struct dialect dialect_image_variations;
extern const struct dialect dialect_speech;
extern const struct dialect dialect_transcriptions;
extern const struct dialect dialect_translations;
extern const struct dialect dialect_messages;
extern const struct dialect dialect_count_tokens;
extern const struct dialect dialect_responses;
extern const struct dialect dialect_run; /* of clients alone: it judges no answer */

/* The error type that OpenAI's API uses with a status: "invalid_request_error" and the like. */
const char *dialect_error_type(int status);

/* Rough tokens of n bytes of text, where an upstream told nothing. */
int64_t dialect_guess_tokens(size_t bytes);

/*
 * Make figures agree, as far as they are known: what a total tells, cached tokens that a host counts
 * beside the prompt, reasoning beside the completion; the total is the sum. Again it changes nothing.
 */
void dialect_add_up(struct dialect_usage *usage);

/*
 * At the end of an answer: guess what is missing (estimated), and make the figures agree. On return
 * prompt and completion are known, prompt includes cached, completion includes reasoning, total is
 * their sum. A second call changes nothing. `prompt_bytes` is the text of the request.
 */
void dialect_settle(struct dialect_tap *tap, size_t prompt_bytes);

/* A tap with nothing in it. */
void dialect_tap_init(struct dialect_tap *tap);

#endif
