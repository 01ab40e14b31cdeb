#include "conf/tree.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct parsed {
	struct arena *arena;
	const struct tree *root; /* NULL: refused */
	size_t line;
	struct why why;
};

/* From memory of just this size, so that a read past its end is seen. */
static struct parsed
parse(const char *text, size_t n)
{
	struct parsed p = {.arena = arena_new((size_t)64 << 20)};
	char *exact = malloc(n == 0 ? 1 : n);

	memcpy(exact, text, n);
	if (tree_parse(p.arena, exact, n, &p.root, &p.line, &p.why) != ERR_OK)
		p.root = NULL;
	arena_defer(p.arena, free, exact);
	return p;
}

static const struct refused {
	const char *what, *text;
	size_t line;
	const char *why;
} refused[] = {
    {"nothing", "", 1, "a value was expected"},
    {"only a comment", "// x\n", 2, "a value was expected"},
    {"comment without end", "{}\n  /* x", 2, "column 3: this comment has no end"},
    {"comment too short", "{}/*/", 1, "has no end"},
    {"single quotes", "{'a': 1}", 1, "name in double quotes"},
    {"bare name", "{\n a: 1}", 2, "column 2: a name in double quotes"},
    {"no colon", "{\"a\" 1}", 1, "':' was expected"},
    {"no comma", "{\"a\": 1\n\"b\": 2}", 2, "',' or '}'"},
    {"comma at the end", "[1,\n2,\n]", 3, "no comma may stand before"},
    {"comma at the end of an object", "{\"a\":1,}", 1, "no comma may stand before"},
    {"wrong bracket", "[1}", 1, "',' or ']'"},
    {"open array", "[1", 1, "',' or ']'"},
    {"open object", "{", 1, "name in double quotes"},
    {"two documents", "{} {}", 1, "after the end"},
    {"NaN", "[NaN]", 1, "a value was expected"},
    {"half a word", "[tru]", 1, "a value was expected"},
    {"leading zero", "[01]", 1, "not a JSON number"},
    {"plus", "[+1]", 1, "a value was expected"},
    {"point without digits", "[1.]", 1, "not a JSON number"},
    {"exponent without digits", "[1e]", 1, "not a JSON number"},
    {"lone minus", "[-]", 1, "not a JSON number"},
    {"string over two lines", "[\"a\nb\"]", 1, "no end on its line"},
    {"string without end", "[\"a", 1, "no end"},
    {"backslash at the end", "[\"a\\", 1, "unknown escape"},
    {"tab in a string", "[\"a\tb\"]", 1, "control character"},
    {"unknown escape", "[\"\\x41\"]", 1, "unknown escape"},
    {"short unicode escape", "[\"\\u12\"]", 1, "four hexadecimal"},
    {"NUL", "[\"\\u0000\"]", 1, "\\u0000"},
    {"lone high surrogate", "[\"\\ud83dx\"]", 1, "surrogate"},
    {"lone low surrogate", "[\"\\ude00\"]", 1, "surrogate"},
    {"high surrogate twice", "[\"\\ud83d\\ud83d\"]", 1, "surrogate"},
    {"bad UTF-8", "[1,\n\"\xff\"]", 2, "UTF-8"},
    {"17 levels", "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", 1, "nested too deeply"},
};

static void
test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(refused); i++) {
		struct parsed p = parse(refused[i].text, strlen(refused[i].text));

		if (p.root != NULL || p.line != refused[i].line ||
		    strstr(p.why.text, refused[i].why) == NULL)
			fail_msg("%s: got %s, line %zu, '%s'; want line %zu, '%s'", refused[i].what,
			    p.root != NULL ? "a tree" : "a refusal", p.line,
			    p.root != NULL ? "" : p.why.text, refused[i].line, refused[i].why);
		arena_free(&p.arena);
	}
}

static const struct {
	const char *what, *text, *want; /* the string in the first element */
} strings[] = {
    {"plain", "[\"abc\"]", "abc"},
    {"comment signs in a string", "[\"http://x /* y */\"]", "http://x /* y */"},
    {"quote before comment signs", "[\"a\\\"//b\"]", "a\"//b"},
    {"escapes", "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]", "\"\\/\b\f\n\r\t"},
    {"unicode escapes", "[\"\\u0041\\u00e9\\u20ac\"]", "A\xc3\xa9\xe2\x82\xac"},
    {"pair of surrogates", "[\"\\ud83d\\uDE00\"]", "\xf0\x9f\x98\x80"},
    {"comments everywhere", "/**/[//x\n/* \" */\"a\"/*\n*/]//", "a"},
    {"byte order mark", "\xef\xbb\xbf[\"a\"]", "a"},
    {"16 levels", "[\"x\",[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]", "x"},
    {"number as it stands", "[-1.50e+3]", "-1.50e+3"},
};

