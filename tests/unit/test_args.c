#include "ctl/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS 8

struct got {
	struct ctl ctl;
	const char *text;
	int64_t number;
	bool flag;
	char said[2048];
	size_t n;
	char *buffer;
};

static void
got_begin(struct got *got)
{
	*got = (struct got){.number = 7};
	got->ctl.err = open_memstream(&got->buffer, &got->n);
	got->ctl.out = got->ctl.err;
}

static void
got_end(struct got *got)
{
	fclose(got->ctl.err);
	snprintf(got->said, sizeof got->said, "%s", got->buffer);
	free(got->buffer);
}

static const struct {
	const char *what;
	const char *argv[WORDS];
	bool ok;
	const char *words; /* joined */
	const char *text;
	int64_t number;
	bool flag, json;
	const char *says; /* among other things; "" = nothing */
} rows[] = {
    {"nothing", {"c"}, true, "", NULL, 7, false, false, ""},
    {"words", {"c", "a", "b"}, true, "a b", NULL, 7, false, false, ""},
    {"options among words", {"c", "a", "--text", "x", "b", "--json"}, true, "a b", "x", 7, false,
        true, ""},
    {"a number", {"c", "--number", "10"}, true, "", NULL, 10, false, false, ""},
    {"the last one counts", {"c", "--number", "10", "--number", "9"}, true, "", NULL, 9, false,
        false, ""},
    {"a flag takes no word", {"c", "--flag", "a"}, true, "a", NULL, 7, true, false, ""},
    {"a lone dash is a word", {"c", "-"}, true, "-", NULL, 7, false, false, ""},
    {"behind -- all are words", {"c", "--flag", "--", "--text", "--json"}, true, "--text --json",
        NULL, 7, true, false, ""},
    {"a value may begin with a dash", {"c", "--text", "-x"}, true, "", "-x", 7, false, false, ""},
    {"no value", {"c", "--text"}, false, "", NULL, 7, false, false, "--text wants a value"},
    {"an empty value", {"c", "--text", ""}, false, "", NULL, 7, false, false,
        "--text wants a value"},
    {"no number", {"c", "--number", "1x"}, false, "", NULL, 7, false, false,
        "from 1 to 400, not '1x'"},
    {"a number too large", {"c", "--number", "401"}, false, "", NULL, 7, false, false,
        "from 1 to 400"},
    {"misspelt", {"c", "--nunber", "4"}, false, "", NULL, 7, false, false,
        "no option '--nunber'; did you mean '--number'?"},
    {"json misspelt", {"c", "--jsno"}, false, "", NULL, 7, false, false, "did you mean '--json'?"},
    {"nothing like it", {"c", "--zzzzzzzzz"}, false, "", NULL, 7, false, false,
        "valid: --text, --number, --flag, --json"},
};

static void
test_options(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct got got;
		const struct args_option options[] = {
		    {.name = "--text", .text = &got.text},
		    {.name = "--number", .number = &got.number, .min = 1, .max = 400},
		    {.name = "--flag", .flag = &got.flag},
		};
		char *argv[WORDS + 1] = {NULL}, words[256] = "";
		int argc = 0;
		bool ok;

		got_begin(&got);
		for (; argc < WORDS && rows[i].argv[argc] != NULL; argc++)
			argv[argc] = strdup(rows[i].argv[argc]);
		char *all[WORDS];
		memcpy(all, argv, sizeof all);
		ok = args_read(&got.ctl, &argc, argv, options, NELEM(options));
		got_end(&got);
		for (int k = 1; ok && k < argc; k++)
			snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s",
			    k > 1 ? " " : "", argv[k]);
		if (ok != rows[i].ok || (ok && argv[argc] != NULL) ||
		    strcmp(words, rows[i].words) != 0 || got.number != rows[i].number ||
		    got.flag != rows[i].flag || got.ctl.json != rows[i].json ||
		    (got.text == NULL) != (rows[i].text == NULL) ||
		    (got.text != NULL && strcmp(got.text, rows[i].text) != 0))
			fail_msg("%s: %d '%s' text %s number %lld flag %d json %d", rows[i].what,
			    ok, words, got.text, (long long)got.number, got.flag, got.ctl.json);
		if (strstr(got.said, rows[i].says) == NULL ||
		    (rows[i].says[0] == '\0') != (got.said[0] == '\0'))
			fail_msg("%s: said '%s', want '%s'", rows[i].what, got.said, rows[i].says);
		for (size_t k = 0; k < WORDS; k++)
			free(all[k]);
	}
}

static int
run_list(struct ctl *ctl, int argc, char **argv)
{
	fprintf(ctl->out, "list of %d: %s", argc, argv[0]);
	return CTL_DONE;
}

static int
run_drop(struct ctl *ctl, int argc, char **argv)
{
	(void)argc, (void)argv;
	fprintf(ctl->out, "drop");
	return CTL_FAILED;
}

static const struct {
	const char *what;
	const char *argv[4];
	int status;
	const char *says;
} verbs[] = {
    {"a verb", {"things", "list", "x"}, CTL_DONE, "list of 2: list"},
    {"its status", {"things", "drop"}, CTL_FAILED, "drop"},
    {"misspelt", {"things", "lis"}, CTL_USAGE, "no command of things 'lis'; did you mean 'list'?"},
    {"none", {"things"}, CTL_USAGE, "usage: sluicectl things list [--json]\n"},
    {"all are told", {"things", "what"}, CTL_USAGE, "       sluicectl things drop NAME\n"},
};

static void
test_verbs(void **state)
{
	static const struct args_verb table[] = {
	    {"list", run_list, "[--json]"}, {"drop", run_drop, "NAME"}};

	(void)state;
	for (size_t i = 0; i < NELEM(verbs); i++) {
		char *argv[5] = {NULL};
		struct got got;
		int argc = 0, status;

		for (; argc < 4 && verbs[i].argv[argc] != NULL; argc++)
			argv[argc] = strdup(verbs[i].argv[argc]);
		got_begin(&got);
		status = args_verb_run(&got.ctl, argc, argv, table, NELEM(table));
		got_end(&got);
		if (status != verbs[i].status || strstr(got.said, verbs[i].says) == NULL)
			fail_msg("%s: %d '%s', want %d '%s'", verbs[i].what, status, got.said,
			    verbs[i].status, verbs[i].says);
		for (int k = 0; k < argc; k++)
			free(argv[k]);
	}
}

static void
test_only(void **state)
{
	char command[] = "limits", word[] = "x";
	char *argv[] = {command, word, NULL};
	struct got got;

	(void)state;
	got_begin(&got);
	assert_true(args_only(&got.ctl, 1, argv, NULL, 0));
	argv[1] = word;
	assert_false(args_only(&got.ctl, 2, argv, NULL, 0));
	got_end(&got);
	assert_non_null(strstr(got.said, "'limits' takes no 'x'"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_options),
	    cmocka_unit_test(test_verbs),
	    cmocka_unit_test(test_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
