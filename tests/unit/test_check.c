#include "ctl/check.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_check.XXXXXX";
static char good[64], bad[64];

static void
put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	chmod(path, 0600);
}

static int
set_up(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return 1;
	snprintf(good, sizeof good, "%s/good.json", dir);
	snprintf(bad, sizeof bad, "%s/bad.json", dir);
	put(good,
	    "{\"channels\":{\"c\":{\"base_url\":\"http://u\",\"fallback\":[\"d\"],\"accounts\":["
	    "{\"id\":\"a\",\"api_key\":\"sk-not-to-be-seen\"}]},"
	    "\"d\":{\"base_url\":\"http://u\",\"fallback\":[\"c\"],\"accounts\":[{\"id\":\"a\"}]}}}");
	put(bad, "{\"a\":1,\n\"b\":2}");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	return unlink(good) + unlink(bad) + rmdir(dir);
}

struct case_row {
	const char *what;
	int (*run)(struct ctl *ctl, int argc, char **argv);
	const char *given; /* -c */
	const char *argv[5];
	int status;
	const char *out, *err; /* must be in it; "" = must be empty */
};

static const struct case_row cases[] = {
    {"good", check_run, NULL, {"check", good}, 0,
        "good.json: ok (channels 2, accounts 2, models 0)", "note: "},
    {"by -c", check_run, good, {"check"}, 0, "ok (", "cycle c -> d -> c"},
    {"printed", check_run, NULL, {"check", "-v", good}, 0, "\"api_key\": \"********\"", "note: "},
    {"long form", check_run, good, {"check", "--print"}, 0, "\"base_url\": \"http://u\"", "note: "},
    {"every fault", check_run, NULL, {"check", bad}, 1, "", ":2: key 'b': unknown"},
    {"not there", check_run, NULL, {"check", "/nonexistent/x.json"}, 1, "",
        "/nonexistent/x.json: cannot open"},
    {"json", check_run, NULL, {"check", "--json", good}, 0, "{\"ok\":true,", ""},
    {"json printed", check_run, NULL, {"check", "--json", "-v", good}, 0, "\"configuration\":{",
        ""},
    {"json of faults", check_run, NULL, {"check", "--json", bad}, 1, "\"level\":\"fault\"", ""},
    {"two files", check_run, NULL, {"check", good, bad}, 2, "", "usage: "},
    {"unknown option", check_run, NULL, {"check", "-x"}, 2, "", "usage: "},
    {"help", check_run, NULL, {"check", "--help"}, 0, "example: ", ""},
    {"options", check_options_run, NULL, {"options"}, 0,
        "pool.max_in_flight\n    integer, default 3", ""},
    {"options of accounts", check_options_run, NULL, {"options"}, 0,
        "channels.NAME.accounts[].api_key", ""},
    {"options in json", check_options_run, NULL, {"options", "--json"}, 0,
        "[{\"path\":\"state_dir\"", ""},
    {"example", check_options_run, NULL, {"options", "--example"}, 0, "\"max_in_flight\": 3", ""},
    {"options with a word", check_options_run, NULL, {"options", "x"}, 2, "", "usage: "},
    {"options help", check_options_run, NULL, {"options", "-h"}, 0, "example: ", ""},
};

static bool
fits(const char *text, const char *want)
{
	return *want == '\0' ? *text == '\0' : strstr(text, want) != NULL;
}

static void
run_case(const struct case_row *row)
{
	char *out = NULL, *err = NULL, args[5][80], *argv[5];
	size_t nout, nerr;
	struct ctl ctl = {.conf_given = row->given};
	int argc = 0, status;

	for (; argc < 5 && row->argv[argc] != NULL; argc++) {
		snprintf(args[argc], sizeof args[argc], "%s", row->argv[argc]);
		argv[argc] = args[argc];
	}
	ctl.out = open_memstream(&out, &nout);
	ctl.err = open_memstream(&err, &nerr);
	status = row->run(&ctl, argc, argv);
	fclose(ctl.out);
	fclose(ctl.err);
	if (status != row->status || !fits(out, row->out) || !fits(err, row->err))
		fail_msg("%s: got %d, out '%s', err '%s'; want %d, '%s', '%s'", row->what, status,
		    out, err, row->status, row->out, row->err);
	if (strstr(out, "not-to-be-seen") != NULL || strstr(err, "not-to-be-seen") != NULL)
		fail_msg("%s: a key can be seen", row->what);
	free(out);
	free(err);
}

static void
test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++)
		run_case(&cases[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
