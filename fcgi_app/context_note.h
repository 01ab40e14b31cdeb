/*
 * context_note - a summary by a model in place of the oldest part of a conversation.
 *
 * Where         the conversation is cut where a round begins, at the first place behind a multiple of a quarter of the
 *               window at which the rest fits: so a note serves until a quarter more has come, and is the same for all
 *               who count alike
 * Kept          as a text of kept.h in the client's name, by the hash of what it stands for: it is asked for once. A new
 *               one is made from an old one and what came since.
 * Size          a note has a quarter of what fits at most; what is told to its writer is made to fit his window. Too long
 *               ones are cut in the middle, with a mark
 * In vain       no model, no answer in time, nothing to be cut: what goes then has no note. After a failure nobody is
 *               asked for a minute.
 * Source        SPEC.md section 13
 */
#ifndef CONTEXT_NOTE_H
#define CONTEXT_NOTE_H

#include "serve_job.h"

struct context_note {
	/* given: for whom, and how much fits */
	const struct tokens_model *model;
	int64_t budget, window;
	/* given, and changed where there is a note */
	const struct form *from;
	/* the count of all, and messages that the note stands for; 0 = there is none */
	int64_t before;
	size_t messages;
};

void context_note(struct serve_job *j, struct context_note *note);

#endif
