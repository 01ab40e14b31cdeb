#include "dialect/trim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "lib/letters.h"

#define MB ((size_t)1 << 20)

static struct tokens_model
model_of(void)
{
	return tokens_model(NULL, SPAN("gpt-4o"));
}

static int64_t
cost_of(const struct form *form, const char *indexes)
{
	struct tokens_model model = model_of();
	int64_t n = tokens_frame(&model, form);
	char *end;

	for (const char *p = indexes; *p != '\0'; p = end) {
		unsigned long at = strtoul(p, &end, 10);

		assert_true(end != p && at < form->nturns);
		n += tokens_turn(&model, &form->turns[at]);
	}
	return n;
}

/* "0 3 4~": the turns' indexes, and whether they are as they were. */
static const char *
kept_of(struct arena *arena, const struct form *was, const struct form *is)
{
	struct tokens_model model = model_of();
	struct buf *b = arena_buf(arena, MB);

	buf_z(b, "");
	for (size_t i = 0; i < is->nturns; i++) {
		const struct form_turn *turn = &is->turns[i];

		buf_print(b, "%s%zu%s", i > 0 ? " " : "", turn->at,
		    tokens_turn(&model, turn) == tokens_turn(&model, &was->turns[turn->at]) ? ""
		                                                                            : "~");
	}
	return b->n > 0 ? b->p : "";
}

