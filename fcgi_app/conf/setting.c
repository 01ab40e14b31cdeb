#include "conf/setting.h"

#include "conf/expand.h"
#include "conf/quantity.h"

#include <string.h>

typedef bool setting_reader(
    struct load *load, const struct tree *node, const struct option *row, void *at);

bool
setting_mistyped(struct load *load, const struct tree *node, const char *wanted)
{
	load_fault(load, node, NULL, "must be %s, is %s", wanted, tree_type_name(node->type));
	return false;
}

static bool
out_of_bounds(struct load *load, const struct tree *node, const struct option *row)
{
	char bounds[128];

	options_bounds(row, bounds, sizeof bounds);
	load_fault(load, node, NULL, "'%.*s' is out of bounds: %s", (int)node->text.n, node->text.p,
	    bounds);
	return false;
}

static bool
is_within(const struct option *row, double v)
{
	return v >= row->min && v <= row->max;
}

static bool
read_bool(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	bool *out = at;

	(void)row;
	if (node->type != TREE_TRUE && node->type != TREE_FALSE)
		return setting_mistyped(load, node, "true or false");
	*out = node->type == TREE_TRUE;
	return true;
}

static bool
read_int(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	int64_t *out = at, v;

	if (node->type != TREE_NUMBER)
		return setting_mistyped(load, node, "a whole number");
	if (text_find(node->text, SPAN(".")) < node->text.n ||
	    text_find_fold(node->text, SPAN("e")) < node->text.n) {
		load_fault(load, node, NULL, "must be a whole number, is %.*s", (int)node->text.n,
		    node->text.p);
		return false;
	}
	if (!text_i64(node->text, INT64_MIN, INT64_MAX, &v) || !is_within(row, (double)v))
		return out_of_bounds(load, node, row);
	*out = v;
	return true;
}

static bool
read_real(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	double *out = at, v;

	if (node->type != TREE_NUMBER)
		return setting_mistyped(load, node, "a number");
	if (!quantity_real(node->text, &v) || !is_within(row, v))
		return out_of_bounds(load, node, row);
	*out = v;
	return true;
}

static bool
read_micros(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	int64_t *out = at;
	double v;

	if (!read_real(load, node, row, &v))
		return false;
	/* a price is never rounded down to "free" */
	*out = v > 0 && v < 1e-6 ? 1 : (int64_t)(v * 1e6 + 0.5);
	return true;
}

bool
setting_text(struct load *load, const struct tree *node, struct span *out)
{
	struct span text;

	if (node->type != TREE_STRING)
		return setting_mistyped(load, node, "a string");
	if (!expand_node(load, node, EXPAND_TEXT, &text))
		return false;
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
			load_fault(load, node, NULL, "holds a control character");
			return false;
		}
	}
	*out = arena_copy(load->arena, text);
	return true;
}

/* A string that is read as something else. */
static bool
read_string(struct load *load, const struct tree *node, const char *wanted, struct span *out)
{
	if (node->type != TREE_STRING)
		return setting_mistyped(load, node, wanted);
	return expand_node(load, node, EXPAND_TEXT, out);
}

/* As it stands in the file: what a variable holds may be a secret that went astray. */
static bool
malformed(struct load *load, const struct tree *node, const char *wanted)
{
	char shown[80];

	text_clean(shown, sizeof shown, node->text);
	load_fault(load, node, NULL, "'%s' is not %s", shown, wanted);
	return false;
}

static bool
read_duration(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	static const char wanted[] =
	    "a duration such as \"250ms\", \"30s\", \"5m\", \"2h\" or \"7d\"";
	int64_t *out = at, v;
	struct span text;

	if (!read_string(load, node, wanted, &text))
		return false;
	if (!date_duration(text, &v))
		return malformed(load, node, wanted);
	if (!is_within(row, (double)v))
		return out_of_bounds(load, node, row);
	*out = v;
	return true;
}

static bool
read_size(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	static const char wanted[] = "a size such as \"64k\", \"32M\" or \"1G\"";
	int64_t *out = at, v;
	struct span text;

	if (!read_string(load, node, wanted, &text))
		return false;
	if (!quantity_size(text, &v))
		return malformed(load, node, wanted);
	if (!is_within(row, (double)v))
		return out_of_bounds(load, node, row);
	*out = v;
	return true;
}

