/*
 * form - a conversation request in the one form that every dialect is read into and written from.
 *
 * Three readers fill it, three writers make an upstream's body of it, so a conversion is a reader
 * and a writer, whatever the pair. Bytes on the same wire never come here: they pass as they are.
 *
 * Text      decoded; lone surrogates are U+FFFD. What only the other side understands (schemas,
 *           arguments of calls, numbers) stays raw JSON: digits, escapes and the order of members
 *           are kept.
 * Turns     in the client's order. A turn of FORM_TOOL holds results alone, all that stand together;
 *           calls that belong to one answer stand in one turn of FORM_ASSISTANT. Readers merge and
 *           split for that; what a wire wants beyond it (alternation, leading system texts) is its
 *           writer's business.
 * Null      is like absent
 * Members   that are not of the form go to `extras` by name. A writer takes those that its API knows
 *           and names all others as dropped: nothing vanishes silently.
 * Memory    everything borrows from the body or lives in the arena
 * Errors    ERR_BAD_INPUT names the message by its index in the client's list, and the field:
 *           "'messages[3].tool_calls[0].function.arguments' ..."
 * Source    formats.md A to C, E; SPEC.md 5, 13; cases.md CONV, TOOL
 */
#ifndef DIALECT_FORM_H
#define DIALECT_FORM_H

#include "base/arena.h"
#include "base/scan.h"

/*
 * Messages, parts of them, tools, parameters: each takes far more memory than the few bytes that it may be written in.
 * Who reads a body looks first. (Anthropic takes 100,000 messages.)
 */
#define FORM_ITEMS_MAX 65536

#define FORM_AT_KEPT \
	(SIZE_MAX - 1) /* `at` of turns that the gateway keeps: in no list of the client */

enum form_wire {
	FORM_CHAT,
	FORM_MESSAGES,
	FORM_RESPONSES,
	FORM_WIRE__MAX, /* those that an upstream may speak */
	FORM_RUN =
	    FORM_WIRE__MAX, /* of clients alone: read as the chat request that it stands for */
};
#define FORM_CLIENT_WIRES (FORM_RUN + 1)

enum form_role { FORM_SYSTEM, FORM_DEVELOPER, FORM_USER, FORM_ASSISTANT, FORM_TOOL };

enum form_kind {
	FORM_TEXT,
	FORM_REFUSAL,
	FORM_IMAGE,
	FORM_DOCUMENT,
	FORM_AUDIO,
	FORM_THOUGHT, /* reasoning: its text, and perhaps what only its maker can read */
	FORM_CALL,    /* of a tool, by the assistant */
	FORM_RESULT,  /* of a call */
	FORM_OPAQUE,  /* raw JSON that only its own wire knows: server tools and their results */
};

/* An image, document or sound: one of url, data, file_id. */
struct form_media {
	struct span url;
	struct span data;       /* base64 */
	struct span plain;      /* a document that is text */
	struct span media_type; /* "image/png"; normalised, lower case */
	struct span file_id;
	struct span title;  /* file name */
	struct span detail; /* of images: "low" ... */
};

struct form_thought {
	/* what its maker gave to be handed back: a signature (messages), encrypted content
	 * (responses). Sealed: seal.h says whose it is. `text` of the part may be empty. */
	struct span seal;
	bool redacted;  /* redacted_thinking: there is no text, only the seal */
	struct span id; /* of a responses item */
};

struct form_call {
	struct span id, name;
	struct span
	    arguments; /* JSON text as it stands, an object; "{}" for none; custom: plain text */
	bool custom;   /* free text instead of JSON */
	bool made;     /* the id is: its host gave none that tells it apart */
	struct span item_id; /* of responses: "fc_..." */
	struct span namespace;
};

struct form_result {
	struct span id;   /* of its call */
	struct span name; /* of its call, where known */
	bool is_error, custom;
	const struct form_part *parts; /* texts, images, documents */
	size_t nparts;
};

