#include "dialect/multipart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define NAME(n) "Content-Disposition: form-data; name=\"" n "\"\r\n\r\n"
#define MODEL "--b\r\n" NAME("model") "m1\r\n"
#define END "--b--\r\n"

static const struct {
	const char *type, *boundary; /* NULL: 400 */
	bool is;
} types[] = {
    {"multipart/form-data; boundary=b", "b", true},
    {"Multipart/Form-Data;BOUNDARY=\"a b\"", "a b", true},
    {"multipart/form-data; charset=utf-8; boundary=b; x=y", "b", true},
    {"multipart/form-data; x=\";boundary=no\"; boundary=b", "b", true},
    {" multipart/form-data ; boundary = b ", "b", true},
    {"multipart/form-data; boundary=b; boundary=c", NULL, true},
    {"multipart/form-data; boundary=b; x=c; boundary=\"b\"", NULL, true},
    {"multipart/form-data", NULL, true},
    {"multipart/form-data;", NULL, true},
    {"multipart/form-data; boundary", NULL, true},
    {"multipart/form-data; boundary=", NULL, true},
    {"multipart/form-data; boundary=\"", NULL, true},
    {"multipart/form-data; boundary=\"a\\\"b\"", NULL, true},
    {"multipart/form-datas; boundary=b", "b", false},
    {"multipart/mixed; boundary=b", "b", false},
    {"application/json", NULL, false},
    {"", NULL, false},
};

static void
boundaries(void **state)
{
	struct arena *arena = arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < NELEM(types); i++) {
		struct span got = {"", 0};
		struct why why;
		enum err err = multipart_boundary(arena, text_span(types[i].type), &got, &why);

		if (multipart_is(text_span(types[i].type)) != types[i].is)
			fail_msg("'%s': is it one?", types[i].type);
		if ((err == ERR_OK) != (types[i].boundary != NULL))
			fail_msg("'%s': %d", types[i].type, err);
		if (err == ERR_OK &&
		    (!text_starts(got, "\r\n--") || !text_is(text_from(got, 4), types[i].boundary)))
			fail_msg("'%s': %.*s", types[i].type, (int)got.n, got.p);
	}
	arena_free(&arena);
}

static const struct {
	const char *what, *body;
	const char *model, *stream; /* NULL: none */
	const char *error;          /* of the text; NULL: it can be read */
} bodies[] = {
    {"one field", MODEL END, "m1", NULL, NULL},
    {"nothing behind the end", MODEL "--b--", "m1", NULL, NULL},
    {"no fields", END, NULL, NULL, NULL},
    {"text around", "before\r\n" MODEL END "after\r\n", "m1", NULL, NULL},
    {"parts behind the end", MODEL END MODEL END, NULL, NULL, "goes on behind its last"},
    {"the boundary behind the end", MODEL "--b--x --b\r\n", NULL, NULL, "goes on behind its last"},
    {"a boundary inside a line before", "x\n--b\n\r\n" MODEL END, NULL, NULL, "inside a line"},
    {"an empty value", "--b\r\n" NAME("model") "\r\n" END, "", NULL, NULL},
    {"no line behind the headers", "--b\r\n" NAME("model") "--b--", "", NULL, NULL},
    {"blanks behind the boundary", "--b \t\r\n" NAME("model") "m1\r\n" END, "m1", NULL, NULL},
    {"both", MODEL "--b\r\n" NAME("stream") "true\r\n" END, "m1", "true", NULL},
    {"the model last", "--b\r\n" NAME("file") "\r\n--a\r\n--\r\n" MODEL END, "m1", NULL, NULL},
    {"other headers",
        "--b\r\nX: y\r\ncontent-disposition:form-data;name=model\r\nZ: \r\n\r\nm1\r\n" END, "m1",
        NULL, NULL},
    {"no name", "--b\r\n\r\nm1\r\n" END, NULL, NULL, NULL},
    {"a file",
        "--b\r\nContent-Disposition: form-data; name=\"model\"; filename=\"\"\r\n\r\nm1\r\n" END,
        NULL, NULL, "'model' is a file"},
    {"its name before",
        "--b\r\nContent-Disposition: form-data; filename*=x; name=model\r\n\r\nm1\r\n" END, NULL,
        NULL, "'model' is a file"},
    {"a name in another's value",
        "--b\r\nContent-Disposition: form-data; filename=\"x\\\"; name=model\"\r\n\r\nm1\r\n" END,
        NULL, NULL, NULL},
    {"a name with an escape", "--b\r\n" NAME("mo\\del") "m1\r\n" END, NULL, NULL, "not clear"},
    {"a name with a tail",
        "--b\r\nContent-Disposition: form-data; name=\"x\"y; name=\"model\"\r\n\r\nm1\r\n" END,
        NULL, NULL, "not clear"},
    {"a last semicolon", "--b\r\nContent-Disposition: form-data; name=model ; \r\n\r\nm1\r\n" END,
        "m1", NULL, NULL},
    {"over two lines", "--b\r\nX: y\r\n " NAME("model") "m1\r\n" END, NULL, NULL, "broken header"},

    {"case counts", "--b\r\n" NAME("Model") "m1\r\n" END, NULL, NULL, NULL},
    {"lines in a value", "--b\r\n" NAME("model") "a\r\n\r\n--\r\nb\r\n" END, "a\r\n\r\n--\r\nb",
        NULL, NULL},
    {"twice", MODEL MODEL END, NULL, NULL, "'model' stands twice"},
    {"an empty body", "", NULL, NULL, "does not hold the boundary"},
    {"not there", "--a\r\n--a--\r\n", NULL, NULL, "does not hold the boundary"},
    {"bare LF", "--b\nContent-Disposition: form-data; name=\"model\"\n\nm1\n--b--\n", NULL, NULL,
        "only begins like its boundary"},
    {"a longer boundary", "--bb\r\n" NAME("model") "m1\r\n--bb--", NULL, NULL,
        "only begins like its boundary"},
    {"cut behind the boundary", "--b", NULL, NULL, "only begins like its boundary"},
    {"cut in the headers", "--b\r\nContent-Dispo", NULL, NULL, "cut in the headers"},
    {"cut before the empty line", "--b\r\nX: y\r\n", NULL, NULL, "cut in the headers"},
    {"cut in the value", "--b\r\n" NAME("model") "m", NULL, NULL, "the last boundary is missing"},
    {"no end", MODEL, NULL, NULL, "the last boundary is missing"},
    {"one dash", MODEL "--b-", NULL, NULL, "only begins like its boundary"},
};

