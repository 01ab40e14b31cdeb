/*
 * chat_say - the turns of a form as chat messages.
 *
 * Texts are joined: blocks of a system text by an empty line, those of a user by a line break, those
 * of an assistant by nothing, as they were delivered.
 *
 * Source    formats.md A.2, A.8, A.9, E.4, E.10
 */
#ifndef DIALECT_CHAT_SAY_H
#define DIALECT_CHAT_SAY_H

#include "dialect/chat_host.h"

struct chat_writer {
	struct arena *arena;
	const struct form *form;
	const struct form_target *target;
	const struct chat_host *host;
	struct form_loss *loss;
	struct why *why;
	struct emit e;
};

enum err chat_say_turns(struct chat_writer *w) MUST_CHECK;

/* A call's or tool's name as it goes to the host; remembered where it differs. `custom`: a tool with
 * free text, wrapped into a function. */
struct span chat_say_name(
    struct chat_writer *w, struct span name, struct span namespace, bool custom);

/* Whether custom tools go as they are. */
bool chat_say_custom(const struct chat_writer *w);

#endif
