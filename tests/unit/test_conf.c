#include "conf/known.h"
#include "lib/conf_text.h"

#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define CASES "tests/conf" /* from the top of the tree, where make runs */
#define BYTES ((size_t)16 << 20)

static char dir[64];

static int
set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/test_conf.XXXXXX");
	setenv("CONF_KEY", "sk-from-environment", 1);
	setenv("CONF_WORD", "word", 1);
	setenv("CONF_TIME", "5s", 1);
	setenv("CONF_EMPTY", "", 1);
	setenv("HTTP_X_EVIL", "x", 1);
	unsetenv("CONF_UNSET");
	unsetenv("CONF_UNSET_TOO");
	return mkdtemp(dir) == NULL;
}

static int
tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

static void
read_text(const char *path, struct buf *out)
{
	FILE *f = fopen(path, "r");
	char part[4096];
	size_t n;

	buf_init(out, BYTES);
	if (f == NULL)
		return;
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		buf_add(out, part, n);
	fclose(f);
}

static void
write_text(const char *path, struct span text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fwrite(text.p, 1, text.n, f);
	fclose(f);
	chmod(path, 0600);
}

/* Our directory's name has no place in what is compared. */
static void
add_neutral(struct buf *out, struct span text)
{
	struct span name = text_span(dir);

	while (text.n > 0) {
		size_t at = text_find(text, name);

		buf_add(out, text.p, at);
		if (at < text.n)
			buf_z(out, "DIR");
		text = text_from(text, at < text.n ? at + name.n : at);
	}
}

/* Load this text; what came of it is added to *out: findings, then the effective configuration. */
static bool
load_text(struct span text, struct buf *out)
{
	struct conf_report report = {0};
	struct conf *conf = NULL;
	struct buf printed;
	struct why why = {""};
	char path[128];
	bool fine;

	snprintf(path, sizeof path, "%s/sluice.json", dir);
	write_text(path, text);
	fine = conf_load(path, &conf, &report, &why) == ERR_OK;
	assert_int_equal(fine, report.faults == 0);
	assert_int_equal(fine, conf != NULL);
	assert_int_equal(fine, why.text[0] == '\0');
	for (size_t i = 0; i < report.n; i++) {
		buf_z(out, report.at[i].level == CONF_NOTE ? "note: " : "");
		add_neutral(out, text_span(report.at[i].text));
		buf_char(out, '\n');
	}
	buf_init(&printed, BYTES);
	if (fine)
		conf_print(conf, &printed);
	add_neutral(out, buf_text(&printed));
	buf_release(&printed);
	conf_report_release(&report);
	conf_free(&conf);
	unlink(path);
	return fine;
}

/* With CONF_GOLDEN=write in the environment the wanted files are made anew; then look at the difference. */
static void
compare(const char *name, bool fine, const struct buf *got)
{
	const char *golden = getenv("CONF_GOLDEN");
	char path[300];
	struct buf want;

	snprintf(path, sizeof path, "%.*s.%s", (int)strlen(name) - 5, name, fine ? "ok" : "err");
	if (golden != NULL && strcmp(golden, "write") == 0) {
		write_text(path, buf_text(got));
		chmod(path, 0644);
	}
	read_text(path, &want);
	if (!text_equal(buf_text(got), buf_text(&want)))
		fail_msg(
		    "%s: got\n%s\nwant %s\n%s", name, got->p, path, want.p == NULL ? "" : want.p);
	buf_release(&want);
}

/* What is printed, read again, prints the same. */
static void
check_stable(const char *name, const struct buf *got)
{
	struct span text = buf_text(got);
	struct buf again, real;

	text = text_from(text, text_starts(text, "{\n") ? 0 : text_find(text, SPAN("\n{\n")) + 1);
	buf_init(&real, BYTES);
	buf_init(&again, BYTES);
	for (struct span rest = text; rest.n > 0;) {
		size_t at = text_find(rest, SPAN("DIR"));

		buf_add(&real, rest.p, at);
		buf_z(&real, at < rest.n ? dir : "");
		rest = text_from(rest, at < rest.n ? at + 3 : at);
	}
	if (!load_text(buf_text(&real), &again))
		fail_msg("%s: what was printed does not load: %s", name, again.p);
	if (!text_ends(buf_text(&again), text.p))
		fail_msg("%s: what was printed reads as something else:\n%s", name, again.p);
	buf_release(&real);
	buf_release(&again);
}

/* NN.facts beside a case is the facts.json beside its configuration. False: there is none. */
static bool
put_facts(const char *path, char *put, size_t cap)
{
	char facts[300];
	struct buf text;
	bool any;

	snprintf(facts, sizeof facts, "%.*s.facts", (int)strlen(path) - 5, path);
	snprintf(put, cap, "%s/facts.json", dir);
	read_text(facts, &text);
	any = text.n > 0;
	if (any)
		write_text(put, buf_text(&text));
	buf_release(&text);
	return any;
}

