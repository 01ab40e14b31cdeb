/*
 * task_words - the words by which task.c knows a kind of work, in English and Chinese. Data.
 *
 * All in lower case. A word of letters matches a whole word, with '*' at its end the beginning of one; Chinese matches
 * anywhere. Where several match at one place the longest counts.
 */
#ifndef TASK_WORDS_H
#define TASK_WORDS_H

#include "task.h"

enum task_word_kind {
	TASK_WORD_MAKER, /* asks for whatever its object is: "write"; `task` is that of no known object */
	TASK_WORD_VERB, /* asks for the task by itself: "translate" */
	TASK_WORD_NOUN, /* what is made, or the subject; as the object of a maker it names the task */
	TASK_WORD_TOPIC, /* the subject only */
	TASK_WORD_ASKS,  /* a question, or a small request */
};

struct task_words {
	enum task_word_kind kind;
	enum task task;
	unsigned points; /* where one stands anywhere */
	const char *const *at;
};
extern const struct task_words task_words[];
extern const size_t task_nwords;

/* What may stand before a verb that still begins a request: "please", "can you". */
extern const char *const task_openers[];
extern const size_t task_nopeners;

/* Usual names of the tasks, in lower case without '-', '_' and blanks. */
struct task_synonym {
	const char *name;
	enum task task;
};
extern const struct task_synonym task_synonyms[];
extern const size_t task_nsynonyms;

/* Parts of names of tools that work on files or run commands. */
extern const char *const task_coding_tools[];
extern const size_t task_ncoding_tools;

#endif
