/*
 * split - cuts a text into the pieces that byte-pair encoding works on, as an encoding of OpenAI's wants them.
 *
 * Rule      the expressions of formats.md G.1, in PCRE2, from one piece to the next; every character is in exactly one.
 *           Blanks are Unicode's White_Space (\\s of PCRE2 has U+180E, too).
 * ASCII     pieces that no other character takes part in are cut by hand, which is ten times as fast; the tests hold it
 *           against the expressions
 * Text      valid UTF-8; the names of control tokens are text like any other
 * Memory    an expression is compiled when the first piece needs it, some 100 KB with its machine code
 * Source    formats.md G.1
 */
#ifndef DIALECT_SPLIT_H
#define DIALECT_SPLIT_H

#include "dialect/vocab.h"

struct split;

struct split *split_new(void);
void split_free(struct split **split);

/* The text must stay until its last piece was taken. */
void split_begin(struct split *split, enum vocab_encoding encoding, struct span text);
/* False: there is none left. */
bool split_next(struct split *split, struct span *piece_out);
/* The same by the expression alone. */
bool split_next_slowly(struct split *split, struct span *piece_out);

#endif
