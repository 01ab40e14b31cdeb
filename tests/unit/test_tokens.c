#include "dialect/bpe.h"
#include "dialect/split.h"
#include "dialect/tokens.h"
#include "lib/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static struct tokens *tokens;

static int
setup(void **state)
{
	struct why why;

	(void)state;
	if (tokens_open(ranks_path(), &tokens, &why) == ERR_OK)
		return 0;
	fprintf(stderr, "%s (make tokenizer)\n", why.text);
	return -1;
}

static int
teardown(void **state)
{
	(void)state;
	tokens_close(&tokens);
	assert_null(tokens);
	tokens_close(&tokens);
	return 0;
}

#define IDS 8
#define A6 "aaaaaa"

/* formats.md G.3, the text of all: how many, and where they are given which; the first id is 0 where they are not. */
static const struct {
	const char *text;
	int64_t counts[VOCAB__MAX];
	uint32_t ids[VOCAB__MAX][IDS];
} vectors[] = {
    {"hello world", {2, 2}, {{24912, 2375}, {15339, 1917}}},
    {"Hello, world!", {4, 4}, {{13225, 11, 2375, 0}, {9906, 11, 1917, 0}}},
    {"", {0, 0}, {{0}, {0}}},
    {" ", {1, 1}, {{220}, {220}}},
    {"\n\n  x", {3, 3}, {{279, 220, 1215}, {271, 220, 865}}},
    {"\r\n\r\n\t\tend", {3, 3}, {{1414, 197, 13304}, {881, 197, 6379}}},
    {"The quick brown fox jumps over the lazy dog.", {10, 10}, {{0}, {0}}},
    {"don't I'LL we've", {4, 7},
        {{91418, 3413, 7454, 24716}, {15357, 956, 358, 6, 4178, 584, 3077}}},
    {"1234567890", {4, 4}, {{7633, 19354, 29338, 15}, {4513, 10961, 16474, 15}}},
    {"3.14159", {4, 4}, {{18, 13, 16926, 4621}, {18, 13, 9335, 2946}}},
    {"\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c", {3, 6},
        {{177519, 979, 28428}, {57668, 53901, 3922, 3574, 244, 98220}}},
    {"\xe8\x87\xaa\xe5\x8a\xa8\xe8\xbd\xae\xe6\x8d\xa2\xe8\xb4\xa6\xe5\x8f\xb7\xe6\xb1\xa0\xe4\xb8"
     "\x8e\xe4\xbc\x9a\xe8\xaf\x9d\xe7\xb2\x98\xe6\x80\xa7",
        {11, 15}, {{0}, {0}}},
    {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe3\x83\x86\xe3\x82\xad\xe3\x82\xb9\xe3\x83"
     "\x88",
        {6, 8}, {{9048, 40909, 3385, 16056, 18368, 38236}, {0}}},
    {"for (int i = 0; i < n; i++) {\n\tsum += a[i];\n}\n", {21, 21}, {{0}, {0}}},
    {"{\"type\":\"function\",\"name\":\"get_weather\"}", {10, 10}, {{0}, {0}}},
    {"\xf0\x9f\x99\x82\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd", {4, 8}, {{37459, 82514, 52622, 121}, {0}}},
    {A6 A6 A6 A6 A6 A6, {5, 5},
        {{117525, 117525, 117525, 117525, 45037}, {70540, 70540, 70540, 70540, 29558}}},
    {"\xc3\x9cn\xc3\xaf"
     "c\xc3\xb6"
     "d\xc3\xa9 na\xc3\xafve caf\xc3\xa9",
        {8, 10}, {{8858, 77, 191375, 43369, 377, 153475, 737, 30469}, {0}}},
    {"<|endoftext|>", {7, 7}, {{27, 91, 419, 1440, 919, 91, 29}, {0}}},
    {"https://example.com/a/b?c=d&e=f", {11, 11}, {{0}, {0}}},
};

/* tokens.h only counts. */
static size_t
encode(const struct vocab *vocab, enum vocab_encoding encoding, struct span text, uint32_t *out)
{
	struct bpe_room *room = calloc(1, sizeof *room);
	struct split *split = split_new();
	struct bpe_ids ids = {out, 0, IDS};
	struct span piece;
	size_t n = 0;

	split_begin(split, encoding, text);
	while (split_next(split, &piece))
		n += bpe_count(&vocab->tables[encoding], piece, room, &ids);
	split_free(&split);
	free(room);
	return n;
}

