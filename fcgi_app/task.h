/*
 * task - what kind of work a prompt asks for, by rules over the last user message and the tools. Pure.
 *
 * Languages Chinese and English, by tables of words; code fences, length and the form of a question in any
 * Source    SPEC.md section 12
 */
#ifndef TASK_H
#define TASK_H

#include "base/text.h"

enum task {
	TASK_CODE,
	TASK_REASONING,
	TASK_TRANSLATION,
	TASK_SUMMARY,
	TASK_CREATIVE,
	TASK_SIMPLE,
	TASK__MAX
};

struct task_prompt {
	struct span text;         /* of the newest user message */
	const struct span *tools; /* names of functions */
	size_t ntools;
	bool has_picture;
};

/* TASK__MAX: nothing speaks for any. */
enum task task_guess(const struct task_prompt *prompt);
/* "code", ...; "" for TASK__MAX */
const char *task_name(enum task task);
/* By one of its usual names ("code-generation"), or TASK__MAX. */
enum task task_named(struct span name);
/* Names of tasks that differ in case, blanks, '-' and '_' only. */
bool task_spelt_alike(struct span a, struct span b);
/* ... or mean the same one of ours. */
bool task_is_same(struct span a, struct span b);

#endif
