#include "task_ask.h"

#include "lib/conf_text.h"
#include "lib/in_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHANNEL \
	"'channels': {'c': {'provider': 'openai', 'accounts': [{'id': 'a', 'api_key': 'k'}]}}"

static const struct {
	const char *what, *conf, *want;
} lists[] = {
    {"ours", "", "code, reasoning, translation, summary, creative, simple"},
    {"those of routing.tasks come first, 'default' is none",
        ", 'routing': {'tasks': {'legal': 'm', 'default': 'm'}}",
        "legal, code, reasoning, translation, summary, creative, simple"},
    {"one of ours under another name",
        ", 'routing': {'tasks': {'code-generation': 'm', 'Math': 'm'}}",
        "code-generation, Math, translation, summary, creative, simple"},
    {"of models and their targets, each once",
        ", 'routing': {'tasks': {'legal-advice': 'm'}}, 'models': {'m': {'tasks': ['vision', 'legal_advice'],"
        " 'targets': [{'channel': 'c', 'model': 'x'}, {'channel': 'c', 'model': 'y', 'tasks': ['ocr']}]}}",
        "legal-advice, vision, ocr, code, reasoning, translation, summary, creative, simple"},
};

static struct span
joined(const struct task_names *names)
{
	struct buf *out = arena_buf(arena, 65536);

	for (size_t i = 0; i < names->n; i++) {
		buf_z(out, i == 0 ? "" : ", ");
		buf_span(out, names->at[i]);
	}
	return buf_text(out);
}

static void
test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(lists); i++) {
		struct conf *conf =
		    conf_alone(arena_print(arena, "{" CHANNEL "%s}", lists[i].conf));
		struct task_names names;
		struct span got;

		task_ask_names(conf, &names);
		got = joined(&names);
		if (!text_is(got, lists[i].want))
			fail_msg("%s: got '%.*s'", lists[i].what, (int)got.n, got.p);
		got = task_ask_system(arena, &names);
		assert_true(text_has_fold(got, lists[i].want));
		conf_free(&conf);
	}
}

static const struct {
	const char *what, *answer, *want;
} answers[] = {
    {"a name", "code", "code"},
    {"case, and a dot", "Code.", "code"},
    {"blanks and lines", " \n code\r\n", "code"},
    {"marks", "**`\"code\"`**", "code"},
    {"tags", "<code>", "code"},
    {"spelt otherwise", "LEGAL_ADVICE", "legal-advice"},
    {"in two words", "legal advice", "legal-advice"},
    {"in one", "legaladvice", "legal-advice"},
    {"behind thoughts", "<think>summary or code?</think>\n\ncode", "code"},
    {"thoughts that do not end", "<think>code", ""},
    {"another word", "programming", ""},
    {"a sentence", "This is code", ""},
    {"two names", "code, summary", ""},
    {"the beginning of one", "cod", ""},
    {"more than one", "codes", ""},
    {"nothing", "", ""},
    {"marks alone", "...", ""},
    {"a dash alone", "-", ""},
};

static void
test_answers(void **state)
{
	struct task_names names = {
	    .at = {SPAN("legal-advice"), SPAN("code"), SPAN("summary")}, .n = 3};

	(void)state;
	for (size_t i = 0; i < NELEM(answers); i++) {
		struct span got = task_ask_answer(&names, text_span(answers[i].answer));

		if (!text_is(got, answers[i].want))
			fail_msg("%s: got '%.*s'", answers[i].what, (int)got.n, got.p);
	}
}

/* Beginning and end of a long one, no character cut; never more than some kilobytes, whatever is handed over. */
static void
test_text(void **state)
{
	enum { SIZE = 100000, TOOLS = 300 };
	char *text = malloc(SIZE), *long_name = malloc(SIZE);
	struct span tools[TOOLS];
	struct task_prompt prompt = {.text = {text, SIZE}, .tools = tools, .ntools = TOOLS};
	struct span got;

	(void)state;
	memset(long_name, 'x', SIZE);
	for (size_t i = 0; i < TOOLS; i++)
		tools[i] = (struct span){long_name, SIZE};
	for (size_t shift = 0; shift < 3; shift++) {
		for (size_t i = 0; i < SIZE; i++)
			text[i] = "\xe5\xad\x97"[(i + shift) % 3];
		memcpy(text, "BEGIN\xe5\xad\x97", 8);
		memcpy(text + SIZE - 3, "END", 3);
		prompt.text.n = SIZE;
		got = task_ask_text(arena, &prompt);
		assert_in_range(got.n, 4000, 6000);
		assert_true(text_starts(got, "<request>\nBEGIN"));
		assert_true(text_has_fold(got, "END\n</request>\nTools at hand: xxx"));
	}
	prompt = (struct task_prompt){.text = SPAN("short"), .has_picture = true};
	got = task_ask_text(arena, &prompt);
	assert_true(text_is(got, "<request>\nshort\n</request>\nIt comes with a picture.\n"));
	free(text);
	free(long_name);
}

/* More names than there is room for: the rest cannot be told. */
static void
test_many_names(void **state)
{
	struct buf *json = arena_buf(arena, 65536);
	struct task_names names;
	struct conf *conf;

	(void)state;
	buf_z(json, "{" CHANNEL ", 'routing': {'tasks': {'");
	for (unsigned i = 0; i < 70; i++)
		buf_char(json, 'n'); /* too long to be told */
	for (unsigned i = 0; i < 100; i++)
		buf_print(json, "': 'm', 'task%u", i);
	buf_z(json, "': 'm'}}}");
	conf = conf_alone(json->p);
	task_ask_names(conf, &names);
	assert_int_equal(names.n, TASK_ASK_NAMES_MAX);
	assert_true(text_is(names.at[0], "task0"));
	assert_true(text_has_fold(task_ask_system(arena, &names), "task63."));
	conf_free(&conf);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_answers),
	    cmocka_unit_test(test_text),
	    cmocka_unit_test(test_many_names),
	};

	return cmocka_run_group_tests(tests, in_arena_begin, in_arena_end);
}