/* Budget: what the turns of `fits` are together, and `more`. want NULL: refused. */
static const struct {
	const char *what, *letters;
	enum trim_way way;
	int rounds;
	const char *fits;
	int more;
	const char *want;
} cases[] = {
    {"all fits", "s u a u", TRIM_DYNAMIC, 0, "0 1 2 3", 0, "0 1 2 3"},
    {"one token too much", "s u a u", TRIM_DYNAMIC, 0, "0 1 2 3", -1, "0 3"},
    {"no limit", "s u a u", TRIM_DYNAMIC, 0, NULL, 0, "0 1 2 3"},
    {"oldest round first", "s u a u a u", TRIM_DYNAMIC, 0, "0 3 4 5", 0, "0 3 4 5"},
    {"rounds are whole", "u a u a u", TRIM_DYNAMIC, 0, "1 2 3 4", 0, "2 3 4"},
    {"large ones in the middle stay while smaller, older ones suffice", "u2 a u9 a u a u",
        TRIM_DYNAMIC, 0, "2 3 4 5 6", 0, "2 3 4 5 6"},
    {"several leading texts", "s d s u a u", TRIM_DYNAMIC, 0, "0 1 2 5", 0, "0 1 2 5"},
    {"a system text in the middle goes with its round", "s u s a u a u", TRIM_DYNAMIC, 0, "0 4 5 6",
        0, "0 4 5 6"},
    {"it begins with an answer", "a u a u", TRIM_DYNAMIC, 0, "1 2 3", 0, "1 2 3"},
    {"it begins with calls", "s c r a u a u", TRIM_DYNAMIC, 0, "0 3 4 5 6", 0, "0 3 4 5 6"},
    {"user after user", "u u u u", TRIM_DYNAMIC, 0, "2 3", 0, "2 3"},

    {"older calls before older rounds", "s u a u c r a u", TRIM_DYNAMIC, 0, "0 1 2 3 6 7", 0,
        "0 1 2 3 6 7"},
    {"oldest calls first", "u c r c r a u", TRIM_DYNAMIC, 0, "0 3 4 5 6", 0, "0 3 4 5 6"},
    {"calls at once go together", "u C r a u", TRIM_DYNAMIC, 0, "0 1 2 3 4", -1, "0 3 4"},
    {"text goes with its calls", "u t r a u", TRIM_DYNAMIC, 0, "0 1 2 3 4", -1, "0 3 4"},
    {"what was said to results goes with them", "u c r u a u", TRIM_DYNAMIC, 0, "0 4 5", 0,
        "0 4 5"},
    {"older rounds before the calls of now", "u a u c r c r", TRIM_DYNAMIC, 0, "2 3 4 5 6", 0,
        "2 3 4 5 6"},
    {"calls of now, oldest first", "s u c r c r c r", TRIM_DYNAMIC, 0, "0 1 4 5 6 7", 0,
        "0 1 4 5 6 7"},
    {"the running ones stay", "s u c r c r c r", TRIM_DYNAMIC, 0, "0 1 6 7", 0, "0 1 6 7"},
    {"answers between them go after them", "u a c r a c r", TRIM_DYNAMIC, 0, "0 4 5 6", 0,
        "0 4 5 6"},
    {"the last answer stays: it is to be gone on with", "u a a a", TRIM_DYNAMIC, 0, "0 3", 0,
        "0 3"},
    {"a word to the results is the newest message", "u c r c r u", TRIM_DYNAMIC, 0, "0 3 4 5", 0,
        "0 3 4 5"},
    {"... also when an answer follows", "u c r c r u a", TRIM_DYNAMIC, 0, "0 3 4 5 6", 0,
        "0 3 4 5 6"},
    {"... and those results cannot go", "u c r c r u a", TRIM_DYNAMIC, 0, "0 5 6", 0, NULL},
    {"of two words to them the newest", "u c r u u", TRIM_DYNAMIC, 0, "0 1 2 4", 0, "0 1 2 4"},
    {"empty user turns", "e a e a e", TRIM_DYNAMIC, 0, "2 3 4", 0, "2 3 4"},

    {"rounds: the newest two", "s u a u a u", TRIM_ROUNDS, 2, NULL, 0, "0 3 4 5"},
    {"rounds: fewer than that", "s u a u", TRIM_ROUNDS, 20, NULL, 0, "0 1 2 3"},
    {"rounds: with their calls", "u a u c r a u c r", TRIM_ROUNDS, 2, NULL, 0, "2 3 4 5 6 7 8"},
    {"rounds: what has none before it", "a u a u", TRIM_ROUNDS, 2, NULL, 0, "1 2 3"},
    {"rounds: one at least", "u a u", TRIM_ROUNDS, 0, NULL, 0, "2"},
    {"rounds: then as dynamic", "s u a u a u", TRIM_ROUNDS, 2, "0 5", 0, "0 5"},
    {"rounds: words to results are of their round", "u c r u c r u", TRIM_ROUNDS, 1, NULL, 0,
        "0 1 2 3 4 5 6"},
    {"rounds: no user at all", "s a a", TRIM_ROUNDS, 1, NULL, 0, "0 1 2"},

    {"the newest message alone does not fit", "s u a u", TRIM_DYNAMIC, 0, "0 3", -1, NULL},
    {"... however long it is", "s u a u90000", TRIM_DYNAMIC, 0, "0", 100000, NULL},
    {"system texts do not fit", "s9 s9 u", TRIM_DYNAMIC, 0, "0 2", 0, NULL},
    {"only system texts", "s9 s9", TRIM_DYNAMIC, 0, "0", 0, NULL},
    {"a long result (CTX-03)", "s u c r90000", TRIM_DYNAMIC, 0, "0 1 2", 100000, "0 1 2 3~"},
    {"... before which all else goes", "s u a u c r c r99", TRIM_DYNAMIC, 0, "0 3 6", 50,
        "0 3 6 7~"},
    {"long results at once", "u C r9000", TRIM_DYNAMIC, 0, "0 1", 1000, "0 1 2~"},
    {"results that cannot be so short", "u C r9000", TRIM_DYNAMIC, 0, "0 1", 30, NULL},
    {"a long answer to go on with", "u a9000", TRIM_DYNAMIC, 0, "0", 500, "0 1~"},
    {"the question before a word to the results", "u9000 c r u", TRIM_DYNAMIC, 0, "1 2 3", 500,
        "0~ 1 2 3"},
    {"long arguments (CTX-02)", "u c10000 r", TRIM_DYNAMIC, 0, "0", 10000, NULL},
    {"... of older ones", "u c10000 r a u", TRIM_DYNAMIC, 0, "0 3 4", 0, "0 3 4"},
    {"no user: answers", "s a9 a9 a9", TRIM_DYNAMIC, 0, "0 3", 0, "0 3"},
    {"nothing may be sent", "u", TRIM_DYNAMIC, 0, "0", -1000, NULL},
};

static void
test_cases(void **state)
{
	struct tokens_model model = model_of();
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct arena *arena = arena_new(512 * MB);
		struct form form = letters_form(arena, cases[i].letters);
		struct trim_policy policy = {
		    .model = &model, .way = cases[i].way, .rounds = cases[i].rounds};
		struct why why = {.text = ""};
		const char *got = NULL;
		struct trim trim;

		if (cases[i].fits != NULL)
			policy.budget = cost_of(&form, cases[i].fits) + cases[i].more;
		if (trim_form(arena, &form, &policy, &trim, &why) == ERR_OK)
			got = kept_of(arena, &form, &trim.form);
		if ((got == NULL) != (cases[i].want == NULL) ||
		    (got != NULL && strcmp(got, cases[i].want) != 0)) {
			failed++;
			print_error("%s:\n got  %s (%s)\n want %s\n", cases[i].what, got, why.text,
			    cases[i].want);
		}
		arena_free(&arena);
	}
	assert_int_equal(failed, 0);
}

