/* What the files of a configuration must be like, and what follows when they change. */
#include "conf/source.h"

#include "conf/conf.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int
set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/test_source.XXXXXX");
	return mkdtemp(dir) == NULL;
}

static int
tear_down(void **state)
{
	(void)state;
	return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *
at(const char *name)
{
	static char path[4][256];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, 256, "%s/%s", dir, name);
	return p;
}

static void
put(const char *name, const char *text, mode_t mode)
{
	FILE *f;

	unlink(at(name)); /* it may be there, and not ours to write */
	f = fopen(at(name), "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	chmod(at(name), mode);
}

/* Our directory becomes DIR. */
static void
neutral(char *dst, size_t cap, const char *text)
{
	size_t n = 0;

	for (; *text != '\0' && n + 4 < cap; n++) {
		if (strncmp(text, dir, strlen(dir)) == 0) {
			memcpy(dst + n, "DIR", 3);
			n += 2;
			text += strlen(dir);
		} else {
			dst[n] = *text++;
		}
	}
	dst[n] = '\0';
}

static struct conf *
load(const char *what)
{
	struct conf *conf = NULL;
	struct why why = {""};

	if (conf_load(at("sluice.json"), &conf, NULL, &why) != ERR_OK)
		fail_msg("%s: %s", what, why.text);
	return conf;
}

static void
refuse(const char *what, const char *want)
{
	struct conf *conf = NULL;
	struct why why = {""};
	char got[sizeof why.text];

	if (conf_load(at("sluice.json"), &conf, NULL, &why) == ERR_OK)
		fail_msg("%s: taken, want '%s'", what, want);
	assert_null(conf);
	neutral(got, sizeof got, why.text);
	if (strstr(got, want) == NULL)
		fail_msg("%s: got '%s', want '%s'", what, got, want);
}

#define KEYED \
	"{\"channels\":{\"c\":{\"base_url\":\"http://u\",\"accounts\":[{\"id\":\"a\",\"api_key\":\"k\"}]}}}"
#define KEYLESS "{\"channels\":{\"c\":{\"base_url\":\"http://u\",\"accounts\":[{\"id\":\"a\"}]}}}"

static const struct {
	const char *what, *text;
	mode_t mode;
	const char *want; /* NULL: taken */
} modes[] = {
    {"private", KEYED, 0600, NULL},
    {"private, not writable", KEYED, 0400, NULL},
    {"readable by the group", KEYED, 0640,
        "holds keys but has mode 0640, so that others could reach it: chmod 600 'DIR/sluice.json'"},
    {"readable by others", KEYED, 0604, "chmod 600 'DIR/sluice.json'"},
    {"writable by the group", KEYED, 0620, "chmod 600 'DIR/sluice.json'"},
    {"writable by others", KEYED, 0602, "chmod 600 'DIR/sluice.json'"},
    {"without keys", KEYLESS, 0644, NULL},
};

static void
test_modes(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(modes); i++) {
		struct conf *conf;

		put("sluice.json", modes[i].text, modes[i].mode);
		if (modes[i].want != NULL) {
			refuse(modes[i].what, modes[i].want);
			continue;
		}
		conf = load(modes[i].what);
		conf_free(&conf);
	}
}

