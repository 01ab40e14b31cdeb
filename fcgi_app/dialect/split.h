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

/* Bytes of the piece that begins at `at`, which is less than text.n: at least 1. */
size_t split_next(struct split *split, enum vocab_encoding encoding, struct span text, size_t at);
/* The same by the expression alone. */
size_t split_by_expression(
    struct split *split, enum vocab_encoding encoding, struct span text, size_t at);

#endif
