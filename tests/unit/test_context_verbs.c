#include "ctl/context_verbs.h"

#include "context_store.h"
#include "lib/conf_text.h"
#include "lib/store_boot.h"

#define CONF                                                                             \
	"{'state_dir':'%s','context':{'ttl':'1d'},'channels':{'c':{'provider':'openai'," \
	"'accounts':[{'id':'a','api_key':'sk-test-0123456789'}]}}}"

static struct {
	const char *conf_path;
	char text[4096];
} here;

static int64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000;
}

/* ---- conversations to look at ---- */

struct keep {
	const char *client;
	enum session_kind kind;
	const char *name;
	int64_t age_ms;
	size_t nturns;
	const char *turns[3];
};

#define TEXT(role, text) \
	"{\"role\":\"" role "\",\"parts\":[{\"kind\":\"text\",\"text\":\"" text "\"}]}"
#define DAY INT64_C(86400000)

static const struct keep kept[] = {
    {"ann", SESSION_HEADER, "old", 2 * DAY, 1, {TEXT("user", "over")}},
    {"ann", SESSION_HEADER, "talk", 60000, 3,
        {TEXT("user", "first\\nline \\u001b[31mred\\u009b2J"),
            "{\"role\":\"assistant\",\"parts\":[{\"kind\":\"thought\",\"text\":\"hm\"},{\"kind\":\"call\","
            "\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}]}",
            "{\"role\":\"tool\",\"parts\":[{\"kind\":\"result\",\"result_of\":\"c1\",\"is_error\":true,"
            "\"parts\":[{\"kind\":\"text\",\"text\":\"no\"},{\"kind\":\"image\",\"media_type\":\"image/png\","
            "\"data\":\"AAAA\"}]}]}"}},
    {"bob", SESSION_BODY, "talk", 30000, 1, {TEXT("user", "bob's")}},
    {"bob", SESSION_HEADER, "talk", 20000, 1, {TEXT("user", "bob's, too")}},
    {"bob", SESSION_HEADER, "odd", 10000, 1, {"{\"role\":\"odd\"}"}},
    {"", SESSION_HEADER, "talk", 5000, 1, {TEXT("system", "nobody's")}},
};

static struct session_secret secret;

static enum store_rc
keep_in(struct txn *book, void *arg)
{
	const struct keep *keep = arg;
	struct talk_limits limits = {{now_ms() - keep->age_ms}, 9 * DAY, 1 << 20, 1 << 24};
	struct env_bytes turns[3];
	struct talk_append append = {
	    .client = {keep->client, strlen(keep->client)}, .turns = turns, .nturns = keep->nturns};
	struct session_key key;

	session_name(&secret, text_span(keep->client), keep->kind, text_span(keep->name), &key);
	for (size_t i = 0; i < keep->nturns; i++)
		turns[i] = (struct env_bytes){keep->turns[i], strlen(keep->turns[i])};
	return talk_append(book, key.hash, &append, &limits);
}

static void
fill(struct env *env)
{
	for (size_t i = 0; i < NELEM(kept); i++) {
		struct keep keep = kept[i];

		assert_int_equal(env_book_update(env, keep_in, &keep), STORE_OK);
	}
}

/* A configuration, and a store of it. */
static void
begin(const struct store_dir *dir, bool filled)
{
	static char path[128];
	struct env *env;
	struct why why;
	FILE *f;

	snprintf(path, sizeof path, "%s/sluice.json", dir->path);
	f = fopen(path, "w");
	assert_non_null(f);
	snprintf(here.text, sizeof here.text, CONF, dir->path);
	for (const char *p = here.text; *p != '\0'; p++)
		fputc(*p == '\'' ? '"' : *p, f);
	fclose(f);
	chmod(path, 0600);
	here.conf_path = path;
	env = store_dir_open(dir);
	assert_non_null(env);
	assert_int_equal(session_secret(dir->path, &secret, &why), ERR_OK);
	if (filled) {
		assert_int_equal(store_save(env), STORE_OK);
		fill(env);
	}
	env_close(&env);
}

/* ---- commands ---- */

struct said {
	int status;
	char *out, *err;
};

