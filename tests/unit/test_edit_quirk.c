#include "dialect/edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define M "\"model\":\"m\",\"messages\":[{}]"

enum what { REMOVE, RENAME, STREAM };

static const struct {
	const char *what;
	enum what edit;
	const char *body, *name, *to, *want; /* want NULL: there is nothing to do */
} cases[] = {
    {"not there", REMOVE, "{" M "}", "x", NULL, NULL},
    {"first", REMOVE, "{\"x\":1," M "}", "x", NULL, "{" M "}"},
    {"last", REMOVE, "{" M ",\"x\":{\"a\":[1,2]}}", "x", NULL, "{" M "}"},
    {"in the middle", REMOVE, "{\"a\":1,\"x\":\"}\\\",\"," M "}", "x", NULL, "{\"a\":1," M "}"},
    {"blanks", REMOVE, " { \"a\" : 1 , \"x\" : 2 \n,\t" M " } ", "x", NULL,
        " { \"a\" : 1 , \t" M " } "},
    {"last, blanks", REMOVE, "{" M " , \"x\" : 2 \n}\n", "x", NULL, "{" M "  \n}\n"},
    {"of a message it stays", REMOVE, "{\"model\":\"m\",\"messages\":[{\"x\":1}]}", "x", NULL,
        NULL},
    {"escaped name", REMOVE, "{\"\\u0078\":1," M "}", "x", NULL, "{" M "}"},
    {"rename", RENAME, "{\"x\" : 10," M "}", "x", "yy", "{\"yy\" : 10," M "}"},
    {"rename, escaped", RENAME, "{" M ",\"\\u0078\":1.0}", "x", "y", "{" M ",\"y\":1.0}"},
    {"rename what is not there", RENAME, "{\"x1\":1," M "}", "x", "y", NULL},
    {"stream", STREAM, "{" M "}", NULL, NULL, "{\"stream\":true," M "}"},
    {"stream false", STREAM, "{" M ",\"stream\": false }", NULL, NULL, "{" M ",\"stream\": true }"},
    {"stream null", STREAM, "{\"stream\":null," M "}", NULL, NULL, "{\"stream\":true," M "}"},
    {"stream true", STREAM, "{\"stream\":true," M "}", NULL, NULL, NULL},
};

static bool
make(size_t i, const struct dialect_request *request, struct edit *edit)
{
	switch (cases[i].edit) {
	case REMOVE: return edit_remove(request->body, cases[i].name, edit);
	case RENAME: return edit_rename(request->body, cases[i].name, cases[i].to, edit);
	case STREAM: return edit_stream(request, edit);
	}
	return false;
}

static void
test_edits(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct span body = text_span(cases[i].body);
		struct dialect_request request;
		struct why why = {""};
		struct edit edit;
		struct buf out;
		bool any;

		if (dialect_read(&dialect_chat, body, &request, &why) != ERR_OK)
			fail_msg("%s: %s", cases[i].what, why.text);
		any = make(i, &request, &edit);
		buf_init(&out, 4096);
		edit_apply(body, &edit, any, &out);
		if (any != (cases[i].want != NULL) || (any && strcmp(out.p, cases[i].want) != 0))
			fail_msg("%s: got %s, want %s", cases[i].what, out.p, cases[i].want);
		buf_release(&out);
	}
}

static const struct {
	const char *what, *messages;
	size_t n;
	const char *want;
} roles[] = {
    {"none", "[{\"role\":\"user\"}]", 0, "[{\"role\":\"user\"}]"},
    {"some",
        "[{\"role\":\"developer\"},{\"x\":1,\"role\" : \"dev\\u0065loper\"},{\"role\":\"user\"}]",
        2, "[{\"role\":\"system\"},{\"x\":1,\"role\" : \"system\"},{\"role\":\"user\"}]"},
    {"not in what it says", "[{\"content\":[{\"role\":\"developer\"}],\"role\":\"user\"}]", 0,
        "[{\"content\":[{\"role\":\"developer\"}],\"role\":\"user\"}]"},
    {"other types", "[1,\"developer\",{\"role\":1},{\"role\":null},{}]", 0,
        "[1,\"developer\",{\"role\":1},{\"role\":null},{}]"},
};

static void
test_roles(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(roles); i++) {
		struct scan_value list = {SCAN_ARRAY, text_span(roles[i].messages)};
		struct edit edits[4];
		struct buf out;
		size_t n = edit_roles(&list, NULL, 0);

		if (n != roles[i].n || edit_roles(&list, edits, NELEM(edits)) != n)
			fail_msg("%s: got %zu, want %zu", roles[i].what, n, roles[i].n);
		buf_init(&out, 4096);
		edit_apply(list.raw, edits, n, &out);
		if (strcmp(out.p, roles[i].want) != 0)
			fail_msg("%s: got %s", roles[i].what, out.p);
		buf_release(&out);
	}
	assert_int_equal(edit_roles(&(struct scan_value){SCAN_STRING, SPAN("\"x\"")}, NULL, 0), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_edits),
	    cmocka_unit_test(test_roles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
