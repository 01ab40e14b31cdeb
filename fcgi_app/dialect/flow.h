/*
 * flow - an answer as a run of small steps, the same for every dialect, streamed or whole.
 *
 * A reader turns an upstream's events, or its plain body, into steps; a writer turns steps into the
 * client's events; a gathering (gather.h) collects them into a whole answer, which a dialect writes
 * as its plain body. So a stream is converted event by event, a plain answer can serve a client that
 * wants a stream, and a stream one that wants a plain answer.
 *
 * Order     FLOW_START first; the steps of a call carry its number, counted from 0 in order of
 *           appearance, and may interleave with those of other calls. A reader gives FLOW_CALL only
 *           when id and name are known (it makes an id where none comes), and FLOW_CALL_END where
 *           its wire tells, at the latest before FLOW_FINISH. FLOW_FINISH, then perhaps FLOW_USAGE,
 *           then FLOW_END.
 * Memory    spans are good during the call only
 * Source    formats.md A.6, B.5, C.7, E.2, E.3, E.5, E.11, E.12
 */
#ifndef DIALECT_FLOW_H
#define DIALECT_FLOW_H

#include "dialect/dialect.h"
#include "dialect/form.h"

enum flow_kind {
	FLOW_START,   /* id, model */
	FLOW_TEXT,    /* text: a piece */
	FLOW_REFUSAL, /* text */
	FLOW_THOUGHT, /* text: a piece of reasoning */
	FLOW_SEAL, /* text: what the maker of the reasoning before it wants back; ends that thought */
	FLOW_REDACTED,  /* text: a thought without words, sealed */
	FLOW_CALL,      /* call, id, name, custom, made: the reader made the id */
	FLOW_ARGUMENTS, /* call, text: a piece */
	FLOW_CALL_END,  /* call */
	FLOW_CITATION,  /* text: raw JSON of {"url","title","start_index","end_index"} */
	FLOW_BREAK,     /* a block ended: the next text or thought is a new one */
	FLOW_FINISH,    /* finish, stop */
	FLOW_USAGE,     /* usage: all that is known by now */
	FLOW_END,
};

enum flow_finish {
	FLOW_STOP,
	FLOW_LENGTH,
	FLOW_CALLS,
	FLOW_FILTERED,
	FLOW_PAUSED,
	FLOW_STOP_TEXT, /* a stop sequence: `stop` */
};

struct flow {
	enum flow_kind kind;
	size_t call;
	struct span text, id, name, model, namespace, item_id;
	bool custom, made;
	enum flow_finish finish;
	struct span stop;
	const struct dialect_usage *usage;
};

typedef void flow_sink_fn(void *arg, const struct flow *step);

/* A reader of one answer. */
struct flow_reader;
struct flow_reader_kind {
	struct flow_reader *(*begin)(struct arena *arena, struct span channel);
	/* One event of a stream that dialect.event() has found to be no error. */
	void (*event)(
	    struct flow_reader *r, const struct sse_event *event, flow_sink_fn *sink, void *arg);
	/* A whole plain body that dialect.answer() has accepted. */
	void (*body)(struct flow_reader *r, struct span body, flow_sink_fn *sink, void *arg);
	/* The stream is over and was whole: what is still owed (ends of calls, finish, end). */
	void (*end)(struct flow_reader *r, flow_sink_fn *sink, void *arg);
};
extern const struct flow_reader_kind flow_read_chat, flow_read_messages, flow_read_responses;

/* What a writer must know of the request. */
struct flow_job {
	struct arena *arena;
	struct span model; /* as the client asked for it */
	struct span id;    /* of our request: ids are made from it where the upstream gave none */
	int64_t created_s; /* Unix seconds */
	bool wants_usage;  /* chat: the client asked for the usage chunk */
	bool wants_seals;
	const struct form *form;              /* responses echoes parts of the request */
	const struct form_loss *loss;         /* names to put back */
	struct span channel;                  /* seals are marked with it */
	struct span response_id, previous_id; /* responses: given by who keeps them; may be empty */
	bool store;
	struct span session_id, account, model_used; /* run: its conversation, and who answers */
};

/* A writer of one stream: steps in, bytes of the client's protocol out. */
struct flow_writer;
struct flow_writer_kind {
	struct flow_writer *(*begin)(const struct flow_job *job);
	void (*step)(struct flow_writer *w, const struct flow *step, struct buf *out);
	/* An error event in the client's own shape, in the order its grammar wants (response.failed). */
	void (*error)(struct flow_writer *w, int status, const char *type, const char *code,
	    struct span message, struct buf *out);
};
extern const struct flow_writer_kind flow_write_chat, flow_write_messages, flow_write_responses,
    flow_write_run;

/* A whole answer, gathered. */
struct flow_answer {
	struct span id, model;
	struct form_turn turn; /* of the assistant: thoughts, texts, refusals, calls, in order */
	enum flow_finish finish;
	struct span stop;
	struct dialect_usage usage;
	struct span citations; /* raw JSON array, or empty */
	bool ended;
	bool cut; /* some of it was left out: it had too many parts */
};

/* A whole answer as the client's plain body. */
typedef void flow_answer_fn(
    const struct flow_job *job, const struct flow_answer *answer, struct buf *out);
flow_answer_fn flow_answer_chat, flow_answer_messages, flow_answer_responses, flow_answer_run;

/* One row for each wire: all that converting needs. NULL: what only an upstream's API has. */
struct flow_wire {
	const struct dialect *dialect;
	form_read_fn *read;
	form_write_fn *write;
	const struct flow_reader_kind *reader;
	const struct flow_writer_kind *writer;
	flow_answer_fn *answer;
};
extern const struct flow_wire flow_wires[FORM_CLIENT_WIRES];

/* A client's body as a form in the arena; NULL: it cannot be read, and `why` says so. */
struct form *flow_read(
    struct arena *arena, enum form_wire wire, struct span body, struct why *why) MUST_CHECK;

#endif
