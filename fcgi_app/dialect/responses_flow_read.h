/*
 * responses_flow_read - the reader of a Responses answer: its items, and the steps they give.
 *
 * Items     known by item_id or, where hosts change those in midstream, by output_index; a host that
 *           announces none gets them made. Only the last RESPONSES_FLOW_OPEN are looked through
 * Source    formats.md B.5, E.12, E.13; cases.md TOOL-02
 */
#ifndef DIALECT_RESPONSES_FLOW_READ_H
#define DIALECT_RESPONSES_FLOW_READ_H

#include "dialect/responses.h"

#define RESPONSES_FLOW_OPEN 64

enum responses_flow_kind {
	RESPONSES_FLOW_MESSAGE,
	RESPONSES_FLOW_REASONING,
	RESPONSES_FLOW_CALL,
	RESPONSES_FLOW_OTHER,
};

struct responses_flow_item {
	enum responses_flow_kind kind;
	struct span id; /* item_id */
	int64_t index;  /* output_index; -1: not told */
	bool custom, done;
	bool spoken;  /* some of its text went out */
	int64_t part; /* content_index or summary_index of that */
	bool content; /* reasoning: of "content", not of "summary" */
	/* calls */
	bool named; /* FLOW_CALL went out */
	size_t call;
	struct span call_id, name, namespace, first; /* first: arguments that came with the name */
	struct buf *early;                           /* arguments that came before the name */
};

struct flow_reader {
	struct arena *arena;
	struct span channel;
	bool started, finished, ended;
	struct span id;
	struct responses_flow_item *items[RESPONSES_FLOW_OPEN]; /* a ring */
	size_t nitems;
	size_t ncalls;
	size_t nspoken;                       /* steps with content */
	struct responses_flow_item *speaking; /* whose text came last */
	struct dialect_usage usage;
	flow_sink_fn *sink;
	void *arg;
};

void responses_flow_give(struct flow_reader *r, const struct flow *step);
/* Find it, or make one of that kind. */
struct responses_flow_item *responses_flow_find(
    struct flow_reader *r, enum responses_flow_kind kind, struct span id, int64_t index);
struct responses_flow_item *responses_flow_add(
    struct flow_reader *r, enum responses_flow_kind kind, struct span id, int64_t index);

/* A piece of an item's text; `part` as in the event. */
void responses_flow_say(struct flow_reader *r, struct responses_flow_item *item,
    enum flow_kind kind, struct span text, int64_t part);
void responses_flow_arguments(
    struct flow_reader *r, struct responses_flow_item *item, struct span text);
/* What is known of a call by now; as soon as it has a name it is given. */
void responses_flow_call(struct flow_reader *r, struct responses_flow_item *item);
void responses_flow_call_end(struct flow_reader *r, struct responses_flow_item *item);
/* An item object: what it tells at its beginning, and at its end. */
void responses_flow_begins(struct flow_reader *r, const struct scan_value *object, int64_t index);
void responses_flow_ends(struct flow_reader *r, const struct scan_value *object, int64_t index);
void responses_flow_cite(struct flow_reader *r, const struct scan_value *annotation);

#endif