static bool
read_minute(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	static const char wanted[] = "a time of day such as \"04:00\"";
	struct span text;

	(void)row;
	if (!read_string(load, node, wanted, &text))
		return false;
	return quantity_clock(text, at) || malformed(load, node, wanted);
}

static bool
read_clock(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	int64_t minute;
	int *out = at;

	if (!read_minute(load, node, row, &minute))
		return false;
	*out = (int)minute;
	return true;
}

/* A list of what `item` reads. */
static bool
read_numbers(struct load *load, const struct tree *node, const struct option *row,
    struct conf_numbers *out, setting_reader *item)
{
	struct conf_numbers list = {0};
	bool fine = true;

	if (node->type != TREE_ARRAY)
		return setting_mistyped(load, node, "a list");
	list.at = arena_alloc(load->arena, (node->n + 1) * sizeof *list.at);
	for (const struct tree *t = node->first; t != NULL; t = t->next)
		fine = item(load, t, row, &list.at[list.n++]) && fine;
	if (fine)
		*out = list;
	return fine;
}

static bool
read_durations(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	if (node->type == TREE_ARRAY && node->n == 0) {
		load_fault(load, node, NULL, "must not be empty");
		return false;
	}
	return read_numbers(load, node, row, at, read_duration);
}

static bool
read_clocks(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	return read_numbers(load, node, row, at, read_minute);
}

/* Index into choices, or -1, reported. */
static int
choice_of(struct load *load, const struct tree *node, const struct option *row, struct span text)
{
	struct nearest nearest;

	nearest_init(&nearest, node->text);
	for (int i = 0; row->choices[i] != NULL; i++) {
		if (text_is(text, row->choices[i]))
			return i;
		nearest_offer(&nearest, text_span(row->choices[i]));
	}
	load_misnamed(load, node, "unknown", &nearest);
	return -1;
}

static bool
read_text(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	struct span *out = at, text;

	if (!setting_text(load, node, &text))
		return false;
	if (row->choices != NULL && choice_of(load, node, row, text) < 0)
		return false;
	*out = text;
	return true;
}

static bool
read_path(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	struct span *out = at, text;

	(void)row;
	if (!setting_text(load, node, &text))
		return false;
	*out = text.n == 0 ? text : text_span(load_path(load, text));
	return true;
}

bool
setting_texts(struct load *load, const struct tree *node, struct conf_strings *out)
{
	struct conf_strings list = {0};
	bool fine = true;

	if (node->type != TREE_ARRAY)
		return setting_mistyped(load, node, "a list of strings");
	list.at = arena_alloc(load->arena, (node->n + 1) * sizeof *list.at);
	for (const struct tree *t = node->first; t != NULL; t = t->next) {
		struct span *item = &list.at[list.n++];

		if (!setting_text(load, t, item)) {
			fine = false;
		} else if (item->n == 0) {
			load_fault(load, t, NULL, "is empty");
			fine = false;
		}
	}
	if (fine)
		*out = list;
	return fine;
}

static bool
read_texts(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	(void)row;
	return setting_texts(load, node, at);
}

static bool
read_choice(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	int *out = at, choice;
	struct span text;

	if (!read_string(load, node, "a string", &text))
		return false;
	choice = choice_of(load, node, row, text);
	if (choice >= 0)
		*out = choice;
	return choice >= 0;
}

static bool
read_choices(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	unsigned *out = at, bits = 0;
	bool fine = true;

	if (node->type != TREE_ARRAY)
		return setting_mistyped(load, node, "a list of strings");
	for (const struct tree *t = node->first; t != NULL; t = t->next) {
		int choice = -1;

		if (read_choice(load, t, row, &choice))
			bits |= 1U << choice;
		else
			fine = false;
	}
	if (fine)
		*out = bits;
	return fine;
}

static bool
read_zone(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	struct conf_policy *policy = (void *)((char *)at - row->offset);
	const struct zone *zone;
	struct span *out = at, name;
	struct why why;

	if (!setting_text(load, node, &name))
		return false;
	if (zone_load(load->arena, name, NULL, &zone, &why) != ERR_OK) {
		load_fault(load, node, NULL, "%s", why.text);
		return false;
	}
	policy->cooldown.zone = zone;
	*out = name;
	return true;
}

