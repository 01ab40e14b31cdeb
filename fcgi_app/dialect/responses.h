/*
 * responses - what the files of OpenAI's Responses API share: reading JSON, figures, ids, items.
 *
 * Ids       of responses and items are "resp_", "msg_", "rs_", "fc_", "ctc_" and hex digits that follow
 *           from the request's id and the item's place: the same answer has the same ids
 * Seals     encrypted_content of an item that we make holds a seal (seal.h) as it is; a thought
 *           without words of another wire has RESPONSES_REDACTED before it
 * Source    formats.md B, E.6 to E.13
 */
#ifndef DIALECT_RESPONSES_H
#define DIALECT_RESPONSES_H

#include "base/emit.h"
#include "dialect/dialect.h"
#include "dialect/flow.h"

#define RESPONSES_REDACTED "rd."

enum dialect_part responses_event(const struct sse_event *event, struct dialect_tap *tap);
bool responses_answer(struct span body, struct dialect_tap *tap);

/* Lax, and made once: for what upstreams send. False: no JSON. */
bool responses_scan(struct scan_plan **plan, const char *const *paths, size_t n, struct span text,
    struct scan_value *values_out);
/* A member of an object, null being absent. */
struct scan_value responses_member(const struct scan_value *object, const char *name);
/* The decoded string; empty for all other types. */
struct span responses_string(struct arena *arena, const struct scan_value *value);

/* Add a usage object, with both kinds of details. */
void responses_usage(const struct scan_value *object, struct dialect_usage *usage);

/* `prefix` and 32 hex digits. */
struct span responses_id(struct arena *arena, const char *prefix, struct span seed, size_t n);

/* What form_tool_name() makes of a tool's name and name space on this wire. */
struct span responses_tool_name(struct arena *arena, struct span name, struct span namespace);

/*
 * Parts of a request, as a client writes them and as an answer repeats them. With `loss` the names
 * are those that are sent, and what cannot be sent is named; without it all is as the client had it.
 */
struct responses_out {
	struct emit e;
	struct arena *arena;
	const struct form *form;
	struct form_loss *loss;
	struct why *why;
	const struct form_target *target;
	enum err err; /* the first thing that cannot be written */
};

/* "tools", only where there are some; the number written. */
size_t responses_emit_tools(struct responses_out *o);
/* The value of "tool_choice". */
void responses_emit_choice(struct responses_out *o);
/* "text": {"format", "verbosity"}. */
void responses_emit_text(struct responses_out *o);
/* The word for an effort; NULL where there is none. */
const char *responses_effort(const struct form *form);
/* An extra of the request, by name; NULL if it was not there. */
const struct form_extra *responses_extra(const struct form *form, const char *name);
/* The texts of the turns that are not of the client's list. */
struct span responses_instructions(struct arena *arena, const struct form *form);
/* The array "input". */
void responses_emit_input(struct responses_out *o);
void responses_drop(struct responses_out *o, const char *name);
/* A 400: the first counts. */
void responses_refuse(struct responses_out *o, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* An item of an answer. */
enum responses_kind { RESPONSES_MESSAGE, RESPONSES_REASONING, RESPONSES_CALL, RESPONSES_CUSTOM };

struct responses_part {
	bool refusal;
	struct span text;
	struct span annotations; /* raw JSON array, or empty */
};

struct responses_item {
	enum responses_kind kind;
	struct span id;
	const char *status;                 /* NULL: none (reasoning) */
	const struct responses_part *parts; /* message; reasoning: summary */
	size_t nparts;
	struct span seal;                                /* reasoning */
	struct span call_id, name, namespace, arguments; /* calls; arguments may be input */
};

void responses_emit_item(struct emit *e, const char *key, const struct responses_item *item);
void responses_emit_part(struct emit *e, const char *key, const struct responses_part *part);
/* {"url", ...} of a step as the annotation that clients know. */
void responses_emit_citation(struct emit *e, const char *key, struct span raw);
/* Name and kind of a call as the client knows its tool. Custom: the arguments hold its "input". */
void responses_restore(
    const struct form_loss *loss, struct responses_item *item, bool *wrapped_out);
/* "input" of wrapped arguments; the arguments themselves where there is none. */
struct span responses_unwrap(struct arena *arena, struct span arguments);

/* The response object. */
struct responses_object {
	const struct flow_job *job;
	struct span id;
	const char *status; /* "in_progress", "completed" ... */
	const char *incomplete_reason;
	struct span output; /* raw JSON array */
	const struct dialect_usage *usage;
	const char *error_code;
	struct span error_message;
};

void responses_emit_object(struct emit *e, const char *key, const struct responses_object *o);
/* "completed" or "incomplete", and why. */
const char *responses_status(enum flow_finish finish, const char **reason_out);
/* The word for a failure in "error.code". */
const char *responses_error_code(int status, const char *code);

#endif
