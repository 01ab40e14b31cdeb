#include "conf/options.h"

#include "base/emit.h"
#include "conf/quantity.h"

#include <stdio.h>
#include <string.h>

#define PATH_TEXT 80

const char *
options_type_name(const struct option *row)
{
	static const char *const names[OPTION__MAX] = {
	    [OPTION_BOOL] = "boolean",
	    [OPTION_INT] = "integer",
	    [OPTION_REAL] = "number",
	    [OPTION_MICROS] = "amount",
	    [OPTION_DURATION] = "duration",
	    [OPTION_SIZE] = "size",
	    [OPTION_TEXT] = "string",
	    [OPTION_PATH] = "path",
	    [OPTION_TEXTS] = "strings",
	    [OPTION_DURATIONS] = "durations",
	    [OPTION_CLOCK] = "time",
	    [OPTION_CLOCKS] = "times",
	    [OPTION_CHOICE] = "choice",
	    [OPTION_CHOICES] = "choices",
	    [OPTION_ZONE] = "zone",
	    [OPTION_OTHER] = "object",
	};
	const char *shown = row->standard != NULL ? row->standard : row->sample;

	if (row->type == OPTION_OTHER && shown != NULL && *shown != '{')
		return *shown == '[' ? "list" : "string";
	return names[row->type];
}

static void
print_number(const struct option *row, double v, char out[QUANTITY_TEXT])
{
	if (row->type == OPTION_DURATION || row->type == OPTION_DURATIONS)
		quantity_print_duration((int64_t)v, out);
	else if (row->type == OPTION_SIZE)
		quantity_print_size((int64_t)v, out);
	else
		quantity_print_real(v, out);
}

static bool
has_bounds(const struct option *row)
{
	return row->max > row->min;
}

void
options_bounds(const struct option *row, char *dst, size_t cap)
{
	char min[QUANTITY_TEXT], max[QUANTITY_TEXT];
	struct buf list;

	buf_init(&list, 1024);
	if (has_bounds(row)) {
		print_number(row, row->min, min);
		print_number(row, row->max, max);
		buf_print(&list, "%s to %s", min, max);
	}
	for (size_t i = 0; row->choices != NULL && row->choices[i] != NULL; i++)
		buf_print(&list, "%s%s", i == 0 ? "" : " | ",
		    *row->choices[i] == '\0' ? "\"\"" : row->choices[i]);
	snprintf(dst, cap, "%s", list.n == 0 ? "" : list.p);
	buf_release(&list);
}

void
options_print_table(struct buf *out)
{
	for (size_t g = 0; g < OPTIONS__MAX; g++) {
		const struct option_group *group = &options_groups[g];

		for (const struct option *row = group->rows; row < group->rows + group->n; row++) {
			char bounds[256];

			options_bounds(row, bounds, sizeof bounds);
			buf_print(
			    out, "%s%s\n    %s", group->prefix, row->path, options_type_name(row));
			if (row->standard != NULL)
				buf_print(out, ", default %s", row->standard);
			if (bounds[0] != '\0')
				buf_print(out, ", %s", bounds);
			if (row->in_policy)
				buf_z(out, ", also in a channel");
			buf_print(out, "\n    %s\n", row->help);
		}
	}
}

/* As it would stand in the file: durations and sizes are strings. */
static void
emit_bound(struct emit *e, const char *key, const struct option *row, const char *text)
{
	if (row->type == OPTION_INT || row->type == OPTION_REAL || row->type == OPTION_MICROS)
		emit_raw(e, key, text_span(text));
	else
		emit_z(e, key, text);
}

static void
print_json_row(struct emit *e, const struct option_group *group, const struct option *row)
{
	char path[PATH_TEXT], text[QUANTITY_TEXT];

	snprintf(path, sizeof path, "%s%s", group->prefix, row->path);
	emit_object(e, NULL);
	emit_z(e, "path", path);
	emit_z(e, "type", options_type_name(row));
	if (row->standard != NULL)
		emit_raw(e, "default", text_span(row->standard));
	if (has_bounds(row)) {
		print_number(row, row->min, text);
		emit_bound(e, "min", row, text);
		print_number(row, row->max, text);
		emit_bound(e, "max", row, text);
	}
	if (row->choices != NULL) {
		emit_array(e, "choices");
		for (size_t i = 0; row->choices[i] != NULL; i++)
			emit_z(e, NULL, row->choices[i]);
		emit_end(e);
	}
	emit_bool(e, "channel", row->in_policy);
	emit_z(e, "help", row->help);
	emit_end(e);
}