/* Run as nobody where we may: a file of root is fine, one of somebody else is not. */
static void
test_owner(void **state)
{
	struct why why;
	struct source source = {.path = "/x/it's", .present = true, .st = {.st_mode = 0100600}};
	pid_t child;
	int status;

	(void)state;
	if (getuid() != 0)
		skip();
	child = fork();
	if (child == 0) {
		bool fine = setuid(65534) == 0;

		source.st.st_uid = 0;
		fine = fine && source_private(&source, &why) == ERR_OK;
		source.st.st_uid = 65534;
		fine = fine && source_private(&source, &why) == ERR_OK;
		source.st.st_uid = 12345;
		fine = fine && source_private(&source, &why) == ERR_CONFIG &&
		       strstr(why.text, "user 12345") != NULL &&
		       strstr(why.text, "'/x/it'\\''s'") != NULL;
		_exit(fine ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	source.st.st_uid = 12345; /* root may become that user */
	assert_int_equal(source_private(&source, &why), ERR_OK);
}

static void
test_unreadable(void **state)
{
	(void)state;
	unlink(at("sluice.json"));
	refuse("not there", "DIR/sluice.json: cannot open: No such file or directory");
	assert_int_equal(mkdir(at("sluice.json"), 0700), 0);
	refuse("a directory", "DIR/sluice.json: is not a regular file");
	rmdir(at("sluice.json"));
	assert_int_equal(mkfifo(at("sluice.json"), 0600), 0);
	refuse("a fifo", "is not a regular file");
	unlink(at("sluice.json"));
	put("sluice.json", "", 0600);
	refuse("empty", "DIR/sluice.json:1: column 1: a value was expected here");
	assert_int_equal(truncate(at("sluice.json"), (8 << 20) + 1), 0);
	refuse("too large", "is larger than 8388608 bytes");
}

#define WITH_DIR                                                                                                    \
	"{\"channels\":{\"c\":{\"provider\":\"openai\",\"accounts\":[{\"id\":\"in\",\"api_key\":\"${file:key}\"}]," \
	"\"accounts_dir\":\"acc\"}}}"

static void
test_accounts_dir(void **state)
{
	const struct conf_channel *ch;
	struct conf_report report = {0};
	struct conf *conf = NULL;
	struct why why;

	(void)state;
	put("sluice.json", WITH_DIR, 0600);
	put("key", "\n  sk-file \r\n", 0600);
	assert_int_equal(conf_load(at("sluice.json"), &conf, &report, &why), ERR_OK);
	assert_int_equal(report.n, 1); /* a note */
	assert_non_null(strstr(report.at[0].text, "is not there (yet)"));
	conf_report_release(&report);
	assert_false(conf_changed(conf));
	mkdir(at("acc"), 0700);
	assert_true(conf_changed(conf));
	conf_free(&conf);

	put("acc/20.json", "{\"id\":\"y\",\"api_key\":\"ky\"}", 0600);
	put("acc/10.json", "// first\n{\"id\":\"x\",\"api_key\":\"kx\",\"weight\":2}", 0600);
	put("acc/.hidden.json", "rubbish", 0600);
	put("acc/30.json~", "rubbish", 0600);
	conf = load("two files");
	ch = conf_channel(conf, SPAN("c"));
	assert_int_equal(ch->naccounts, 3);
	assert_int_equal(ch->naccounts_inline, 1);
	assert_true(text_is(ch->accounts[0].key.hidden, "sk-file"));
	assert_true(text_is(ch->accounts[1].id, "x"));
	assert_true(text_is(ch->accounts[2].id, "y"));
	conf_free(&conf);

	put("acc/30.json", "{\n\"id\":\"in\",\"api_kye\":\"k\"}", 0644);
	refuse("bad file", "DIR/acc/30.json:2: key 'api_kye': unknown; did you mean 'api_key'?");
	put("acc/30.json", "{\n\"id\":\"in\",\"api_key\":\"k\"}", 0644);
	refuse("file that others read", "DIR/acc/30.json: holds keys but has mode 0644");
	put("acc/30.json", "\n{\"id\":\"in\",\"api_key\":\"k\"}", 0600);
	refuse("taken id",
	    "DIR/acc/30.json:2: key 'id': 'in' is taken by the account in DIR/sluice.json, line 1");
	put("acc/30.json", "[]", 0600);
	refuse("no object", "DIR/acc/30.json:1: must be an object");
	unlink(at("acc/30.json"));
	put("key", "a\nb", 0600);
	refuse("key of two lines", "api_key': holds a control character");
	put("key", "sk", 0640);
	refuse("key that others read", "file 'DIR/key' holds keys but has mode 0640");
	put("key", "sk", 0600);
}

/* Each of these changes is seen, and a new configuration sees none. */
static void
test_changed(void **state)
{
	static const struct {
		const char *what, *name, *text; /* text NULL: remove; name of a file */
		mode_t mode;
	} changes[] = {
	    {"file", "sluice.json", WITH_DIR " ", 0600},
	    {"same size", "sluice.json", WITH_DIR "\n", 0600},
	    {"account changed", "acc/20.json", "{\"id\":\"yy\",\"api_key\":\"ky\"}", 0600},
	    {"account added", "acc/30.json", "{\"id\":\"z\",\"api_key\":\"kz\"}", 0600},
	    {"account removed", "acc/30.json", NULL, 0},
	    {"key", "key", "sk-2", 0600},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(changes); i++) {
		struct conf *conf = load(changes[i].what);
		const struct timespec tick = {0, 12000000}; /* of the file system's clock */

		assert_false(conf_changed(conf));
		nanosleep(&tick, NULL);
		if (changes[i].text == NULL)
			unlink(at(changes[i].name));
		else
			put(changes[i].name, changes[i].text, changes[i].mode);
		if (!conf_changed(conf))
			fail_msg("%s: not seen", changes[i].what);
		conf_free(&conf);
	}
}

/* A mode alone may decide whether a file is taken. */
static void
test_mode_changed(void **state)
{
	struct conf *conf = load("mode");
	const struct timespec tick = {0, 12000000};

	(void)state;
	nanosleep(&tick, NULL);
	assert_int_equal(chmod(at("key"), 0400), 0);
	assert_true(conf_changed(conf));
	conf_free(&conf);
}

static void
test_exposed(void **state)
{
	struct conf *conf = load("exposed");
	char sub[256];

	(void)state;
	assert_true(conf_is_exposed(conf, text_span(dir)));
	assert_true(conf_is_exposed(conf, SPAN("/")));
	assert_true(conf_is_exposed(conf, SPAN("/tmp/")));
	assert_false(conf_is_exposed(conf, SPAN("")));
	assert_false(conf_is_exposed(conf, SPAN("/usr")));
	assert_int_equal(mkdir(at("ac"), 0700), 0);
	snprintf(sub, sizeof sub, "%s", at("ac"));
	assert_false(conf_is_exposed(conf, text_span(sub))); /* a name that only begins alike */
	snprintf(sub, sizeof sub, "%s", at("acc"));
	assert_true(conf_is_exposed(conf, text_span(sub))); /* an account's file */
	assert_int_equal(mkdir(at("www"), 0700), 0);
	snprintf(sub, sizeof sub, "%s", at("www"));
	assert_false(conf_is_exposed(conf, text_span(sub)));
	assert_int_equal(symlink(dir, at("www/link")), 0);
	snprintf(sub, sizeof sub, "%s", at("www/link"));
	assert_true(conf_is_exposed(conf, text_span(sub)));
	conf_free(&conf);
}

static void
test_find(void **state)
{
	char got[300], here[256], want[600];
	struct why why;

	(void)state;
	assert_non_null(getcwd(here, sizeof here));
	assert_int_equal(conf_find("a/b.json", got, sizeof got, &why), ERR_OK);
	snprintf(want, sizeof want, "%s/a/b.json", here);
	assert_string_equal(got, want);
	setenv("SLUICE_CONFIG", at("sluice.json"), 1);
	assert_int_equal(conf_find(NULL, got, sizeof got, &why), ERR_OK);
	assert_string_equal(got, at("sluice.json"));
	assert_int_equal(conf_find("/x.json", got, sizeof got, &why), ERR_OK);
	assert_string_equal(got, "/x.json");
	unsetenv("SLUICE_CONFIG");
	assert_int_equal(conf_find("/x.json", got, 5, &why), ERR_BAD_INPUT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_modes),
	    cmocka_unit_test(test_owner),
	    cmocka_unit_test(test_unreadable),
	    cmocka_unit_test(test_accounts_dir),
	    cmocka_unit_test(test_changed),
	    cmocka_unit_test(test_mode_changed),
	    cmocka_unit_test(test_exposed),
	    cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