struct form_part {
	enum form_kind kind;
	size_t at; /* index of its own message or item in the client's list, as in a turn */
	size_t in; /* in that one's "content", "tool_calls", "output"; SIZE_MAX: in no list */
	size_t of; /* part of a result: that one's `in`, or 0; SIZE_MAX: of none */
	struct span text;          /* TEXT, REFUSAL, THOUGHT; OPAQUE: raw */
	struct span cache_control; /* raw JSON, or empty */
	struct form_media media;
	struct form_thought thought;
	struct form_call call;
	struct form_result result;
};

struct form_turn {
	enum form_role role;
	size_t at; /* index in the client's list; SIZE_MAX: not of it ("system", "instructions") */
	struct span name;
	struct form_part *parts;
	size_t nparts;
};

enum form_tool_kind { FORM_FUNCTION, FORM_CUSTOM, FORM_HOSTED };
enum form_switch { FORM_UNSET, FORM_FALSE, FORM_TRUE };

struct form_tool {
	enum form_tool_kind kind;
	struct span name, description;
	struct span schema; /* raw JSON object; empty = none */
	struct span format; /* custom: raw JSON, in the shape of responses; empty = text */
	struct span raw;    /* HOSTED: as the client wrote it */
	struct span hosted; /* HOSTED: its "type" */
	struct span namespace;
	struct span cache_control;
	enum form_switch strict;
};

enum form_choice {
	FORM_CHOICE_UNSET,
	FORM_CHOICE_NONE,
	FORM_CHOICE_AUTO,
	FORM_CHOICE_REQUIRED,
	FORM_CHOICE_NAMED
};

enum form_effort {
	FORM_EFFORT_UNSET,
	FORM_EFFORT_NONE,
	FORM_EFFORT_MINIMAL,
	FORM_EFFORT_LOW,
	FORM_EFFORT_MEDIUM,
	FORM_EFFORT_HIGH,
	FORM_EFFORT_XHIGH,
	FORM_EFFORT_MAX,
	FORM_EFFORT_AUTO, /* thinking without a stated effort */
};

enum form_shape { FORM_SHAPE_UNSET, FORM_SHAPE_TEXT, FORM_SHAPE_OBJECT, FORM_SHAPE_SCHEMA };

struct form_extra {
	struct span name;  /* decoded member name; of a member's member "a.b" */
	struct span value; /* raw JSON, not null */
};

struct form {
	enum form_wire from;
	struct form_turn *turns;
	size_t nturns;
	struct form_tool *tools;
	size_t ntools;
	enum form_choice choice;
	struct span choice_name;
	struct span *allowed; /* names that tool_choice confines to; NULL = all */
	size_t nallowed;
	enum form_switch parallel; /* calls at once */
	int64_t max_output;        /* tokens; -1 = not given */
	/* numbers as they stand; empty = not given */
	struct span temperature, top_p, top_k, frequency_penalty, presence_penalty, seed,
	    top_logprobs;
	struct span *stops; /* decoded */
	size_t nstops;
	enum form_effort effort;
	int64_t thinking_budget;                             /* tokens, -1 = not given */
	enum form_shape shape;                               /* of the answer */
	struct span schema, schema_name, schema_description; /* raw; decoded; decoded */
	enum form_switch schema_strict;
	struct span user; /* user, safety_identifier, metadata.user_id */
	struct span verbosity, service_tier, prompt_cache_key; /* decoded */
	bool stream, wants_usage;
	bool wants_seals; /* responses: include reasoning.encrypted_content */
	struct form_extra *extras;
	size_t nextras;
};

