#include "dialect/trim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dialect/flow.h"

#define MB ((size_t)1 << 20)
#define WORDS 10 /* of one unit of text */

/*
 * A conversation in letters, one a turn: s system, d developer, u user, a assistant, c an answer with a call, t one with
 * text and a call, C one with two calls, r results of the turn before; e a user's turn without text. A number behind it
 * is how many units of text it has, else one.
 */
static struct span
words(struct arena *arena, size_t units)
{
	struct buf *b = arena_buf(arena, 64 * MB);

	for (size_t i = 0; i < units * WORDS; i++)
		buf_z(b, "word ");
	buf_char(b, '.');
	return buf_text(b);
}

static void
add_call(struct arena *arena, struct form_turn *turn, const char *id, struct span text)
{
	struct form_part *part = form_add_part(arena, turn, FORM_CALL);

	part->call.id = text_span(arena_print(arena, "%s%zu", id, turn->at));
	part->call.name = SPAN("f");
	part->call.arguments =
	    text_span(arena_print(arena, "{\"a\":\"%.*s\"}", (int)text.n, text.p));
}

static void
add_results(
    struct arena *arena, struct form_turn *turn, const struct form_turn *calls, struct span text)
{
	for (size_t p = 0; p < calls->nparts; p++) {
		struct form_part *part, *inner;

		if (calls->parts[p].kind != FORM_CALL)
			continue;
		part = form_add_part(arena, turn, FORM_RESULT);
		inner = arena_alloc(arena, sizeof *inner);
		*inner = (struct form_part){.kind = FORM_TEXT, .text = text};
		part->result.id = calls->parts[p].call.id;
		part->result.name = SPAN("f");
		part->result.parts = inner;
		part->result.nparts = 1;
	}
}

static enum form_role
role_of(char letter)
{
	switch (letter) {
	case 's': return FORM_SYSTEM;
	case 'd': return FORM_DEVELOPER;
	case 'u':
	case 'e': return FORM_USER;
	case 'r': return FORM_TOOL;
	default: return FORM_ASSISTANT;
	}
}

static void
add_turn(struct arena *arena, struct form *form, char letter, struct span text)
{
	struct form_turn *turn = form_add_turn(arena, form, role_of(letter), form->nturns);

	if (letter == 'r') {
		add_results(arena, turn, turn - 1, text);
		return;
	}
	if (letter == 'e')
		form_add_part(arena, turn, FORM_TEXT)->text = SPAN("");
	else if (letter != 'c' && letter != 'C')
		form_add_part(arena, turn, FORM_TEXT)->text = text;
	if (letter == 'c' || letter == 'C' || letter == 't')
		add_call(arena, turn, "call_", text);
	if (letter == 'C')
		add_call(arena, turn, "more_", text);
}

static struct form
form_of(struct arena *arena, const char *letters)
{
	struct form form = {.max_output = -1, .thinking_budget = -1};

	for (const char *p = letters; *p != '\0';) {
		char letter = *p++, *end;
		unsigned long units = strtoul(p, &end, 10);

		add_turn(arena, &form, letter, words(arena, end == p ? 1 : units));
		for (p = end; *p == ' '; p++)
			;
	}
	return form;
}

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
    {"summary goes the same way", "s u a u c r a u", TRIM_SUMMARY, 0, "0 6 7", 0, "0 7"},
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
		struct form form = form_of(arena, cases[i].letters);
		struct trim_policy policy = {.way = cases[i].way, .rounds = cases[i].rounds};
		struct why why = {.text = ""};
		const char *got = NULL;
		struct trim trim;

		if (cases[i].fits != NULL)
			policy.budget = cost_of(&form, cases[i].fits) + cases[i].more;
		if (trim_form(arena, &form, &model, &policy, &trim, &why) == ERR_OK)
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