static bool
same(struct span got, const char *want)
{
	return want == NULL ? got.p == NULL : got.p != NULL && text_is(got, want);
}

static void
table(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(bodies); i++) {
		struct multipart got;
		struct why why = {""};
		enum err err =
		    multipart_read(text_span(bodies[i].body), SPAN("\r\n--b"), &got, &why);

		if ((err == ERR_OK) != (bodies[i].error == NULL))
			fail_msg("%s: %d %s", bodies[i].what, err, why.text);
		if (err != ERR_OK && strstr(why.text, bodies[i].error) == NULL)
			fail_msg("%s: '%s'", bodies[i].what, why.text);
		if (err == ERR_OK &&
		    (!same(got.model, bodies[i].model) || !same(got.stream, bodies[i].stream)))
			fail_msg("%s: model '%.*s', stream '%.*s'", bodies[i].what,
			    (int)got.model.n, got.model.p == NULL ? "" : got.model.p,
			    (int)got.stream.n, got.stream.p == NULL ? "" : got.stream.p);
	}
}

/* Every cut of a body is refused but for what stands behind its end, and reads nothing behind the cut. */
static void
cuts(void **state)
{
	static const char body[] = "--b\r\n" NAME("x") "1\r\n" MODEL "--b--";

	(void)state;
	for (size_t n = 0; n < sizeof body - 1; n++) {
		char *copy = malloc(n + 1);
		struct multipart got;
		struct why why;

		assert_non_null(copy);
		memcpy(copy + 1, body, n);
		if (multipart_read((struct span){copy + 1, n}, SPAN("\r\n--b"), &got, &why) ==
		    ERR_OK)
			fail_msg("cut at %zu", n);
		free(copy);
	}
}

/* Bodies made to be slow. */
static void
linear(void **state)
{
	static const char *const units[] = {"\r\n--", "\r\n--b\r\n\r\n\r\n", "\r\n-", "a", "\r\n"};
	size_t n = 512 << 10;
	char *text = malloc(n);

	(void)state;
	assert_non_null(text);
	for (size_t u = 0; u < NELEM(units); u++) {
		size_t k = strlen(units[u]);
		clock_t began = clock();
		struct multipart got;
		struct why why;
		enum err err;

		for (size_t i = 0; i < n; i++)
			text[i] = units[u][i % k];
		memcpy(text, "--b\r\n\r\n", 7);
		err = multipart_read((struct span){text, n}, SPAN("\r\n--b"), &got, &why);
		assert_int_equal(err, ERR_BAD_INPUT);
		if (clock() - began > CLOCKS_PER_SEC)
			fail_msg("unit %zu takes too long", u);
	}
	free(text);
}

static void
headers(void **state)
{
	size_t n = 17000;
	char *text = malloc(n + 64);
	struct multipart got;
	struct why why;

	(void)state;
	assert_non_null(text);
	memcpy(text, "--b\r\n", 5);
	for (int lines = 0; lines < 2; lines++) {
		for (size_t i = 5; i < n; i++)
			text[i] = lines ? "X:\r\n"[i % 4] : 'x';
		memcpy(text + n, "\r\n\r\n\r\n--b--", 11);
		assert_int_equal(
		    multipart_read((struct span){text, n + 11}, SPAN("\r\n--b"), &got, &why),
		    ERR_BAD_INPUT);
		assert_non_null(strstr(why.text, "too many headers"));
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(boundaries),
	    cmocka_unit_test(table),
	    cmocka_unit_test(cuts),
	    cmocka_unit_test(linear),
	    cmocka_unit_test(headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