static void
run_case(const char *path)
{
	struct buf text, got;
	char facts[128];
	bool fine, has_facts = put_facts(path, facts, sizeof facts);

	read_text(path, &text);
	buf_init(&got, BYTES);
	fine = load_text(buf_text(&text), &got);
	compare(path, fine, &got);
	if (fine)
		check_stable(path, &got);
	if (has_facts)
		unlink(facts);
	buf_release(&text);
	buf_release(&got);
}

static void
test_golden(void **state)
{
	DIR *d = opendir(CASES);
	size_t n = 0;

	(void)state;
	assert_non_null(d);
	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
		char path[300];

		if (!text_ends(text_span(e->d_name), ".json"))
			continue;
		snprintf(path, sizeof path, CASES "/%s", e->d_name);
		run_case(path);
		n++;
	}
	closedir(d);
	assert_true(n >= 20);
}

/* What the contract writes out as defaults is what comes of writing nothing. */
static void
test_defaults(void **state)
{
	struct buf every, written, nothing;

	(void)state;
	read_text(CASES "/10-every-default.json", &every);
	buf_init(&written, BYTES);
	buf_init(&nothing, BYTES);
	assert_true(load_text(buf_text(&every), &written));
	assert_true(load_text(SPAN("{}"), &nothing));
	/* the note about channels stands in another line */
	assert_string_equal(strchr(written.p, '{'), strchr(nothing.p, '{'));
	buf_release(&every);
	buf_release(&written);
	buf_release(&nothing);
}

static struct conf *
load_file(const char *name)
{
	struct conf *conf = NULL;
	struct buf text;
	struct why why = {""};
	char path[128];

	snprintf(path, sizeof path, "%s/sluice.json", dir);
	read_text(name, &text);
	write_text(path, buf_text(&text));
	if (conf_load(path, &conf, NULL, &why) != ERR_OK)
		fail_msg("%s: %s", name, why.text);
	unlink(path);
	buf_release(&text);
	return conf;
}

static void
test_channel(void **state)
{
	struct conf *conf = load_file(CASES "/12-channel.json");
	const struct conf_channel *ch = conf_channel(conf, SPAN("zhipu"));
	const struct conf_account *account = conf_account(ch, SPAN("z1"));
	/* SHA-256 of "sk-from-environment" */
	static const uint8_t fingerprint[8] = {0xdc, 0x00, 0xc2, 0x3c, 0x05, 0x61, 0xae, 0xbf};

	(void)state;
	assert_true(text_is(ch->base_url, "https://llm.example/v1"));
	assert_int_equal(ch->wire, WIRE_MESSAGES);
	assert_int_equal(ch->nfallback, 2);
	assert_int_equal(ch->fallback[1], conf_channel(conf, SPAN("deepseek"))->index);
	assert_int_equal(ch->policy.pool.strategy, CONF_LRU);
	assert_int_equal(ch->policy.pool.max_in_flight, 7);
	assert_int_equal(ch->policy.cooldown.soft_rate_ms, 90000);
	assert_int_equal(ch->policy.channel_breaker.triggers, 0);
	assert_int_equal(conf->policy.channel_breaker.triggers,
	    CONF_TRIGGER_POOL_EXHAUSTED | CONF_TRIGGER_ERROR_RATE);
	assert_int_equal(ch->balance.at_minute.at[1], 21 * 60 + 30);
	assert_true(text_is(account->key.hidden, "sk-from-environment"));
	assert_memory_equal(account->fingerprint, fingerprint, 8);
	assert_int_equal(account->credits_micros, 12500000);
	assert_int_equal(account->max_in_flight, 5);
	assert_true(text_is(account->headers[0].value, "a ${b}"));
	assert_int_equal(conf_account(ch, SPAN("z2"))->max_in_flight, 7);
	assert_false(conf_account(ch, SPAN("z2"))->has_credits);
	assert_null(conf_account(ch, SPAN("z3")));
	assert_null(conf_channel(conf, SPAN("zhip")));
	conf_free(&conf);
	assert_null(conf);
	conf_free(&conf);
}

/* The provider's zone holds unless somebody wrote another. */
static void
test_zones(void **state)
{
	struct conf *conf = load_file(CASES "/12-channel.json");
	const struct wall_ms t = {1767607200000};

	(void)state;
	assert_int_equal(
	    zone_offset(conf_channel(conf, SPAN("zhipu"))->policy.cooldown.zone, t), 8 * 3600);
	assert_int_equal(
	    zone_offset(conf_channel(conf, SPAN("dashscope"))->policy.cooldown.zone, t), 0);
	assert_int_equal(
	    zone_offset(conf_channel(conf, SPAN("local"))->policy.cooldown.zone, t), 0);
	conf_free(&conf);
}

