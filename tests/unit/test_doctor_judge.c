#include "ctl/doctor_judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
test_flow(void **state)
{
	static const struct {
		const char *what;
		size_t n, wanted;
		int64_t sent[10], came[10];
		enum doctor_flow want;
		int64_t late;
	} rows[] = {
	    {"one by one", 5, 5, {0, 100, 200, 300, 400}, {5, 106, 205, 305, 406}, DOCTOR_STREAMS,
	        1},
	    {"all at once (mod_fcgid)", 5, 5, {0, 100, 200, 300, 400}, {505, 505, 505, 505, 505},
	        DOCTOR_AT_ONCE, 400},
	    {"nearly at once", 5, 5, {0, 100, 200, 300, 400}, {505, 510, 520, 525, 530},
	        DOCTOR_AT_ONCE, 375},
	    {"in pairs", 6, 6, {0, 100, 200, 300, 400, 500}, {101, 101, 301, 301, 501, 501},
	        DOCTOR_LUMPS, 100},
	    {"two lumps", 6, 6, {0, 100, 200, 300, 400, 500}, {201, 201, 201, 501, 501, 501},
	        DOCTOR_LUMPS, 200},
	    {"one event is late: a busy machine", 6, 6, {0, 100, 200, 300, 400, 500},
	        {1, 101, 299, 301, 401, 501}, DOCTOR_STREAMS, 98},
	    {"the sender was late, not the way", 5, 5, {0, 400, 401, 402, 403},
	        {3, 403, 404, 405, 406}, DOCTOR_STREAMS, 0},
	    {"clocks differ", 5, 5, {0, 100, 200, 300, 400}, {90005, 90105, 90205, 90305, 90405},
	        DOCTOR_STREAMS, 0},
	    {"slow from the start", 5, 5, {0, 100, 200, 300, 400}, {-20, 80, 180, 280, 380},
	        DOCTOR_STREAMS, 0},
	    {"cut", 4, 5, {0, 100, 200, 300}, {1, 101, 201, 301}, DOCTOR_CUT, 0},
	    {"nothing", 0, 5, {0}, {0}, DOCTOR_CUT, 0},
	    {"nothing was wanted", 0, 0, {0}, {0}, DOCTOR_CUT, 0},
	    {"a single one", 1, 1, {0}, {7}, DOCTOR_STREAMS, 0},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct doctor_arrivals a = {
		    rows[i].sent, rows[i].came, rows[i].n, rows[i].wanted, 100};
		int64_t late = -1;
		enum doctor_flow got = doctor_judge_flow(&a, &late);

		if (got != rows[i].want || late != rows[i].late)
			fail_msg("%s: got %d, late %lld", rows[i].what, (int)got, (long long)late);
	}
}

static void
test_setup(void **state)
{
	static const struct {
		const char *software, *mode, *file, *root, *want;
	} rows[] = {
	    {"Apache/2.4.71 (Debian) mod_fcgid/2.3.9", "single",
	        "/usr/local/lib/sluice/sluice.fcgi", "/var/www/html", "apache-fcgid"},
	    {"Apache", "single", "/srv/u/www/llm/sluice.fcgi", "/srv/u/www", "htaccess-fcgid"},
	    {"Apache", "single", "/srv/u/www2/sluice.fcgi", "/srv/u/www", "apache-fcgid"},
	    {"Apache/2.4.71", "external", "proxy:fcgi://sluice/llm/v1/doctor", "/var/www/html",
	        "apache-proxy"},
	    {"Apache/2.4.71", "single", "proxy:fcgi://sluice/llm/v1/doctor", "/var/www/html",
	        "apache-proxy"},
	    {"Apache", "spawned", "/usr/lib/cgi-bin/x", "/var/www", "apache-proxy"},
	    {"Apache", "cgi", "/usr/lib/cgi-bin/sluice.cgi", "/var/www", "apache-cgid"},
	    {"Apache", "cgi", "/var/www/llm/sluice.cgi", "/var/www", "htaccess-cgi"},
	    {"Apache", "cgi", "/var/www/llm/sluice.cgi", "", "apache-cgid"},
	    {"Apache", "cgi", "/sluice.cgi", "/", "apache-cgid"},
	    {"lighttpd/1.4.69", "spawned", "/var/www/llm", "/var/www", "lighttpd-spawn"},
	    {"lighttpd/1.4.69", "single", "/var/www/llm", "/var/www", "lighttpd-spawn"},
	    {"lighttpd/1.4.69", "external", "/var/www/llm", "/var/www", "lighttpd-external"},
	    {"lighttpd/1.4.69", "cgi", "/var/www/llm/sluice.cgi", "/var/www", "lighttpd-cgi"},
	    {"nginx/1.22.1", "external", "/usr/share/nginx/html/llm", "/usr/share/nginx/html",
	        "nginx"},
	    {"", "single", "", "", "unknown"},
	    {"Caddy", "external", "", "", "unknown"},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct doctor_seen seen = {.software = text_span(rows[i].software),
		    .mode = text_span(rows[i].mode),
		    .script_filename = text_span(rows[i].file),
		    .document_root = text_span(rows[i].root)};
		const char *got = doctor_judge_setups[doctor_judge_setup(&seen)].id;

		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s, %s, %s: got %s, want %s", rows[i].software, rows[i].mode,
			    rows[i].file, got, rows[i].want);
	}
	assert_int_equal(doctor_judge_server(SPAN("Apache/2.4")), DOCTOR_APACHE);
	assert_int_equal(doctor_judge_server(SPAN("lighttpd")), DOCTOR_LIGHTTPD);
	assert_int_equal(doctor_judge_server(SPAN("nginx/1.22.1")), DOCTOR_NGINX);
	assert_int_equal(doctor_judge_server(SPAN("cloudflare")), DOCTOR_UNKNOWN);
}

