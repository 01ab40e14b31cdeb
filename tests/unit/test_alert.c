#include "alert.h"

#include "base/clock.h"
#include "lib/rig.h"
#include "store/job.h"

/* With the path of a file, twice. */
#define SETTINGS                                                                           \
	"{'alerts': {'command': 'cat >%s; echo \\'$SLUICE_TEXT|$SLUICE_AT|$SLUICE_STATUS|" \
	"$SLUICE_RULE|$SECRET\\' >%s.env; exit 3'},"                                       \
	" 'channels': {'oa': {'provider': 'openai', 'accounts': [{'id': 'a', 'api_key': 'k'}]}}}"

static struct rig rig;
static struct store_dir *dir;
static char out[128];

static const struct journal_row alert = {.level = JOURNAL_ALERT,
    .status = 401,
    .at_ms = RIG_NOW,
    .channel = "oa",
    .account = "a",
    .from = "active",
    .to = "disabled",
    .cause = "auth_failed",
    .rule = "it's \"$(x)\" `y`"};

static struct serve
serve_of(void)
{
	static struct watch watch = {.signal_fd = -1, .client_fd = -1};

	return (struct serve){.conf = rig.conf,
	    .pool = rig.pool,
	    .env = rig.env,
	    .watch = &watch,
	    .log = log_open("/dev/null", LOG_LEVEL_INFO, true),
	    .arena = arena_new(1 << 20),
	    .listen_fd = -1};
}

static void
serve_end(struct serve *s)
{
	log_close(&s->log);
	arena_free(&s->arena);
}

static void
test_words(void **state)
{
	struct journal_row row = alert;
	char line[256];
	struct buf json;

	(void)state;
	alert_line(&row, line, sizeof line);
	assert_string_equal(line, "account [oa/a] disabled: auth_failed");
	buf_init(&json, 8192);
	alert_json(7, &row, &json);
	assert_string_equal(json.p,
	    "{\"service\":\"sluice\",\"sequence\":7,\"at\":\"2026-01-05T10:00:00Z\",\"level\":\"alert\","
	    "\"text\":\"account [oa/a] disabled: auth_failed\",\"channel\":\"oa\",\"account\":\"a\","
	    "\"model\":null,\"from\":\"active\",\"to\":\"disabled\",\"cause\":\"auth_failed\","
	    "\"rule\":\"it's \\\"$(x)\\\" `y`\",\"status\":401,\"until\":null}");
	buf_release(&json);
	row.account[0] = '\0';
	alert_line(&row, line, sizeof line);
	assert_string_equal(line, "channel [oa] disabled: auth_failed");
	row.channel[0] = '\0';
	snprintf(row.to, sizeof row.to, "degraded");
	snprintf(row.rule, sizeof row.rule, "1 of 4 accounts active");
	alert_line(&row, line, sizeof line);
	assert_string_equal(line, "degraded: 1 of 4 accounts active");
}

/* The longest event that a row can hold fits the pipe. */
static void
test_longest(void **state)
{
	struct journal_row row = alert;
	struct buf json;

	(void)state;
	memset(row.channel, '"', sizeof row.channel - 1);
	memset(row.account, '\\', sizeof row.account - 1);
	memset(row.model, '"', sizeof row.model - 1);
	memset(row.rule, '"', sizeof row.rule - 1);
	memset(row.cause, '"', sizeof row.cause - 1);
	buf_init(&json, 4096);
	alert_json(UINT64_MAX >> 9, &row, &json);
	assert_false(json.over);
	buf_release(&json);
}

static char *
read_file(const char *suffix)
{
	static char text[4096];
	char path[160];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof path, "%s%s", out, suffix);
	f = fopen(path, "r");
	if (f != NULL) {
		n = fread(text, 1, sizeof text - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	return text;
}

struct add {
	enum journal_level level;
	int64_t at_ms;
};

static enum store_rc
add_event(struct txn *txn, void *arg)
{
	const struct add *add = arg;
	struct journal_row row = alert;

	row.level = (uint8_t)add->level;
	row.at_ms = add->at_ms;
	return journal_add(txn, &row);
}

static void
add(enum journal_level level, int64_t at_ms)
{
	struct add args = {level, at_ms};

	OK(env_update(rig.env, add_event, &args));
}

struct idle {
	struct serve *s;
	uint64_t cursor;
	bool idle;
};

static enum store_rc
ask_idle(struct txn *txn, void *arg)
{
	struct idle *i = arg;

	return alert_idle(txn, i->s, i->cursor, &i->idle);
}

static bool
idle(struct serve *s, uint64_t cursor)
{
	struct idle i = {s, cursor, false};

	OK(env_view(rig.env, ask_idle, &i));
	return i.idle;
}

/* The command gets the event on its input and in its environment, and nothing of ours. */
static void
test_command(void **state)
{
	struct serve s = serve_of();
	uint64_t cursor = 0;
	int64_t now = clock_wall().v;

	(void)state;
	assert_true(idle(&s, cursor));
	add(JOURNAL_ALERT, now - ALERT_OLD_MS - 1000);
	add(JOURNAL_WARN, now);
	assert_false(idle(&s, cursor));
	assert_false(alert_run(&s, &cursor));
	assert_int_equal(cursor, 2);
	assert_true(idle(&s, cursor));
	assert_string_equal(read_file(""), "");
	add(JOURNAL_ALERT, now);
	add(JOURNAL_INFO, now);
	assert_false(alert_run(&s, &cursor));
	assert_int_equal(cursor, 4);
	assert_int_equal(s.alert_pid, 0);
	assert_non_null(strstr(read_file(""), "\"sequence\":3,"));
	assert_non_null(strstr(read_file(".env"), "account [oa/a] disabled: auth_failed|20"));
	assert_non_null(strstr(read_file(".env"), "Z|401|it's \"$(x)\" `y`|"));
	assert_string_equal(strrchr(read_file(".env"), '|'), "|\n");
	cursor = 9000; /* a store that was begun anew has fewer events */
	assert_false(idle(&s, cursor));
	assert_false(alert_run(&s, &cursor));
	assert_int_equal(cursor, 4);
	serve_end(&s);
}

/* While one runs the others wait; it is ended when its time is over, with what it started. */
static void
test_late(void **state)
{
	struct serve s = serve_of();
	struct why why;

	(void)state;
	assert_true(alert_begin(&s, 5, &alert, &why));
	assert_true(idle(&s, 0));
	s.alert_until.v = clock_mono().v + 5000;
	alert_wait(&s);
	assert_int_equal(s.alert_pid, 0);
	assert_true(alert_begin(&s, 5, &alert, &why));
	s.alert_until.v = clock_mono().v - 1;
	assert_false(alert_runs(&s));
	assert_int_equal(s.alert_pid, 0);
	assert_false(alert_runs(&s));
	serve_end(&s);
}

static int
begin(void **state)
{
	char json[1024];

	store_dir_setup(state);
	dir = *state;
	setenv("SECRET", "sk-not-for-commands", 1);
	snprintf(out, sizeof out, "%s/out", dir->path);
	snprintf(json, sizeof json, SETTINGS, out, out);
	rig_open(&rig, dir, json);
	return 0;
}

static int
end(void **state)
{
	rig_close(&rig);
	return store_dir_teardown(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_words, begin, end),
	    cmocka_unit_test_setup_teardown(test_longest, begin, end),
	    cmocka_unit_test_setup_teardown(test_command, begin, end),
	    cmocka_unit_test_setup_teardown(test_late, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
