/*
 * tokenizer - where the file of token ranks is (dialect/vocab.h), and the one that this process has open.
 *
 * Places    beside the program; in ../share/sluice of the program, and in ../../share/sluice; beside state_dir; in
 *           /usr/local/share/sluice; in /usr/share/sluice. The first that is there counts
 * Trust     a file that others may write, or that is neither ours, nor root's, nor the program's owner's, is passed over
 * Source    SPEC.md section 13
 */
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include "serve.h"

#include <limits.h>

#define TOKENIZER_FILE "sluice.tokens"

/* False: nowhere. `state_dir` may be "". */
bool tokenizer_find(const char *state_dir, char path_out[PATH_MAX]);
/* Opened when it is first asked for; NULL: there is none, or it is damaged, and all is estimated. */
struct tokens *tokenizer_of(struct serve *s);

#endif
