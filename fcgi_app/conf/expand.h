/*
 * expand - what stands for something else in a string: ${NAME} from the environment, ${file:PATH} the trimmed content of a
 * file. "$${" is a literal "${". What was put in is not looked at again.
 *
 * Variables that begin with HTTP_ are refused: under plain CGI a client sets them. Relative paths are below the
 * configuration file's directory. A file counts as part of the configuration: a change of it is a change.
 */
#ifndef CONF_EXPAND_H
#define CONF_EXPAND_H

#include "conf/load.h"

#define EXPAND_FILE_MAX ((size_t)64 << 10)

enum expand_use {
	EXPAND_TEXT,
	EXPAND_SECRET, /* a file that is put in must be private */
};

/*
 * The text of a string node; false, every fault reported, if something is missing. *out lives in load->scratch (or in the
 * tree) until the next call.
 */
bool expand_node(
    struct load *load, const struct tree *node, enum expand_use use, struct span *out) MUST_CHECK;

/* The reverse: double the '$' of each "${". */
void expand_escape(struct span text, struct buf *out);

#endif