static struct said
run(const char *words)
{
	char line[256], *argv[16], *rest = line;
	struct said said;
	size_t out_n, err_n;
	struct ctl ctl = {.conf_given = here.conf_path,
	    .out = open_memstream(&said.out, &out_n),
	    .err = open_memstream(&said.err, &err_n)};
	int argc = 0;

	snprintf(line, sizeof line, "context %s", words);
	for (char *word; (word = strsep(&rest, " ")) != NULL && argc < 15;)
		argv[argc++] = word;
	argv[argc] = NULL;
	said.status = context_verbs_run(&ctl, argc, argv);
	fclose(ctl.out);
	fclose(ctl.err);
	return said;
}

static void
forget(struct said *said)
{
	free(said->out);
	free(said->err);
}

/* In their order, on one store. HASH is that of the row before whose `what` says so. */
static const struct row {
	const char *what, *words;
	int status;
	const char *out, *other; /* stand in the output, or where it failed in what was said */
	const char *never;
} rows[] = {
    {"list", "list", CTL_DONE, "-                             1", "SESSION       CLIENT",
        "2 turns"},
    {"newest first", "list --json", CTL_DONE, "[{\"session\":\"", "\"client\":\"\",\"turns\":1",
        "2 turns"},
    {"of one client", "list --client ann", CTL_DONE, "ann                           3", "ann",
        "bob"},
    {"of nobody known", "list --client eve", CTL_DONE, "SESSION", "", "ann"},
    {"by name", "show --client ann --id talk", CTL_DONE,
        "user       first line ?[31mred??2J\nassistant  (thought) hm\n           (call) f {\"a\":1}\n"
        "tool       (result, an error) of c1:\n             no\n             (image) image/png 4 bytes",
        "of client ann, 3 turns, ", "\x1b"},
    {"of no client", "show --id talk", CTL_DONE, "system     nobody's", "of client -, 1 turns",
        "bob"},
    {"as JSON", "show --client ann --id talk --json", CTL_DONE,
        "\"turns\":[{\"role\":\"user\",\"parts\":[{", "\"arguments\":\"{\\\"a\\\":1}\"", "\x1b"},
    {"came in two ways", "show --client bob --id talk", CTL_FAILED, "fits 2 conversations", "",
        "bob's"},
    {"cannot be read", "show --client bob --id odd", CTL_FAILED, "turn 0 cannot be read: 'role'",
        "", "bob"},
    {"expired", "show --client ann --id old", CTL_FAILED, "no such conversation is kept: 'old'", "",
        "over"},
    {"another client's", "show --client eve --id talk", CTL_FAILED, "no such conversation", "",
        "first"},
    {"no hash", "show zzzzzz", CTL_FAILED, "is no hash of a session", "`context list`", ""},
    {"short hash", "show abc", CTL_FAILED, "is no hash of a session", "", ""},
    {"long hash", "show 00000000001111111111222222222233333333334444444444555555555566666",
        CTL_FAILED, "is no hash", "", ""},
    {"unknown hash", "show 0123456789abcdef", CTL_FAILED, "no such conversation is kept", "", ""},
    {"both", "show abcdef --id talk", CTL_USAGE, "usage: sluicectl context show", "", ""},
    {"neither", "show", CTL_USAGE, "usage: sluicectl context show", "", ""},
    {"export neither", "export", CTL_USAGE, "usage: sluicectl context export", "", ""},
    {"export", "export --client ann --id talk", CTL_DONE, "{\"session\":\"",
        "\"client\":\"ann\",\"bytes\":", "\x1b"},
    {"into no folder", "export --client ann --id talk -o /nowhere/x", CTL_FAILED,
        "cannot make '/nowhere/x'", "", ""},
    {"drop what", "drop", CTL_USAGE, "usage: sluicectl context drop", "", ""},
    {"too much at once", "drop --all --id talk", CTL_USAGE, "usage: sluicectl context drop", "",
        ""},
    {"all of one client?", "drop --all --client ann", CTL_USAGE, "usage: sluicectl context drop",
        "", ""},
    {"none", "drop --id nothing", CTL_FAILED,
        "no such conversation is kept: 'nothing', of clients without a name: see --client\n", "",
        ""},
    {"drop by name", "drop --id talk", CTL_DONE, "1 dropped", "", ""},
    {"is gone", "show --id talk", CTL_FAILED, "no such conversation", "", "nobody's"},
    {"drop of both ways", "drop --client bob --id talk --json", CTL_DONE, "{\"dropped\":2}", "",
        ""},
    {"drop what cannot be read", "drop --client bob --id odd", CTL_DONE, "1 dropped", "", ""},
    {"drop a client, with what has expired", "drop --client ann", CTL_DONE, "2 dropped", "", ""},
    {"nothing is left", "list --json", CTL_DONE, "[]", "", "session"},
    {"nothing to drop", "drop --all --yes", CTL_DONE, "0 dropped", "", ""},
    {"a slip", "lst", CTL_USAGE, "list", "", ""},
};

