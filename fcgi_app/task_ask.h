/*
 * task_ask - what a classifier is asked, and what its answer means. Pure, for task_of.c.
 *
 * The names are those of the configuration (routing.tasks, `tasks` of models and targets), and of our six those that
 * none of them means. Of a long message beginning and end are shown.
 */
#ifndef TASK_ASK_H
#define TASK_ASK_H

#include "base/arena.h"
#include "conf/conf.h"
#include "task.h"

#define TASK_ASK_NAMES_MAX 64

struct task_names {
	struct span at[TASK_ASK_NAMES_MAX];
	size_t n;
};

void task_ask_names(const struct conf *conf, struct task_names *names_out);
/* The instruction, and what it is about. */
struct span task_ask_system(struct arena *arena, const struct task_names *names);
struct span task_ask_text(struct arena *arena, const struct task_prompt *prompt);
/* The name that the answer is, or an empty text: spelling (task.h), quotes and a final dot do not matter. */
struct span task_ask_answer(const struct task_names *names, struct span answer);

#endif