static void
exactly(void **state)
{
	static const char *const names[] = {"gpt-4o", "gpt-4"};
	struct vocab vocab;

	(void)state;
	assert_int_equal(vocab_open(ranks_path(), &vocab, NULL), ERR_OK);
	for (size_t i = 0; i < NELEM(vectors); i++)
		for (int e = 0; e < VOCAB__MAX; e++) {
			struct tokens_model model = tokens_model(tokens, text_span(names[e]));
			struct span text = text_span(vectors[i].text);
			int64_t want = vectors[i].counts[e], got = tokens_text(&model, text);
			uint32_t ids[IDS] = {0};

			if (!model.exact || got != want ||
			    tokens_exact(tokens, (enum vocab_encoding)e, text) != want ||
			    encode(&vocab, (enum vocab_encoding)e, text, ids) != (size_t)want)
				fail_msg("'%s', %s: %lld, want %lld", text.p, names[e],
				    (long long)got, (long long)want);
			if (vectors[i].ids[e][0] != 0 &&
			    memcmp(ids, vectors[i].ids[e], sizeof ids) != 0)
				fail_msg("'%s', %s: other ids", text.p, names[e]);
		}
	vocab_close(&vocab);
}

/* Each byte that is no UTF-8 is taken for U+FFFD. */
static void
bad_utf8(void **state)
{
	static const struct {
		const char *what, *text, *mended;
	} rows[] = {
	    {"in a word", "caf\xe9 noir", "caf\xef\xbf\xbd noir"},
	    {"a torn character", "ab\xe4\xbd", "ab\xef\xbf\xbd\xef\xbf\xbd"},
	    {"a surrogate", "\xed\xa0\x80x", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx"},
	    {"an overlong slash", "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
	    {"beyond Unicode", "\xf4\x90\x80\x80",
	        "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	    {"among good ones", "\xe4\xbd\xa0\xff\xe5\xa5\xbd",
	        "\xe4\xbd\xa0\xef\xbf\xbd\xe5\xa5\xbd"},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++)
		for (int e = 0; e < VOCAB__MAX; e++) {
			int64_t got =
			    tokens_exact(tokens, (enum vocab_encoding)e, text_span(rows[i].text));

			if (got !=
			    tokens_exact(tokens, (enum vocab_encoding)e, text_span(rows[i].mended)))
				fail_msg("%s: %lld", rows[i].what, (long long)got);
		}
}

/* How a text is counted for whom: with the tables, and without. */
static void
models(void **state)
{
	static const struct {
		const char *name;
		bool coded, exact;
		int64_t with, without;
	} rows[] = {
	    {"gpt-4o", true, true, 10, 10},
	    {"openai/gpt-4", true, true, 10, 10},
	    {"glm-4.6", true, false, 10, 10},
	    {"claude-sonnet-4-5", true, false, 12, 12},
	    {"claude-opus-4-7", true, false, 16, 16},
	    {"deepseek-chat", false, false, 10, 10},
	    {"qwen-max", false, false, 10, 10},
	    {"claude-2.1", false, false, 10, 10},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct span text = SPAN("The quick brown fox jumps over the lazy dog.");
		struct tokens_model with = tokens_model(tokens, text_span(rows[i].name)),
		                    without = tokens_model(NULL, text_span(rows[i].name));
		int64_t a = tokens_text(&with, text), b = tokens_text(&without, text);

		if (with.coded != rows[i].coded || with.exact != rows[i].exact || without.coded ||
		    without.exact || a != rows[i].with || b != rows[i].without)
			fail_msg("%s: coded %d, exact %d, %lld and %lld", rows[i].name, with.coded,
			    with.exact, (long long)a, (long long)b);
	}
}

/* "You are a helpful assistant." and "Hello!" are 19 tokens with o200k: formats.md G.5. */
static void
conversation(void **state)
{
	struct form_part system[] = {
	    {.kind = FORM_TEXT, .text = SPAN("You are a helpful assistant.")}};
	struct form_part user[] = {{.kind = FORM_TEXT, .text = SPAN("Hello!")}};
	struct form_turn turns[] = {
	    {.role = FORM_SYSTEM, .parts = system, .nparts = 1},
	    {.role = FORM_USER, .parts = user, .nparts = 1},
	};
	struct form form = {.turns = turns, .nturns = 2};
	struct tokens_model exact = tokens_model(tokens, SPAN("gpt-4o")),
	                    model = tokens_model(NULL, SPAN("gpt-4o"));

	(void)state;
	assert_int_equal(tokens_form(&exact, &form), 19);
	assert_int_equal(tokens_frame(&exact, &form), 3);
	assert_int_equal(tokens_turn(&exact, &turns[0]), 10);
	assert_true(tokens_are_exact(&exact, &form));
	assert_false(tokens_are_exact(&model, &form));
	assert_in_range(tokens_form(&model, &form), 18, 20);
	turns[1].name = SPAN("world"); /* and 1 */
	assert_int_equal(tokens_form(&exact, &form), 21);
	turns[1].name = SPAN("");
	user[0] = (struct form_part){.kind = FORM_IMAGE, .media.url = SPAN("https://x/y.png")};
	assert_int_equal(tokens_form(&exact, &form), 1017);
	assert_in_range(tokens_form(&model, &form), 1010, 1020);
	assert_false(tokens_are_exact(&exact, &form));
	user[0] = (struct form_part){
	    .kind = FORM_CALL, .call = {.name = SPAN("f"), .arguments = SPAN("{\"a\":1}")}};
	assert_int_equal(tokens_form(&exact, &form), 31);
	assert_in_range(tokens_form(&model, &form), 26, 34);
	assert_false(tokens_are_exact(&exact, &form));
	user[0] = (struct form_part){.kind = FORM_RESULT, .result = {.parts = system, .nparts = 1}};
	assert_int_equal(tokens_form(&exact, &form), 27);
	turns[1].role = FORM_TOOL; /* where each result is a message */
	assert_int_equal(tokens_form(&exact, &form), 23);
	assert_false(tokens_are_exact(&exact, &form));
}

/* A picture of 1024 x 1024 by the families of models; its base64 is no text. */
static void
pictures(void **state)
{
	static const char png[] = "iVBORw0KGgoAAAANSUhEUgAABAAAAAQAAAAAAAA";
	static const struct {
		const char *model;
		int64_t tokens;
	} rows[] = {
	    {"gpt-4o", 765},
	    {"openai/gpt-4o-mini", 25501},
	    {"gpt-5", 630},
	    {"o3", 675},
	    {"gpt-4.1-mini", 1659},
	    {"gpt-5-nano", 2520},
	    {"claude-sonnet-4", 1399},
	    {"glm-4.5v", 765},
	};
	struct form_part part = {.kind = FORM_IMAGE, .media.data = SPAN(png)};
	struct form_turn turn = {.role = FORM_USER, .parts = &part, .nparts = 1};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct tokens_model model = tokens_model(tokens, text_span(rows[i].model));
		int64_t n = tokens_turn(&model, &turn);

		if (n != 4 + rows[i].tokens)
			fail_msg("%s: %lld", rows[i].model, (long long)n);
	}
}

#define UNIT                                                                          \
	"{\"type\":\"string\",\"description\":\"The unit of temperature to return\"," \
	"\"enum\":[\"celsius\",\"fahrenheit\"]}"

/* One function, by the table of formats.md G.5; `want` is all but the answer's begin. */
static void
tools(void **state)
{
	static const struct {
		const char *what, *schema;
		int64_t o200k, cl100k;
	} rows[] = {
	    /* 12 + 7 or 10 + "get_weather:Get the weather" (5) */
	    {"nothing to give", "{\"type\":\"object\",\"properties\":{}}", 24, 27},
	    /* + 3 + 3 + "city:string:" (3) */
	    {"a property", "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}}}",
	        33, 36},
	    {"... with a description and blanks",
	        "{ \"type\": \"object\", \"properties\": { \"city\":\n {\"type\":\"string\", "
	        "\"description\": \"A city.\"} } }",
	        34, 37},
	    /* + 3 + 3 - 3 + 3 + "celsius" + 3 + "fahrenheit" + "unit:string:The unit of ..." */
	    {"an enum", "{\"type\":\"object\",\"properties\":{\"unit\":" UNIT "}}", 45, 48},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct form_tool tool = {.kind = FORM_FUNCTION,
		    .name = SPAN("get_weather"),
		    .description = SPAN("Get the weather."),
		    .schema = text_span(rows[i].schema)};
		struct form form = {.tools = &tool, .ntools = 1};
		struct tokens_model o200k = tokens_model(tokens, SPAN("gpt-4o")),
		                    cl100k = tokens_model(tokens, SPAN("gpt-4"));
		int64_t a = tokens_frame(&o200k, &form) - 3, b = tokens_frame(&cl100k, &form) - 3;

		if (a != rows[i].o200k || b != rows[i].cl100k)
			fail_msg("%s: %lld, %lld", rows[i].what, (long long)a, (long long)b);
		assert_false(tokens_are_exact(&o200k, &form));
	}
}

/* Nine tenths of the JSON without its blanks. */
static void
other_tools(void **state)
{
	struct span compact = SPAN("{\"type\":\"web_search\",\"note\":\"a \\\" b\"}");
	struct form_tool tool = {.kind = FORM_HOSTED,
	    .raw = SPAN("{ \"type\" : \"web_search\",\n\t\"note\": \"a \\\" b\" }")};
	struct form form = {.tools = &tool, .ntools = 1};
	struct tokens_model gpt = tokens_model(tokens, SPAN("gpt-4o")),
	                    claude = tokens_model(tokens, SPAN("claude-opus-4-7"));
	int64_t n = tokens_text(&gpt, compact);

	(void)state;
	assert_true(n >= 10);
	assert_int_equal(tokens_frame(&gpt, &form), 3 + 12 + 7 + (n * 9 + 5) / 10);
	assert_int_equal(tokens_frame(&claude, &form), 3 + 346 + 7 + (n * 90 * 155 + 5000) / 10000);
}

/* What is no plain list of properties is counted, too, and whatever is given comes to an end. */
static void
odd_tools(void **state)
{
	static const char *const schemas[] = {"", "{}", "{\"properties\":7}", "{\"properties\":[]}",
	    "{\"properties\":{\"a\":7,\"b\":null,\"c\":[]}}",
	    "{\"properties\":{\"a\":{\"enum\":7,\"type\":[\"string\",\"null\"]}}}",
	    "{\"properties\":{\"a\":{\"enum\":[1,null,{}]}}}",
	    "{\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{\"b\":{}}}}}",
	    "{\"properties\":{\"\\u0061\\n\":{\"type\":\"array\",\"items\":{}}}}"};
	static const char *const names[] = {
	    "gpt-4o", "gpt-4", "claude-sonnet-4", "deepseek-chat", "x"};

	(void)state;
	for (size_t i = 0; i < NELEM(schemas); i++)
		for (size_t m = 0; m < NELEM(names); m++)
			for (int with = 0; with < 2; with++) {
				struct form_tool tool = {.kind = FORM_FUNCTION,
				    .name = SPAN("f"),
				    .schema = text_span(schemas[i])};
				struct form form = {.tools = &tool, .ntools = 1};
				struct tokens_model model =
				    tokens_model(with ? tokens : NULL, text_span(names[m]));
				int64_t n = tokens_frame(&model, &form);

				if (n < 16 || n > (model.by.claude ? 420 : 60))
					fail_msg("'%s' for %s: %lld", schemas[i], names[m],
					    (long long)n);
			}
}

/* A long text of all kinds takes well below a second. */
static void
long_texts(void **state)
{
	static const char *const units[] = {"a", "word ", "\xe4\xbd\xa0", "\xff", "'s", " \n"};
	const size_t n = 1 << 18;
	char *text = malloc(n);

	(void)state;
	assert_non_null(text);
	for (size_t u = 0; u < NELEM(units); u++) {
		clock_t begin = clock();

		for (size_t i = 0; i < n; i++)
			text[i] = units[u][i % strlen(units[u])];
		assert_true(tokens_exact(tokens, VOCAB_CL100K, (struct span){text, n}) > 0);
		if (clock() - begin > CLOCKS_PER_SEC)
			fail_msg("'%s' takes too long", units[u]);
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(exactly),
	    cmocka_unit_test(bad_utf8),
	    cmocka_unit_test(models),
	    cmocka_unit_test(conversation),
	    cmocka_unit_test(pictures),
	    cmocka_unit_test(tools),
	    cmocka_unit_test(other_tools),
	    cmocka_unit_test(odd_tools),
	    cmocka_unit_test(long_texts),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
