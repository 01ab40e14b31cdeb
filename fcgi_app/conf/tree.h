/*
 * tree - a configuration file as nodes that know their line.
 *
 * Strict JSON (RFC 8259) plus the two kinds of comment, which are blanked out first, so that lines and columns stay. A
 * UTF-8 byte order mark at the start is forgiven. Refused: invalid UTF-8, NUL in a string, lone surrogate escapes, nesting
 * deeper than 16, more than 500,000 values.
 *
 * Memory    nodes live in the arena; strings are decoded in place, so they borrow from the given text and it is spent
 * Errors    ERR_BAD_INPUT the first fault of syntax; names that occur twice in an object are only marked
 */
#ifndef CONF_TREE_H
#define CONF_TREE_H

#include "base/arena.h"

#define TREE_DEPTH_MAX 16
#define TREE_NODES_MAX 500000

enum tree_type {
	TREE_NULL,
	TREE_FALSE,
	TREE_TRUE,
	TREE_NUMBER,
	TREE_STRING,
	TREE_ARRAY,
	TREE_OBJECT,
};

struct tree {
	enum tree_type type;
	bool repeated; /* a member of this name stands before in the same object */
	size_t line;   /* from 1; of the name, where there is one */
	const struct tree *parent;
	struct span key;  /* of a member of an object, decoded */
	size_t index;     /* in the parent */
	struct span text; /* string: decoded; number: as it stands */
	size_t n;         /* children */
	struct tree *first, *next;
};

/* On failure *line_out tells where, and `why` begins with the column. */
enum err tree_parse(struct arena *arena, char *text, size_t n, const struct tree **root_out,
    size_t *line_out, struct why *why) MUST_CHECK;

/* The first member of this name, or NULL; NULL too if `object` is NULL or none. */
const struct tree *tree_member(const struct tree *object, struct span name);
/* The same for a dotted path of names: "auth.admins". */
const struct tree *tree_at(const struct tree *root, const char *path);
/* The node after `node` in the order of the file, inside out of `root`; NULL at the end. */
const struct tree *tree_next(const struct tree *root, const struct tree *node);

/* "channels.zhipu.accounts[1].id"; `member`, if not NULL, is added as a further name. The root is "". */
void tree_path(const struct tree *node, const char *member, struct buf *out);
/* "an object", for messages */
const char *tree_type_name(enum tree_type type);

#endif