static void
test_models(void **state)
{
	struct conf *conf = load_file(CASES "/13-models.json");
	const struct conf_model *smart = conf_model(conf, SPAN("smart"));
	const struct conf_target *big = &smart->targets[0], *cheap = &smart->targets[1];

	(void)state;
	assert_int_equal(smart->strategy, CONF_ROUTE_COST_FIRST);
	assert_int_equal(conf_model(conf, SPAN("big"))->strategy, -1);
	assert_int_equal(big->context_window, 128000);     /* its own */
	assert_int_equal(big->max_output, 1000);           /* of the entry "big" */
	assert_int_equal(big->ndefaults, 0);               /* of the entry "big", though empty */
	assert_int_equal(big->cost.cached_micros, 2500);   /* of the alias */
	assert_int_equal(cheap->cost.cached_micros, 1000); /* as input */
	assert_int_equal(cheap->tasks.n, 0);
	assert_int_equal(cheap->ndefaults, 3);
	assert_true(text_is(cheap->defaults[0].value, "0.70"));
	assert_true(text_is(cheap->defaults[1].value, "[\"${x}\",\"word\\n\"]"));
	assert_true(text_is(smart->targets[2].model, "smart"));
	assert_null(conf_model(conf, SPAN("x")));
	conf_free(&conf);
}

static void
test_serves(void **state)
{
	struct span patterns[] = {SPAN("glm-*"), SPAN("exact")};
	struct conf_strings none = {NULL, 0}, some = {patterns, 2};

	(void)state;
	assert_true(conf_serves(&none, SPAN("anything")));
	assert_true(conf_serves(&some, SPAN("glm-4")));
	assert_true(conf_serves(&some, SPAN("exact")));
	assert_false(conf_serves(&some, SPAN("EXACT")));
	assert_false(conf_serves(&some, SPAN("gl")));
}

/* What a pattern lets through is the client's word, even if it is spelt like the pattern. */
static void
test_names(void **state)
{
	static const struct {
		const char *model;
		bool a, b;
	} rows[] = {
	    {"of-entry", true, false},
	    {"literal", false, true},
	    {"entry", false, false},
	    {"glm-4", false, false},
	    {"glm-*", false, false},
	    {"", false, false},
	};
	struct conf *conf =
	    conf_alone("{'channels':{'a':{'provider':'openai','accounts':[]},"
	               "'b':{'provider':'openai','models':['literal','glm-*'],'accounts':[]}},"
	               "'models':{'entry':{'targets':[{'channel':'a','model':'of-entry'}]}}}");

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct span model = text_span(rows[i].model);
		bool a = conf_names(conf, &conf->channels[0], model),
		     b = conf_names(conf, &conf->channels[1], model);

		if (a != rows[i].a || b != rows[i].b)
			fail_msg("'%s': %d, %d", rows[i].model, a, b);
	}
	conf_free(&conf);
}

/* The file that is shipped: whole, and without anything that check would note. */
static void
test_shipped_facts(void **state)
{
	struct conf_report report = {0};
	struct conf *conf = NULL;
	struct why why = {""};
	const struct conf_fact *fact;
	char path[128], text[PATH_MAX + 64], here[PATH_MAX];

	(void)state;
	snprintf(path, sizeof path, "%s/sluice.json", dir);
	assert_non_null(getcwd(here, sizeof here));
	snprintf(text, sizeof text, "{\"models_file\": \"%s/examples/models.json\"}", here);
	write_text(path, text_span(text));
	if (conf_load(path, &conf, &report, &why) != ERR_OK)
		fail_msg("%s", why.text);
	unlink(path);
	assert_int_equal(report.n, 1); /* that there are no channels */
	assert_in_range(conf->nfacts, 60, 1000);
	for (size_t i = 0; i < conf->nfacts; i++) {
		fact = &conf->facts[i];
		if (fact->context_window == 0 || fact->max_output >= fact->context_window ||
		    !fact->cost.given || fact->cost.cached_micros > fact->cost.input_micros ||
		    fact->cost.input_micros > 100000)
			fail_msg("%s: a figure is missing, or odd", fact->name.p);
	}
	fact = known_fact(conf, SPAN("openai/gpt-4o-2024-08-06"));
	assert_non_null(fact);
	assert_int_equal(fact->context_window, 128000);
	assert_int_equal(fact->max_output, 16384);
	assert_int_equal(fact->cost.input_micros, 2500);
	assert_int_equal(fact->cost.output_micros, 10000);
	assert_int_equal(fact->cost.cached_micros, 1250);
	assert_int_equal(known_fact(conf, SPAN("glm-4.5-flash"))->cost.output_micros, 0);
	assert_null(known_fact(conf, SPAN("gpt-4o-extra")));
	conf_report_release(&report);
	conf_free(&conf);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_golden),
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_channel),
	    cmocka_unit_test(test_zones),
	    cmocka_unit_test(test_models),
	    cmocka_unit_test(test_serves),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_shipped_facts),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
