/*
 * task_text - what a message asks for, apart from what it hands over: pasted documents, code, quotations. Pure, for task.c.
 *
 * The words of a long message stand at its beginning and at its end; only these are kept, in lower case, cut into clauses.
 * Code between fences, quoted lines, diffs and stack traces are counted and left out; so are words in quotation marks.
 *
 * Time      linear in the message, whatever it holds
 */
#ifndef TASK_TEXT_H
#define TASK_TEXT_H

#include "base/text.h"

#define TASK_TEXT_HEAD 1200
#define TASK_TEXT_TAIL 600

struct task_text {
	char bytes[TASK_TEXT_HEAD + TASK_TEXT_TAIL + 2]; /* clauses, each ended by '\n' */
	size_t n;
	size_t chars; /* of the whole message, without blanks around it */
	bool asks;    /* it ends with a question mark */
	/* how often each was seen */
	unsigned fences; /* of code; those of plain text do not count */
	unsigned code_lines, diffs, traces, files, calls;
	unsigned formulas, numbers, quotes;
};

void task_text_read(struct span message, struct task_text *text_out);

#endif