static void
test_table(void **state)
{
	begin(*state, true);
	for (size_t i = 0; i < NELEM(rows); i++) {
		const struct row *row = &rows[i];
		struct said said = run(row->words);
		const char *text = said.status == CTL_DONE ? said.out : said.err;

		if (said.status != row->status || strstr(text, row->out) == NULL ||
		    strstr(text, row->other) == NULL ||
		    (row->never[0] != '\0' && strstr(text, row->never) != NULL))
			fail_msg("%s: %d\n%s\n%s", row->what, said.status, said.out, said.err);
		forget(&said);
	}
}

static void
hash_at(const struct said *list, unsigned line, char hash[13])
{
	const char *at = list->out;

	for (; line > 0; line--)
		at = strchr(at, '\n') + 1;
	memcpy(hash, at, 12);
	hash[12] = '\0';
}

static void
test_hashes(void **state)
{
	char words[128], hash[2][13];
	struct said said;

	begin(*state, true);
	said = run("list");
	hash_at(&said, 1, hash[0]);
	hash_at(&said, 5, hash[1]);
	forget(&said);
	snprintf(words, sizeof words, "show %s", hash[0]);
	said = run(words);
	assert_non_null(strstr(said.out, "nobody's"));
	forget(&said);
	for (size_t i = 0; i < 12; i++)
		hash[1][i] = (char)(hash[1][i] >= 'a' ? hash[1][i] - 'a' + 'A' : hash[1][i]);
	snprintf(words, sizeof words, "drop %s 00000000 %s", hash[0], hash[1]);
	said = run(words);
	assert_int_equal(said.status, CTL_FAILED);
	forget(&said);
	snprintf(words, sizeof words, "drop %s %.6s", hash[0], hash[1]);
	said = run(words);
	assert_string_equal(said.out, "2 dropped\n");
	forget(&said);
	said = run("list --client ann");
	assert_null(strstr(said.out, "ann"));
	forget(&said);
}

/* Into a file of its own, and never over another. */
static void
test_export(void **state)
{
	char words[200], path[128];
	struct said said, shown;
	struct stat st;
	FILE *f;

	begin(*state, true);
	snprintf(path, sizeof path, "%s/copy.json", ((struct store_dir *)*state)->path);
	snprintf(words, sizeof words, "export --id nothing -o %s", path);
	said = run(words);
	assert_int_equal(said.status, CTL_FAILED);
	assert_int_equal(stat(path, &st), -1);
	forget(&said);
	snprintf(words, sizeof words, "export --client ann --id talk -o %s", path);
	said = run(words);
	assert_int_equal(said.status, CTL_DONE);
	assert_string_equal(said.out, "");
	forget(&said);
	said = run(words);
	assert_int_equal(said.status, CTL_FAILED);
	assert_non_null(strstr(said.err, "File exists"));
	forget(&said);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	shown = run("show --client ann --id talk --json");
	f = fopen(path, "r");
	here.text[fread(here.text, 1, sizeof here.text - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(here.text, shown.out);
	forget(&shown);
}

static void
test_no_book(void **state)
{
	struct said said;

	begin(*state, false);
	said = run("list --json");
	assert_int_equal(said.status, CTL_DONE);
	assert_string_equal(said.out, "[]\n");
	forget(&said);
	said = run("drop --all --yes");
	assert_string_equal(said.out, "0 dropped\n");
	forget(&said);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_table),
	    TEST(test_hashes),
	    TEST(test_export),
	    TEST(test_no_book),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