static void
test_strings(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(strings); i++) {
		struct parsed p = parse(strings[i].text, strlen(strings[i].text));

		if (p.root == NULL)
			fail_msg("%s: refused: %s", strings[i].what, p.why.text);
		else if (!text_is(p.root->first->text, strings[i].want))
			fail_msg("%s: got '%.*s', want '%s'", strings[i].what,
			    (int)p.root->first->text.n, p.root->first->text.p, strings[i].want);
		arena_free(&p.arena);
	}
}

static void
test_lines_and_paths(void **state)
{
	static const char text[] =
	    "{ \"a\": [ 1,\n/* two\nlines */ {\n\"b\":\n true } ],\n\"c\": {} }";
	struct parsed p = parse(text, sizeof text - 1);
	const struct tree *b;
	struct buf path;

	(void)state;
	assert_non_null(p.root);
	b = tree_member(tree_at(p.root, "a")->first->next, SPAN("b"));
	assert_int_equal(b->line, 4);
	assert_int_equal(b->type, TREE_TRUE);
	assert_int_equal(b->parent->line, 3);
	assert_int_equal(tree_at(p.root, "c")->line, 6);
	assert_null(tree_at(p.root, "a.b"));
	assert_null(tree_at(p.root, "c.x"));
	buf_init(&path, 100);
	tree_path(b, NULL, &path);
	assert_string_equal(path.p, "a[1].b");
	buf_clear(&path);
	tree_path(b->parent, "x", &path);
	assert_string_equal(path.p, "a[1].x");
	buf_clear(&path);
	tree_path(p.root, "x", &path);
	assert_string_equal(path.p, "x");
	buf_release(&path);
	arena_free(&p.arena);
}

static void
test_repeated(void **state)
{
	static const char text[] =
	    "{\"a\":1,\"b\":{\"a\":1,\"x\":2,\"x\":3},\"\\u0061\":2,\"a\":3,\"A\":4,\"\":5}";
	struct parsed p = parse(text, sizeof text - 1);
	char got[64] = "";

	(void)state;
	assert_non_null(p.root);
	for (const struct tree *t = p.root; t != NULL; t = tree_next(p.root, t))
		snprintf(
		    got + strlen(got), sizeof got - strlen(got), "%c", t->repeated ? 'r' : '-');
	/* root, a, b, b.a, b.x, b.x, a, a, A, "" */
	assert_string_equal(got, "-----rrr--");
	assert_true(text_is(tree_at(p.root, "a")->text, "1"));
	arena_free(&p.arena);
}

/* Cut anywhere, a document is refused or, at the end, whole; nothing is read past its end. */
static void
test_cut(void **state)
{
	static const char text[] = "/*c*/{\"k\":[1.5e3,\"\\ud83d\\ude00\",true],// x\n\"l\":null}";

	(void)state;
	for (size_t n = 0; n < sizeof text; n++) {
		struct parsed p = parse(text, n);

		if ((p.root != NULL) != (n == sizeof text - 1))
			fail_msg("cut at %zu: got %s", n, p.root != NULL ? "a tree" : p.why.text);
		arena_free(&p.arena);
	}
}

/* Very many members must not take quadratic time, nor values without end. */
static void
test_many(void **state)
{
	struct buf text;
	struct parsed p;

	(void)state;
	buf_init(&text, (size_t)64 << 20);
	buf_char(&text, '{');
	for (int i = 0; i < 200000; i++)
		buf_print(&text, "%s\"k%d\":%d", i == 0 ? "" : ",", i, i);
	buf_char(&text, '}');
	p = parse(text.p, text.n);
	assert_non_null(p.root);
	assert_int_equal(p.root->n, 200000);
	arena_free(&p.arena);
	buf_clear(&text);
	for (int i = 0; i <= TREE_NODES_MAX; i++)
		buf_z(&text, i == 0 ? "[1" : ",1");
	buf_char(&text, ']');
	p = parse(text.p, text.n);
	assert_null(p.root);
	assert_non_null(strstr(p.why.text, "too many values"));
	arena_free(&p.arena);
	buf_release(&text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_strings),
	    cmocka_unit_test(test_lines_and_paths),
	    cmocka_unit_test(test_repeated),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