/* ---- one text ---- */

/* CTX-04: the limit falls on each byte of each character. */
static void
test_text(void **state)
{
	static const char unit[] = "a\xf0\x9f\x8e\x89\xc3\xa9\xe4\xb8\xad";
	struct arena *arena = arena_new(64 * MB);
	struct buf *b = arena_buf(arena, MB);
	struct span text;

	(void)state;
	for (int i = 0; i < 40; i++)
		buf_z(b, unit);
	text = buf_text(b);
	for (size_t most = 0; most <= text.n + 10; most++) {
		struct span is = trim_text(arena, text, most);

		if (text_equal(is, text) ? most + 40 < text.n : !letters_is_cut(is, text))
			fail_msg("%zu: %.*s", most, (int)is.n, is.p);
		if (is.n > most + 50 && !text_equal(is, text))
			fail_msg("%zu: %zu bytes", most, is.n);
	}
	/* the mark alone would be longer */
	assert_true(text_is(trim_text(arena, SPAN("short"), 2), "short"));
	assert_true(text_is(trim_text(arena, SPAN(""), 0), ""));
	assert_true(text_is(
	    trim_text(arena, letters_text(arena, 1), 0), "\n[... 51 characters left out ...]\n"));
	arena_free(&arena);
}

/* ---- what is kept of one that was shortened ---- */

static void
test_shortened(void **state)
{
	struct arena *arena = arena_new(512 * MB);
	struct form form = letters_form(arena, "s u C900 r900");
	struct tokens_model model = model_of();
	struct trim_policy policy = {.model = &model, .way = TRIM_DYNAMIC};
	struct form_part *results = form.turns[3].parts, *inner;
	struct why why;
	struct trim trim;

	(void)state;
	/* one of two results is small, and shows a picture */
	inner = arena_alloc(arena, 2 * sizeof *inner);
	inner[0] = (struct form_part){.kind = FORM_TEXT, .text = SPAN("small")};
	inner[1] = (struct form_part){.kind = FORM_IMAGE, .media.url = SPAN("https://x/y.png")};
	results[1].result.parts = inner;
	results[1].result.nparts = 2;
	policy.budget = cost_of(&form, "0 1 2") + 2000;
	assert_int_equal(trim_form(arena, &form, &policy, &trim, &why), ERR_OK);
	assert_int_equal(trim.messages, 1);
	assert_in_range(trim.after, policy.budget - 300, policy.budget);
	assert_true(letters_is_cut(
	    trim.form.turns[3].parts[0].result.parts[0].text, results[0].result.parts[0].text));
	assert_int_equal(
	    memcmp(trim.form.turns[3].parts[1].result.parts, inner, 2 * sizeof *inner), 0);
	/* arguments are as they were, and so is the conversation that came in */
	assert_int_equal(
	    memcmp(trim.form.turns[2].parts, form.turns[2].parts, 2 * sizeof *form.turns->parts),
	    0);
	assert_int_equal(results[0].result.parts[0].text.n, 900 * LETTERS_WORDS * 5 + 1);
	arena_free(&arena);
}

/* Thoughts whose maker wants them back are never cut, others are. */
static void
test_thoughts(void **state)
{
	struct arena *arena = arena_new(512 * MB);
	struct form form = letters_form(arena, "u t900 r");
	struct tokens_model model = model_of();
	struct form_part *part = &form.turns[1].parts[0];
	struct trim_policy policy = {.model = &model, .way = TRIM_DYNAMIC};
	struct why why = {""};
	struct trim trim;

	(void)state;
	form.turns[1].parts[1].call.arguments = SPAN("{}");
	part->kind = FORM_THOUGHT;
	policy.budget = cost_of(&form, "0 2") + 500;
	assert_int_equal(trim_form(arena, &form, &policy, &trim, &why), ERR_OK);
	assert_true(letters_is_cut(trim.form.turns[1].parts[0].text, part->text));
	part->thought.seal = SPAN("s");
	assert_int_equal(trim_form(arena, &form, &policy, &trim, &why), ERR_BAD_INPUT);
	assert_non_null(strstr(why.text, "what has to stay of it is "));
	assert_non_null(
	    strstr(why.text, arena_print(arena, "room for %lld", (long long)policy.budget)));
	arena_free(&arena);
}