/* Which upstream the body is for; filled from the configuration. */
struct form_target {
	enum form_wire wire;
	struct span model;
	struct span channel;  /* name: whose seals are its own */
	const char *provider; /* "deepseek": its switches for thinking, its limits on parameters */
	struct span max_tokens_name; /* quirk: "", "max_tokens", "max_completion_tokens" */
	bool developer_as_system, no_stream_options;
	bool stream; /* ask for a stream: the client did, or the channel wants it */
	bool
	    piece; /* turns that go between others: nothing is put before or behind them, and a system text
	             * leads only where there is nothing else */
	int64_t max_output; /* of the model, -1 = not known: bounds and defaults max_tokens */
};

/* What the writer changed, so that the answer can be changed back, and what it could not keep. */
struct form_name {
	struct span sent, original, namespace;
	bool custom; /* was wrapped into a function with the one member "input" */
};

struct form_loss {
	struct form_name *names; /* tools under another name or kind */
	size_t nnames;
	struct span *dropped; /* parameters: "top_k", "messages[2].content[0].detail" */
	size_t ndropped;
	size_t cap_names, cap_dropped;
};

void form_drop(struct form_loss *loss, struct arena *arena, struct span name);
void form_rename(struct form_loss *loss, struct arena *arena, const struct form_name *name);

/* Read a body that dialect_read() has accepted. One of these for each wire. */
typedef enum err form_read_fn(
    struct arena *arena, struct span body, struct form *out, struct why *why);
/*
 * Write the upstream's body. ERR_BAD_INPUT: the request asks for what this wire cannot give and what
 * must not be left out; `why` is the client's 400.
 */
typedef enum err form_write_fn(struct arena *arena, const struct form *form,
    const struct form_target *target, struct buf *out, struct form_loss *loss, struct why *why);

form_read_fn form_read_chat, form_read_messages, form_read_responses, form_read_run;
form_write_fn form_write_chat, form_write_messages, form_write_responses;

/*
 * What holds for every wire, after reading: calls and results pair up, arguments are objects, ids are
 * unique, no message of a user is empty, images are of a known type. ERR_BAD_INPUT names the place.
 * Of several results of one call only the last is kept.
 */
enum err form_check(struct form *form, struct why *why) MUST_CHECK;

/* How many they are of these turns: parts, those of results too, and at least one a turn. */
size_t form_items(const struct form_turn *turns, size_t n);

/* "image/JPG; charset=x" is "image/jpeg". */
struct span form_media_type(struct arena *arena, struct span type);
/* Ids that a target takes: formats.md E.0. The same id gives the same answer, always. */
struct span form_id(struct arena *arena, enum form_wire wire, struct span id);
/* A tool's name that fits in `max` bytes of [A-Za-z0-9_-]; itself where it does. */
struct span form_tool_name(struct arena *arena, struct span name, size_t max);

/* Members that errors name as the client's API calls them. */
enum form_field {
	FORM_FIELD_CONTENT,
	FORM_FIELD_CALL_ID,
	FORM_FIELD_CALL_NAME,
	FORM_FIELD_ARGUMENTS,
	FORM_FIELD_RESULT_ID,
	FORM_FIELD_MEDIA, /* of an image, a document, a sound */
	FORM_FIELD__MAX
};

#define FORM_PLACE_BYTES 160
/* "messages[3].tool_calls[0].function.arguments"; cut where it does not fit. */
struct span form_place(const struct form *form, const struct form_part *part, enum form_field field,
    char *dst, size_t cap);
/* The client's list: "messages", "input". */
const char *form_place_list(const struct form *form);

/* Is it a text of the system's or the developer's? How many of these lead. */
bool form_is_system(const struct form_turn *turn);
size_t form_leading(const struct form *form);

/* For readers: lists that grow in the arena. A part stands where its turn does, and in no list. */
struct form_part *form_add_part(struct arena *arena, struct form_turn *turn, enum form_kind kind);
struct form_turn *form_add_turn(
    struct arena *arena, struct form *form, enum form_role role, size_t at);
struct form_tool *form_add_tool(struct arena *arena, struct form *form, enum form_tool_kind kind);
void form_add_extra(struct arena *arena, struct form *form, struct span name, struct span raw);

#endif
