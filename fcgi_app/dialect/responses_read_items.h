/*
 * responses_read_items - one item of "input": what it is, and what it becomes in a turn.
 *
 * Source    formats.md B.3, E.10, E.13
 */
#ifndef DIALECT_RESPONSES_READ_ITEMS_H
#define DIALECT_RESPONSES_READ_ITEMS_H

#include "dialect/responses_read.h"

enum {
	RESPONSES_READ_TYPE,
	RESPONSES_READ_ROLE,
	RESPONSES_READ_CONTENT,
	RESPONSES_READ_CALL_ID,
	RESPONSES_READ_ID,
	RESPONSES_READ_NAME,
	RESPONSES_READ_NAMESPACE,
	RESPONSES_READ_ARGUMENTS,
	RESPONSES_READ_INPUT,
	RESPONSES_READ_OUTPUT,
	RESPONSES_READ_SUMMARY,
	RESPONSES_READ_ENCRYPTED,
	RESPONSES_READ_ACTION,
	RESPONSES_READ_OPERATION,
	RESPONSES_READ_STATUS,
	RESPONSES_READ_TOOLS,
	RESPONSES_READ__MAX
};

struct responses_read_kind {
	const char *type;
	enum responses_read_what {
		RESPONSES_READ_OPAQUE, /* of the provider's own tools */
		RESPONSES_READ_A_MESSAGE,
		RESPONSES_READ_A_CALL,
		RESPONSES_READ_A_RESULT,
		RESPONSES_READ_A_THOUGHT,
		RESPONSES_READ_SOME_TOOLS,
		RESPONSES_READ_A_REFERENCE, /* to what only its maker has */
	} what;
	const char *name; /* of a call, where the type tells it */
	int arguments;    /* member of a call that holds them */
	bool custom;
	bool raw; /* a result: "output" is a list of its own kind */
};

struct responses_read_item {
	size_t at;
	struct span raw;
	const struct responses_read_kind *kind;
	struct scan_value v[RESPONSES_READ__MAX]; /* null is absent */
};

enum err responses_read_item(struct responses_reader *r, struct span raw, size_t at,
    struct responses_read_item *item_out) MUST_CHECK;
struct span responses_read_call_id(
    struct responses_reader *r, const struct responses_read_item *item);

/* Each adds its part to the turn. */
enum err responses_read_call(struct responses_reader *r, const struct responses_read_item *item,
    struct form_turn *turn) MUST_CHECK;
enum err responses_read_result(struct responses_reader *r, const struct responses_read_item *item,
    struct form_turn *turn) MUST_CHECK;
void responses_read_thought(
    struct responses_reader *r, const struct responses_read_item *item, struct form_turn *turn);

#endif
