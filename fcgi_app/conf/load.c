#include "conf/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONF_BYTES ((size_t)512 << 20)
#define SCRATCH_BYTES ((size_t)1 << 20)
#define FINDINGS_MAX 1000

void
load_begin(struct load *load, const char *file, struct conf_report *report)
{
	struct arena *arena = arena_new(CONF_BYTES);
	const char *slash = strrchr(file, '/');

	*load = (struct load){.arena = arena, .work = arena_new(CONF_BYTES), .report = report};
	load->conf = arena_alloc(arena, sizeof *load->conf);
	load->conf->arena = arena;
	load->conf->path = arena_copy(arena, text_span(file));
	load->file = load->conf->path.p;
	load->dir = slash == NULL || slash == file
	                ? "/"
	                : arena_z(arena, (struct span){file, (size_t)(slash - file)});
	load->scratch = arena_buf(load->work, SCRATCH_BYTES);
	/* all at once: growing would leave copies behind */
	(void)buf_room(load->scratch, SCRATCH_BYTES);
}

void
load_end(struct load *load)
{
	explicit_bzero(load->scratch->p, load->soiled);
	arena_free(&load->work);
}

static struct conf_finding *
add_finding(struct load *load, enum conf_level level)
{
	struct conf_report *report = load->report;

	report->faults += level == CONF_FAULT;
	if (report->n == FINDINGS_MAX)
		return NULL;
	if (report->n == report->cap) {
		report->cap = report->cap == 0 ? 16 : report->cap * 2;
		report->at = realloc(report->at, report->cap * sizeof *report->at);
		if (report->at == NULL)
			die("no memory for %zu findings", report->cap);
	}
	report->at[report->n].level = level;
	return &report->at[report->n++];
}

/* "FILE:LINE: key 'path': ", with room left for the reason. */
static void
put_place(struct load *load, const struct tree *node, const char *member, struct buf *out)
{
	struct buf path;
	struct span file = text_span(load->file);
	char shown[160];

	if (file.n >= sizeof shown)
		file = text_from(file, file.n - sizeof shown + 1);
	text_clean(shown, sizeof shown, file);
	if (node == NULL) {
		buf_print(out, "%s: ", shown);
		return;
	}
	buf_init(&path, 4096);
	tree_path(node, member, &path);
	buf_print(out, "%s:%zu: ", shown, node->line);
	if (path.n > 200)
		buf_print(out, "key '...%s': ", path.p + path.n - 200);
	else if (path.n > 0)
		buf_print(out, "key '%s': ", path.p);
	buf_release(&path);
}

static void
find(struct load *load, enum conf_level level, const struct tree *node, const char *member,
    const char *text)
{
	struct conf_finding *finding = add_finding(load, level);
	struct buf line;

	if (finding == NULL)
		return;
	buf_init(&line, 8192);
	put_place(load, node, member, &line);
	buf_z(&line, text);
	text_clean(finding->text, sizeof finding->text, buf_text(&line));
	buf_release(&line);
}

void
load_fault(struct load *load, const struct tree *node, const char *member, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	find(load, CONF_FAULT, node, member, text);
}

void
load_note(struct load *load, const struct tree *node, const char *member, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	find(load, CONF_NOTE, node, member, text);
}

void
load_misnamed(
    struct load *load, const struct tree *node, const char *what, const struct nearest *nearest)
{
	char hint[300], name[80];

	text_clean(name, sizeof name, nearest->wanted);
	nearest_text(nearest, hint, sizeof hint);
	load_fault(load, node, NULL, "'%s' is %s; %s", name, what, hint);
}

void
load_repeated(struct load *load, const struct tree *root)
{
	for (const struct tree *t = root; t != NULL; t = tree_next(root, t))
		if (t->repeated)
			load_fault(load, t, NULL,
			    "stands twice in the same object (first in line %zu)",
			    tree_member(t->parent, t->key)->line);
}

const struct tree *
load_file(struct load *load, const char *path, struct source **source_out)
{
	const struct tree *root;
	struct source_text text;
	struct tree place = {.line = 0};
	struct why why;

	load->file = path;
	load->holds_keys = false;
	if (source_read(load->arena, load->work, path, LOAD_FILE_MAX, &text, source_out, &why) !=
	    ERR_OK) {
		load_fault(load, NULL, NULL, "%s", why.text);
		return NULL;
	}
	load_add_source(load, *source_out);
	if (tree_parse(load->work, text.p, text.n, &root, &place.line, &why) != ERR_OK) {
		load_fault(load, &place, NULL, "%s", why.text);
		return NULL;
	}
	load_repeated(load, root);
	if (root->type != TREE_OBJECT) {
		load_fault(
		    load, root, NULL, "must be an object, is %s", tree_type_name(root->type));
		return NULL;
	}
	return root;
}

void
load_private(struct load *load, const struct source *source)
{
	struct why why;

	if (load->holds_keys && source_private(source, &why) != ERR_OK)
		load_fault(load, NULL, NULL, "%s", why.text);
}

void
load_add_source(struct load *load, struct source *source)
{
	source->next = load->conf->sources;
	load->conf->sources = source;
}

char *
load_path(struct load *load, struct span path)
{
	if (path.n > 0 && path.p[0] == '/')
		return arena_z(load->arena, path);
	return arena_print(
	    load->arena, "%s/%.*s", load->dir[1] == '\0' ? "" : load->dir, (int)path.n, path.p);
}