void
options_print_json(struct buf *out)
{
	struct emit e;

	emit_init(&e, out);
	emit_array(&e, NULL);
	for (size_t g = 0; g < OPTIONS__MAX; g++)
		for (size_t i = 0; i < options_groups[g].n; i++)
			print_json_row(&e, &options_groups[g], &options_groups[g].rows[i]);
	emit_end(&e);
	buf_char(out, '\n');
}

/* One setting of the example: its help above it, its bounds too. */
static void
print_member(struct buf *out, const struct option *row, const char *name, const char *indent,
    const char *value)
{
	char bounds[256];

	options_bounds(row, bounds, sizeof bounds);
	buf_print(
	    out, bounds[0] == '\0' ? "%s// %s%s\n" : "%s// %s (%s)\n", indent, row->help, bounds);
	buf_print(out, "%s\"%s\": %s", indent, name, value);
}

/* Leave the object that the last row stood in, and enter this one's. */
static void
print_section(struct buf *out, const char *indent, struct span from, struct span to, bool first)
{
	bool same = text_equal(from, to);

	if (!same && from.n > 0)
		buf_print(out, "\n%s}", indent);
	if (!first)
		buf_z(out, ",\n");
	if (!same && to.n > 0)
		buf_print(out, "%s\"%.*s\": {\n", indent, (int)to.n, to.p);
}

/* The rows of a group as members, those of "a.b" in an object "a"; `other` may print a row in its own way. */
static void
print_rows(struct buf *out, const struct option_group *group, const char *indent,
    bool (*other)(struct buf *out, const struct option *row))
{
	struct span section = {NULL, 0};
	char deeper[16];

	snprintf(deeper, sizeof deeper, "%s\t", indent);
	for (const struct option *row = group->rows; row < group->rows + group->n; row++) {
		const char *dot = strchr(row->path, '.'), *value;
		struct span mine = {row->path, dot == NULL ? 0 : (size_t)(dot - row->path)};

		print_section(out, indent, section, mine, row == group->rows);
		section = mine;
		if (row->type == OPTION_OTHER && other(out, row))
			continue;
		value = row->sample != NULL ? row->sample : row->standard;
		print_member(out, row, dot == NULL ? row->path : dot + 1,
		    dot == NULL ? indent : deeper, value);
	}
	if (section.n > 0)
		buf_print(out, "\n%s}", indent);
	buf_char(out, '\n');
}

static bool
print_no_other(struct buf *out, const struct option *row)
{
	(void)out, (void)row;
	return false;
}

/* A list of one object of `group`. */
static void
print_list(struct buf *out, const struct option *row, enum options_group group)
{
	buf_print(out, "\t\t\t// %s\n\t\t\t\"%s\": [\n\t\t\t\t{\n", row->help, row->path);
	print_rows(out, &options_groups[group], "\t\t\t\t\t", print_no_other);
	buf_z(out, "\t\t\t\t}\n\t\t\t]");
}

static bool
print_entry_other(struct buf *out, const struct option *row)
{
	if (strcmp(row->path, "rules") == 0)
		print_list(out, row, OPTIONS_RULE);
	else if (strcmp(row->path, "accounts") == 0)
		print_list(out, row, OPTIONS_ACCOUNT);
	else if (strcmp(row->path, "targets") == 0)
		print_list(out, row, OPTIONS_TARGET);
	else
		return false;
	return true;
}

static bool
print_global_other(struct buf *out, const struct option *row)
{
	bool models = strcmp(row->path, "models") == 0;

	if (!models && strcmp(row->path, "channels") != 0)
		return false;
	buf_print(out, "\t// %s\n\t\"%s\": {\n\t\t\"%s\": {\n", row->help, row->path,
	    models ? "large" : "example");
	print_rows(out, &options_groups[models ? OPTIONS_MODEL : OPTIONS_CHANNEL], "\t\t\t",
	    print_entry_other);
	buf_z(out, "\t\t}\n\t}");
	return true;
}

void
options_print_example(struct buf *out)
{
	buf_z(out,
	    "// Every setting with its default, and one channel and one model. Made by `sluicectl options "
	    "--example`.\n"
	    "// ${NAME} in a string is taken from the environment, ${file:PATH} from a file; a literal ${ is "
	    "written $${.\n"
	    "{\n");
	print_rows(out, &options_groups[OPTIONS_GLOBAL], "\t", print_global_other);
	buf_z(out, "}\n");
}