/* Where the middle is dearer or cheaper than the ends the first guess is far off. */
static void
check_uneven(const char *ends, const char *middle, enum form_kind kind)
{
	struct arena *arena = arena_new(512 * MB);
	struct form form = letters_form(arena, "s u c r");
	struct form_part *part =
	    form_add_part(arena, form_add_turn(arena, &form, FORM_ASSISTANT, 4), kind);
	struct tokens_model model = model_of();
	struct trim_policy policy = {
	    .model = &model, .way = TRIM_DYNAMIC, .budget = cost_of(&form, "0 1") + 4000};
	struct buf *text = arena_buf(arena, 4 * MB);
	struct why why = {""};
	struct trim trim;

	for (int i = 0; i < 30000; i++)
		buf_z(text, i < 5000 || i >= 25000 ? ends : middle);
	*(kind == FORM_DOCUMENT ? &part->media.plain : &part->text) = buf_text(text);
	assert_int_equal(trim_form(arena, &form, &policy, &trim, &why), ERR_OK);
	if (trim.after > policy.budget || trim.after < policy.budget * 4 / 5)
		fail_msg("%s%s: %lld of %lld", ends, middle, (long long)trim.after,
		    (long long)policy.budget);
	arena_free(&arena);
}

static void
test_uneven(void **state)
{
	(void)state;
	check_uneven("word ", "\xf0\x9f\x8e\x89", FORM_TEXT);
	check_uneven("\xf0\x9f\x8e\x89", "letters ", FORM_TEXT);
	check_uneven(" ", "(1,2);", FORM_TEXT);
	check_uneven("a", "b c ", FORM_DOCUMENT);
}

static void
test_least(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	struct tokens_model model = model_of();
	struct form form = letters_form(arena, "s d u3 a u2 c r");

	(void)state;
	assert_int_equal(trim_least(&form, &model), cost_of(&form, "0 1 4"));
	form = letters_form(arena, "a a");
	assert_int_equal(trim_least(&form, &model), cost_of(&form, ""));
	form = (struct form){.turns = NULL};
	assert_int_equal(trim_least(&form, &model), cost_of(&form, ""));
	arena_free(&arena);
}

static void
test_empty(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	struct tokens_model model = model_of();
	const struct form form = {.turns = NULL};
	struct trim_policy policy = {.model = &model, .way = TRIM_ROUNDS, .rounds = 1, .budget = 1};
	struct why why;
	struct trim trim;

	(void)state;
	assert_int_equal(trim_form(arena, &form, &policy, &trim, &why), ERR_BAD_INPUT);
	policy.budget = 0;
	assert_int_equal(trim_form(arena, &form, &policy, &trim, &why), ERR_OK);
	assert_int_equal(trim.messages, 0);
	arena_free(&arena);
}

/* ---- many turns ---- */

static double
cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
check_many(size_t rounds, const char *round, enum trim_way way)
{
	struct arena *arena = arena_new(1024 * MB);
	struct form form = letters_form(arena, "s");
	struct tokens_model model = model_of();
	struct trim_policy policy = {.model = &model, .way = way, .rounds = 3};
	struct span text = letters_text(arena, 1);
	struct why why;
	struct trim trim;
	double began;

	for (size_t i = 0; i < rounds; i++)
		for (const char *p = round; *p != '\0'; p++)
			letters_turn(arena, &form, *p, text);
	letters_turn(arena, &form, 'u', text);
	policy.budget = tokens_form(&model, &form) / 2;
	began = cpu_s();
	assert_int_equal(trim_form(arena, &form, &policy, &trim, &why), ERR_OK);
	if (cpu_s() - began > 2)
		fail_msg("%s: %.1f s", round, cpu_s() - began);
	assert_true(trim.after <= policy.budget && trim.messages > 0);
	arena_free(&arena);
}

static void
test_many(void **state)
{
	(void)state;
	check_many(50000, "ua", TRIM_DYNAMIC);
	check_many(33000, "ucr", TRIM_DYNAMIC);
	check_many(100000, "u", TRIM_ROUNDS);
	check_many(100000, "a", TRIM_DYNAMIC);
	check_many(50000, "cr", TRIM_DYNAMIC);
	check_many(500, "ucra", TRIM_DYNAMIC);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_text),
	    cmocka_unit_test(test_shortened),
	    cmocka_unit_test(test_thoughts),
	    cmocka_unit_test(test_uneven),
	    cmocka_unit_test(test_least),
	    cmocka_unit_test(test_empty),
	    cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
