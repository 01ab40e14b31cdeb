/*
 * letters - conversations for tests of trimming, and what a shortened text must be.
 *
 * In letters, one a turn: s system, d developer, u user, a assistant, c an answer with a call, t one with text and a
 * call, C one with two calls, r results of the turn before; e a user's turn without text. A number behind it is how many
 * units of text it has, else one.
 */
#ifndef LIB_LETTERS_H
#define LIB_LETTERS_H

#include "dialect/form.h"

#define LETTERS_WORDS 10 /* of five bytes, in one unit of text; a full stop at the end of all */

struct form letters_form(struct arena *arena, const char *letters);
void letters_turn(struct arena *arena, struct form *form, char letter, struct span text);
struct span letters_text(struct arena *arena, size_t units);
/* A call named f, its id made of `id` and the turn's place; and results of all calls of a turn. */
void letters_call(struct arena *arena, struct form_turn *turn, const char *id, struct span text);
void letters_results(
    struct arena *arena, struct form_turn *turn, const struct form_turn *calls, struct span text);

/* What trim_text() may make of a text: its two ends, whole characters, and a mark that counts what is missing. */
bool letters_is_cut(struct span is, struct span was);

#endif
