#include "conf/options.h"

#include "conf/load.h"
#include "verdict.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define EXAMPLE "examples/full.json" /* from the top of the tree, where make runs */

static void
read_text(const char *path, struct buf *out)
{
	FILE *f = fopen(path, "r");
	char part[4096];
	size_t n;

	if (f == NULL)
		fail_msg("%s: cannot open", path);
	while (f != NULL && (n = fread(part, 1, sizeof part, f)) > 0)
		buf_add(out, part, n);
	if (f != NULL)
		fclose(f);
}

static bool
is_first(const struct option_group *group, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (strcmp(group->rows[j].path, group->rows[i].path) == 0)
			return false;
	return true;
}

/* Each row can be told to people, stands once, and its section stands together. */
static void
test_rows(void **state)
{
	(void)state;
	assert_int_equal(options_groups[OPTIONS_GLOBAL].n, options_count);
	for (size_t g = 0; g < OPTIONS__MAX; g++)
		for (size_t i = 0; i < options_groups[g].n; i++) {
			const struct option *row = &options_groups[g].rows[i];
			bool number = row->type == OPTION_INT || row->type == OPTION_REAL ||
			              row->type == OPTION_MICROS || row->type == OPTION_DURATION ||
			              row->type == OPTION_SIZE || row->type == OPTION_DURATIONS;
			bool choice = row->type == OPTION_CHOICE || row->type == OPTION_CHOICES;

			if (row->help == NULL || row->help[0] == '\0' ||
			    !is_first(&options_groups[g], i))
				fail_msg("%s: no help, or twice", row->path);
			if (number != (row->max > row->min) || (choice && row->choices == NULL))
				fail_msg("%s: bounds or choices", row->path);
			if (row->standard == NULL && row->sample == NULL)
				fail_msg("%s: neither default nor sample", row->path);
		}
}

/* What a rule may name is what there is, but for the two that no answer can be. */
static void
test_kinds(void **state)
{
	const struct option_group *group = &options_groups[OPTIONS_RULE];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < group->n; i++)
		for (;
		     strcmp(group->rows[i].path, "kind") == 0 && group->rows[i].choices[n] != NULL;
		     n++)
			if (verdict_named(text_span(group->rows[i].choices[n])) == VERDICT__MAX)
				fail_msg("'%s' is no verdict", group->rows[i].choices[n]);
	assert_int_equal(n, VERDICT__MAX - 2);
}

static void
test_bounds(void **state)
{
	static const struct {
		const char *path, *want;
	} cases[] = {
	    {"server.workers_min", "1 to 4096"},
	    {"server.max_body", "1 to 2G"},
	    {"upstream.connect_timeout", "1ms to 365d"},
	    {"pool.cost_alpha", "0.001 to 1"},
	    {"auth.mode", "web-server | keys | open"},
	    {"auth.admins", ""},
	};
	char got[128];

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++)
		for (size_t j = 0; j < options_count; j++) {
			if (strcmp(options_table[j].path, cases[i].path) != 0)
				continue;
			options_bounds(&options_table[j], got, sizeof got);
			assert_string_equal(got, cases[i].want);
		}
}

/* The committed example is what the table prints; it is made by `sluicectl options --example`. */
static void
test_example(void **state)
{
	struct buf want, got;

	(void)state;
	buf_init(&want, 1 << 20);
	buf_init(&got, 1 << 20);
	options_print_example(&want);
	read_text(EXAMPLE, &got);
	if (!text_equal(buf_text(&got), buf_text(&want)))
		fail_msg("%s is not what the table prints", EXAMPLE);
	buf_release(&want);
	buf_release(&got);
}

static void
load_example(const char *name)
{
	struct conf *conf = NULL;
	struct conf_report report = {0};
	struct why why = {""};
	char dir[] = "/tmp/test_options.XXXXXX", path[64];
	struct buf text;
	enum err err;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/x.json", dir);
	buf_init(&text, 1 << 20);
	read_text(name, &text);
	f = fopen(path, "w");
	assert_non_null(f);
	fwrite(text.p, 1, text.n, f);
	fclose(f);
	chmod(path, 0600);
	err = conf_load(path, &conf, &report, &why);
	remove(path);
	remove(dir);
	buf_release(&text);
	if (err != ERR_OK || report.n != 0)
		fail_msg("%s: %s", name, report.n > 0 ? report.at[0].text : why.text);
	conf_free(&conf);
}

static void
test_examples_load(void **state)
{
	(void)state;
	setenv("EXAMPLE_KEY", "k", 1);
	setenv("OPENAI_API_KEY", "k", 1);
	load_example(EXAMPLE);
	load_example("examples/minimal.json");
}

/* The JSON form is JSON, a row for each. */
static void
test_json(void **state)
{
	struct arena *arena = arena_new((size_t)16 << 20);
	const struct tree *root;
	size_t n = 0, line;
	struct buf text;
	struct why why;

	(void)state;
	buf_init(&text, 1 << 20);
	options_print_json(&text);
	if (tree_parse(arena, text.p, text.n, &root, &line, &why) != ERR_OK)
		fail_msg("line %zu: %s", line, why.text);
	for (size_t g = 0; g < OPTIONS__MAX; g++)
		n += options_groups[g].n;
	assert_int_equal(root->n, n);
	assert_true(text_is(tree_at(root->first->next, "path")->text, "server.workers_min"));
	assert_true(text_is(tree_at(root->first->next, "default")->text, "2"));
	assert_true(text_is(tree_at(root->first->next, "max")->text, "4096"));
	buf_release(&text);
	arena_free(&arena);
}

/* The words stand in the order of their enums. */
static void
test_words(void **state)
{
	(void)state;
	assert_string_equal(options_routings[CONF_ROUTE_COST_FIRST], "cost-first");
	assert_string_equal(options_routings[CONF_ROUTE_MIXED], "mixed");
	assert_string_equal(options_wires[WIRE_MESSAGES], "messages");
	assert_string_equal(options_wires[WIRE_RESPONSES], "responses");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_words),
	    cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_example),
	    cmocka_unit_test(test_examples_load),
	    cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
