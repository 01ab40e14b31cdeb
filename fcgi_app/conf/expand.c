#include "conf/expand.h"

#include <stdlib.h>

static bool
is_name(struct span name)
{
	if (name.n == 0 || (name.p[0] >= '0' && name.p[0] <= '9'))
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = text_lower(name.p[i]);

		if (c != '_' && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9'))
			return false;
	}
	return true;
}

static bool
put_variable(struct load *load, const struct tree *node, struct span name)
{
	const char *z = arena_z(load->work, name), *value;

	if (!is_name(name)) {
		load_fault(load, node, NULL,
		    "'${%s}' is no name of a variable (a literal '${' is written '$${')", z);
		return false;
	}
	if (text_starts(name, "HTTP_")) {
		load_fault(load, node, NULL,
		    "variable '%s': a client can set those that begin with HTTP_", z);
		return false;
	}
	value = getenv(z);
	if (value == NULL) {
		load_fault(load, node, NULL, "variable '%s' is not set", z);
		return false;
	}
	buf_z(load->scratch, value);
	return true;
}

static bool
put_file(struct load *load, const struct tree *node, struct span name, enum expand_use use)
{
	const char *path = load_path(load, name);
	struct source_text text;
	struct source *source;
	struct why why;

	if (name.n == 0) {
		load_fault(load, node, NULL, "'${file:}' names no file");
		return false;
	}
	if (source_read(load->arena, load->work, path, EXPAND_FILE_MAX, &text, &source, &why) !=
	    ERR_OK) {
		load_fault(load, node, NULL, "file '%s' %s", path, why.text);
		return false;
	}
	load_add_source(load, source);
	if (use == EXPAND_SECRET && source_private(source, &why) != ERR_OK) {
		load_fault(load, node, NULL, "file '%s' %s", path, why.text);
		return false;
	}
	buf_span(load->scratch, text_trim((struct span){text.p, text.n}));
	return true;
}

/* At "${": put in what it stands for and step over it. */
static bool
put_reference(struct load *load, const struct tree *node, enum expand_use use, size_t *at)
{
	struct span rest = text_from(node->text, *at + 2);
	size_t end = text_find(rest, SPAN("}"));
	struct span name = {rest.p, end};

	if (end == rest.n) {
		load_fault(load, node, NULL, "'${' without '}' (a literal '${' is written '$${')");
		*at = node->text.n;
		return false;
	}
	*at += 2 + end + 1;
	if (text_starts(name, "file:"))
		return put_file(load, node, text_from(name, 5), use);
	return put_variable(load, node, name);
}

bool
expand_node(struct load *load, const struct tree *node, enum expand_use use, struct span *out)
{
	struct span in = node->text;
	bool fine = true;

	if (text_find(in, SPAN("${")) == in.n) {
		*out = in;
		return true;
	}
	buf_clear(load->scratch);
	for (size_t i = 0; i < in.n;) {
		struct span rest = text_from(in, i);

		if (text_starts(rest, "$${")) {
			buf_z(load->scratch, "${");
			i += 3;
		} else if (text_starts(rest, "${")) {
			fine = put_reference(load, node, use, &i) && fine;
		} else {
			buf_char(load->scratch, in.p[i++]);
		}
	}
	*out = buf_text(load->scratch);
	if (load->soiled < out->n)
		load->soiled = out->n;
	if (fine && load->scratch->over) {
		load_fault(load, node, NULL, "is too long after its variables were put in");
		return false;
	}
	if (fine && (!text_utf8(*out) || text_find(*out, SPAN("\0")) < out->n)) {
		load_fault(load, node, NULL, "what was put in for ${...} is not UTF-8 text");
		return false;
	}
	return fine;
}

void
expand_escape(struct span text, struct buf *out)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text_starts(text_from(text, i), "${"))
			buf_char(out, '$');
		buf_char(out, text.p[i]);
	}
}