static bool
read_other(struct load *load, const struct tree *node, const struct option *row, void *at)
{
	(void)load, (void)node, (void)row, (void)at;
	return true;
}

static setting_reader *const readers[OPTION__MAX] = {
    [OPTION_BOOL] = read_bool,
    [OPTION_INT] = read_int,
    [OPTION_REAL] = read_real,
    [OPTION_MICROS] = read_micros,
    [OPTION_DURATION] = read_duration,
    [OPTION_SIZE] = read_size,
    [OPTION_TEXT] = read_text,
    [OPTION_PATH] = read_path,
    [OPTION_TEXTS] = read_texts,
    [OPTION_DURATIONS] = read_durations,
    [OPTION_CLOCK] = read_clock,
    [OPTION_CLOCKS] = read_clocks,
    [OPTION_CHOICE] = read_choice,
    [OPTION_CHOICES] = read_choices,
    [OPTION_ZONE] = read_zone,
    [OPTION_OTHER] = read_other,
};

void *
setting_at(const struct option *row, const struct setting_into *into)
{
	char *base = row->in_policy ? (char *)into->policy : into->base;

	return base + row->offset;
}

void
setting_defaults(struct load *load, const struct setting_into *into)
{
	const struct option_group *group = &options_groups[into->group];

	for (const struct option *row = group->rows; row < group->rows + group->n; row++) {
		const struct tree *node;
		struct why why = {""};
		size_t line;
		char *text;

		if (row->standard == NULL || row->type == OPTION_OTHER)
			continue;
		text = arena_z(load->work, text_span(row->standard));
		if (tree_parse(load->work, text, strlen(text), &node, &line, &why) != ERR_OK ||
		    !readers[row->type](load, node, row, setting_at(row, into)))
			die("default of '%s': %s", row->path, why.text);
	}
}

/* The row whose path is prefix + name; *inside: no row, but rows that stand below it. */
static const struct option *
find_row(const struct option_group *group, const char *prefix, struct span name, bool *inside)
{
	*inside = false;
	if (text_find(name, SPAN(".")) < name.n)
		return NULL;
	for (const struct option *row = group->rows; row < group->rows + group->n; row++) {
		struct span rest = text_span(row->path);

		if (!text_starts(rest, prefix))
			continue;
		rest = text_from(rest, strlen(prefix));
		if (text_equal(rest, name))
			return row;
		if (rest.n > name.n && rest.p[name.n] == '.' &&
		    text_equal((struct span){rest.p, name.n}, name))
			*inside = true;
	}
	return NULL;
}

static void
report_unknown(struct load *load, const struct tree *node, const struct option_group *group,
    const char *prefix)
{
	struct span last = {NULL, 0};
	struct nearest nearest;
	char hint[300];

	nearest_init(&nearest, node->key);
	for (const struct option *row = group->rows; row < group->rows + group->n; row++) {
		struct span rest = text_span(row->path);

		if (!text_starts(rest, prefix))
			continue;
		rest = text_from(rest, strlen(prefix));
		rest.n = text_find(rest, SPAN("."));
		if (!text_equal(rest, last))
			nearest_offer(&nearest, rest);
		last = rest;
	}
	nearest_text(&nearest, hint, sizeof hint);
	load_fault(load, node, NULL, "unknown; %s", hint);
}

/* Recursion is as deep as the table: two levels. */
void
setting_read(struct load *load, const struct tree *object, const struct setting_into *into,
    const char *prefix)
{
	const struct option_group *group = &options_groups[into->group];

	for (const struct tree *t = object->first; t != NULL; t = t->next) {
		bool inside;
		const struct option *row = find_row(group, prefix, t->key, &inside);

		if (t->repeated)
			continue;
		if (row != NULL)
			readers[row->type](load, t, row, setting_at(row, into));
		else if (!inside)
			report_unknown(load, t, group, prefix);
		else if (t->type != TREE_OBJECT)
			setting_mistyped(load, t, "an object");
		else
			setting_read(load, t, into,
			    arena_print(load->work, "%s%.*s.", prefix, (int)t->key.n, t->key.p));
	}
}

bool
setting_is_name(struct span name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = text_lower(name.p[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
		    (c == '\0' || strchr("._@-", c) == NULL))
			return false;
	}
	return name.n >= 1 && name.n <= 64;
}
