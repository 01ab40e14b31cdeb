/*
 * load - one reading of the configuration: what stays, what goes, and what was found on the way.
 *
 * Reading goes on after a fault, so that all are found; whoever reports one leaves the value at its default.
 */
#ifndef CONF_LOAD_H
#define CONF_LOAD_H

#include "conf/conf.h"
#include "conf/nearest.h"
#include "conf/source.h"
#include "conf/tree.h"

#define LOAD_FILE_MAX ((size_t)8 << 20)

struct load {
	struct arena *arena; /* of the configuration */
	struct arena *work;  /* texts and trees: ends with the load */
	struct conf *conf;
	struct conf_report *report;
	const char *dir;     /* of the configuration file, absolute */
	const char *file;    /* that is being read */
	struct buf *scratch; /* of expand: strings, maybe keys; wiped at the end */
	size_t soiled;       /* its first bytes that were used */
	bool holds_keys;     /* the file being read has an api_key */
};

void load_begin(struct load *load, const char *file, struct conf_report *report);
/* Wipes what was read; the configuration stays in load->conf. */
void load_end(struct load *load);

/*
 * "FILE:LINE: key 'a.b.member': text". `node` NULL: of the file as a whole; `member` NULL: the node itself.
 */
void load_fault(struct load *load, const struct tree *node, const char *member, const char *fmt,
    ...) PRINTF_LIKE(4, 5);
void load_note(struct load *load, const struct tree *node, const char *member, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* "'wanted' is <what>; did you mean 'x'?" */
void load_misnamed(
    struct load *load, const struct tree *node, const char *what, const struct nearest *nearest);
/* Every member of this object, and what it holds, that has a twin before it. */
void load_repeated(struct load *load, const struct tree *root);

/*
 * Read one file into a tree whose root is an object; NULL, reported, if that cannot be. It becomes load->file, with
 * holds_keys false; *source_out is linked into the conf's list.
 */
const struct tree *load_file(struct load *load, const char *path, struct source **source_out);
/* Refuse the file if it holds keys and is not private. */
void load_private(struct load *load, const struct source *source);
void load_add_source(struct load *load, struct source *source);

/* Absolute: as it is, else below the configuration file's directory. */
char *load_path(struct load *load, struct span path);

#endif
