/*
 * classify_words - phrases in an upstream's message, without what the message quotes.
 *
 * A pattern is a list of phrases between '|'. ASCII letters match in either case; a phrase that begins with a letter or
 * digit matches only at the begin of a word. '^' the begin of the message, '#' a number, '*' up to 60 bytes of a line.
 *
 * What stands in quotes, and the name of the model, came from the caller: it is taken out first. Where the caller may be
 * at fault, only the words before the first quote are asked for what would hurt the account.
 *
 * Source    formats.md F.2 (3), F.3
 */
#ifndef CLASSIFY_WORDS_H
#define CLASSIFY_WORDS_H

#include "base/arena.h"

struct classify_words {
	struct span plain; /* without quotes */
	struct span head;  /* what stands before the first quote */
};

struct classify_words classify_words(struct arena *arena, struct span text, struct span model);

/* `which_out` may be NULL; else the phrase that matched. */
bool classify_words_match(struct span text, const char *pattern, struct span *which_out);

/* Does the text name this model, as a word of its own? */
bool classify_words_name(struct span text, struct span model);

#endif
