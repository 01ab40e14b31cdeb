/*
 * messages_flow - the blocks of a Messages answer, as they come, become steps.
 *
 * Blocks    known by their index; a host that gives none means the last one. A thought's signature
 *           and a text's citations are held until their block is over
 * Source    formats.md C.3, C.7, D.10, E.3; cases.md TOOL-03, CONV-10
 */
#ifndef DIALECT_MESSAGES_FLOW_H
#define DIALECT_MESSAGES_FLOW_H

#include "dialect/flow.h"

enum messages_block_kind {
	MESSAGES_NONE,
	MESSAGES_PLAIN,
	MESSAGES_THOUGHT,
	MESSAGES_CALL,
	MESSAGES_OTHER
};

#define MESSAGES_FLOW_MAX ((size_t)1 << 31) /* bytes */

struct messages_block {
	enum messages_block_kind kind;
	size_t call;
	bool given;     /* its input came whole, in the start */
	bool arguments; /* some came */
};

struct flow_reader {
	struct arena *arena;
	struct arena *scratch; /* what one event decodes to */
	struct span channel;
	struct dialect_usage usage;
	struct messages_block *blocks; /* by index */
	size_t cap, current;
	size_t ncalls;
	struct buf *id;            /* of the message */
	struct buf *signature;     /* of the open thought */
	struct buf *citations;     /* of the open text: JSON values, each behind a comma */
	size_t chars, block_chars; /* of text given in all, and before the open block */
	bool started, finished, ended;
	flow_sink_fn *sink;
	void *arg;
};

void messages_flow_give(struct flow_reader *r, struct flow step);
/* A string, decoded, good until the next event. */
struct span messages_flow_text(struct flow_reader *r, const struct scan_value *v);
void messages_flow_start(
    struct flow_reader *r, const struct scan_value *id, const struct scan_value *model);
struct messages_block *messages_flow_block(struct flow_reader *r, const struct scan_value *index);
/* A block as it starts; in a plain body that is all of it. */
void messages_flow_begin(
    struct flow_reader *r, struct messages_block *b, const struct scan_value *block);
/* What is owed when a block is over, told or not. */
void messages_flow_end(struct flow_reader *r, struct messages_block *b, bool told);
void messages_flow_end_all(struct flow_reader *r);
/* The array of a plain body. */
void messages_flow_whole(struct flow_reader *r, const struct scan_value *content);

void messages_flow_words(struct flow_reader *r, struct span text);
void messages_flow_thought(struct flow_reader *r, struct span text);
void messages_flow_arguments(struct flow_reader *r, struct messages_block *b, struct span text);
void messages_flow_signature(struct flow_reader *r, const struct scan_value *v);

#endif