static void
test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < DOCTOR_SETUP__MAX; i++) {
		const struct doctor_setup_row *row = &doctor_judge_setups[i];

		if (row->id == NULL || row->name == NULL || row->file == NULL || row->auth == NULL)
			fail_msg("set-up %zu lacks a text", i);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(row->id, doctor_judge_setups[k].id);
	}
}

static void
test_seen(void **state)
{
	static const char *const bad[] = {"", "{}", "[]", "null", "<html>", "{\"service\":1}",
	    "{\"service\":\"sluice\"}", "{\"service\":\"other\",\"variables\":{}}",
	    "{\"service\":\"sluice\",\"variables\":{}"};
	static const char good[] =
	    "{\"service\":\"sluice\",\"version\":\"0.1\",\"pid\":12,\"mode\":\"single\","
	    "\"route\":\"/v1/doctor\",\"client\":\"al\",\"auth_mode\":\"keys\",\"admin\":true,"
	    "\"api_key\":false,\"user_variables\":[\"REMOTE_USER\"],"
	    "\"authorization\":[\"HTTP_AUTHORIZATION\"],"
	    "\"variables\":{\"SERVER_SOFTWARE\":\"nginx\",\"PATH_INFO\":\"/x\"},"
	    "\"store_error\":null}";
	static const char odd[] =
	    "{\"service\":\"sluice\",\"pid\":\"x\",\"admin\":\"true\",\"api_key\":1,"
	    "\"user_variables\":7,\"authorization\":{},\"variables\":[],\"store_error\":\"down\"}";
	struct arena *arena = arena_new(1 << 20);
	struct doctor_seen seen;

	(void)state;
	for (size_t i = 0; i < NELEM(bad); i++)
		if (doctor_judge_seen(arena, text_span(bad[i]), &seen))
			fail_msg("taken: %s", bad[i]);
	assert_true(doctor_judge_seen(arena, text_span(good), &seen));
	assert_true(seen.admin && !seen.api_key && seen.pid == 12);
	assert_true(text_is(seen.client, "al") && text_is(seen.mode, "single"));
	assert_true(text_is(seen.user_variable, "REMOTE_USER"));
	assert_true(text_is(seen.authorization, "HTTP_AUTHORIZATION"));
	assert_true(text_is(seen.software, "nginx") && text_is(seen.path_info, "/x"));
	assert_int_equal(seen.store_error.n, 0);
	assert_true(doctor_judge_seen(arena, text_span(odd), &seen));
	assert_false(seen.admin || seen.api_key);
	assert_true(seen.pid == 0 && seen.client.n == 0 && seen.authorization.n == 0);
	assert_true(text_is(seen.store_error, "down"));
	arena_free(&arena);
}

static void
test_sent(void **state)
{
	int64_t sent[3] = {-1, -1, -1};

	(void)state;
	assert_int_equal(doctor_judge_sent(SPAN(""), sent, 3), 0);
	assert_int_equal(doctor_judge_sent(SPAN("<html>\"ms\":1}"), sent, 3), 0);
	assert_int_equal(doctor_judge_sent(SPAN("data: {\"n\":1,\"ms\":0}\n\ndata: x\n\n"
	                                        "data: {\"n\":2,\"ms\":101}\n\ndata: [DONE]\n\n"),
	                     sent, 3),
	    2);
	assert_true(sent[0] == 0 && sent[1] == 101);
	assert_int_equal(
	    doctor_judge_sent(SPAN("data: {\"ms\":1}\ndata: {\"ms\":2}\ndata: {\"ms\":-3}\n"
	                           "data: {\"ms\":4}\ndata: {\"ms\":5}\n"),
	        sent, 3),
	    3);
	assert_true(sent[2] == 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow),
	    cmocka_unit_test(test_setup),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_seen),
	    cmocka_unit_test(test_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
