/*
 * messages_writer - what the parts of the writer of Messages requests share.
 *
 * Names     of what is dropped are those that the client used: "reasoning_effort" of chat,
 *           "reasoning.effort" of responses
 * Source    formats.md E.1, E.7, E.13
 */
#ifndef DIALECT_MESSAGES_WRITER_H
#define DIALECT_MESSAGES_WRITER_H

#include "base/emit.h"
#include "dialect/messages_ids.h"
#include "dialect/messages_model.h"

struct messages_writer {
	struct arena *arena;
	const struct form *form;
	const struct form_target *target;
	const struct messages_model *model;
	struct form_loss *loss;
	struct why *why;
	struct emit e;
	struct messages_thinking thinking;
	int64_t max_tokens;
	bool ask_for_json; /* the shape of the answer is asked for in words */
	/* turns */
	bool in_message;               /* one is open */
	enum form_role role;           /* FORM_USER or FORM_ASSISTANT */
	struct messages_ids ids;       /* that stand there twice */
	const struct form_part *final; /* last text of an assistant at the end: loses blanks */
};

void messages_writer_drop(struct messages_writer *w, const char *name);
/* The name that the client's wire has for it; NULL there: the first one. */
void messages_writer_drop_one(
    struct messages_writer *w, const char *chat, const char *responses, const char *messages);
/* The name of a tool as the target takes it; noted so that the answer can be changed back. */
struct span messages_writer_tool(
    struct messages_writer *w, struct span name, struct span namespace, bool custom);
/* Always ERR_BAD_INPUT: "'messages[3].content[1].image_url' ...", of an image, a document, a sound */
enum err messages_writer_refuse(
    struct messages_writer *w, const struct form_part *part, const char *text) MUST_CHECK;
/* It thinks: asked to, or because it cannot do otherwise. */
bool messages_writer_thinks(const struct messages_writer *w);
/* The member cache_control, if there is one. */
void messages_writer_cache(struct messages_writer *w, struct span cache_control);

/* messages_parts.c: "system" and "messages". */
enum err messages_parts_write(struct messages_writer *w) MUST_CHECK;
/* messages_media.c: an image, document or sound as a block. */
enum err messages_media_write(struct messages_writer *w, const struct form_part *part) MUST_CHECK;
/* messages_tools.c: "tools" and "tool_choice". */
enum err messages_tools_write(struct messages_writer *w) MUST_CHECK;
/* messages_schema.c: a schema whose root this API takes; true: something of it was lost. */
bool messages_schema_write(struct messages_writer *w, struct span schema);

#endif
