#include "dialect/trim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* ---- one text ---- */

static bool
is_cut_of(struct span is, struct span was)
{
	size_t head = text_find(is, SPAN("\n[... ")), tail;
	struct span rest = text_from(is, head + SPAN("\n[... ").n), number;
	int64_t gone, characters = 0;

	if (head == is.n || is.n >= was.n || !text_utf8(is) || !text_token(&rest, " ", &number) ||
	    !text_i64(number, 1, INT64_MAX, &gone) ||
	    !text_starts(rest, " characters left out ...]\n"))
		return false;
	rest = text_from(rest, SPAN(" characters left out ...]\n").n);
	tail = was.n - rest.n;
	for (size_t i = head; i < tail; i++)
		characters += ((unsigned char)was.p[i] & 0xc0) != 0x80;
	return head + rest.n < was.n && memcmp(is.p, was.p, head) == 0 &&
	       text_equal(text_from(was, tail), rest) && characters == gone;
}

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

		if (text_equal(is, text) ? most + 40 < text.n : !is_cut_of(is, text))
			fail_msg("%zu: %.*s", most, (int)is.n, is.p);
		if (is.n > most + 50 && !text_equal(is, text))
			fail_msg("%zu: %zu bytes", most, is.n);
	}
	/* the mark alone would be longer */
	assert_true(text_is(trim_text(arena, SPAN("short"), 2), "short"));
	assert_true(text_is(trim_text(arena, SPAN(""), 0), ""));
	assert_true(
	    text_is(trim_text(arena, words(arena, 1), 0), "\n[... 51 characters left out ...]\n"));
	arena_free(&arena);
}

/* ---- what is kept of one that was shortened ---- */

static void
test_shortened(void **state)
{
	struct arena *arena = arena_new(512 * MB);
	struct form form = form_of(arena, "s u C900 r900");
	struct tokens_model model = model_of();
	struct trim_policy policy = {.way = TRIM_DYNAMIC};
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
	assert_int_equal(trim_form(arena, &form, &model, &policy, &trim, &why), ERR_OK);
	assert_int_equal(trim.messages, 1);
	assert_in_range(trim.after, policy.budget - 300, policy.budget);
	assert_true(is_cut_of(
	    trim.form.turns[3].parts[0].result.parts[0].text, results[0].result.parts[0].text));
	assert_int_equal(
	    memcmp(trim.form.turns[3].parts[1].result.parts, inner, 2 * sizeof *inner), 0);
	/* arguments are as they were, and so is the conversation that came in */
	assert_int_equal(
	    memcmp(trim.form.turns[2].parts, form.turns[2].parts, 2 * sizeof *form.turns->parts),
	    0);
	assert_int_equal(results[0].result.parts[0].text.n, 900 * WORDS * 5 + 1);
	arena_free(&arena);
}

/* Thoughts whose maker wants them back are never cut, others are. */
static void
test_thoughts(void **state)
{
	struct arena *arena = arena_new(512 * MB);
	struct form form = form_of(arena, "u t900 r");
	struct tokens_model model = model_of();
	struct form_part *part = &form.turns[1].parts[0];
	struct trim_policy policy = {.way = TRIM_DYNAMIC};
	struct why why = {""};
	struct trim trim;

	(void)state;
	form.turns[1].parts[1].call.arguments = SPAN("{}");
	part->kind = FORM_THOUGHT;
	policy.budget = cost_of(&form, "0 2") + 500;
	assert_int_equal(trim_form(arena, &form, &model, &policy, &trim, &why), ERR_OK);
	assert_true(is_cut_of(trim.form.turns[1].parts[0].text, part->text));
	part->thought.seal = SPAN("s");
	assert_int_equal(trim_form(arena, &form, &model, &policy, &trim, &why), ERR_BAD_INPUT);
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
	struct form form = form_of(arena, "s u c r");
	struct form_part *part =
	    form_add_part(arena, form_add_turn(arena, &form, FORM_ASSISTANT, 4), kind);
	struct tokens_model model = model_of();
	struct trim_policy policy = {.way = TRIM_DYNAMIC, .budget = cost_of(&form, "0 1") + 4000};
	struct buf *text = arena_buf(arena, 4 * MB);
	struct why why = {""};
	struct trim trim;

	for (int i = 0; i < 30000; i++)
		buf_z(text, i < 5000 || i >= 25000 ? ends : middle);
	*(kind == FORM_DOCUMENT ? &part->media.plain : &part->text) = buf_text(text);
	assert_int_equal(trim_form(arena, &form, &model, &policy, &trim, &why), ERR_OK);
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
	struct form form = form_of(arena, "s d u3 a u2 c r");

	(void)state;
	assert_int_equal(trim_least(&form, &model), cost_of(&form, "0 1 4"));
	form = form_of(arena, "a a");
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
	struct trim_policy policy = {.way = TRIM_ROUNDS, .rounds = 1, .budget = 1};
	struct why why;
	struct trim trim;

	(void)state;
	assert_int_equal(trim_form(arena, &form, &model, &policy, &trim, &why), ERR_BAD_INPUT);
	policy.budget = 0;
	assert_int_equal(trim_form(arena, &form, &model, &policy, &trim, &why), ERR_OK);
	assert_int_equal(trim.messages, 0);
	arena_free(&arena);
}

/* What went, for who writes a summary of it, and where that goes. */
static void
test_summary(void **state)
{
	struct arena *arena = arena_new(64 * MB);
	struct tokens_model model = model_of();
	struct form form = form_of(arena, "s d u c r a u a u");
	struct trim_policy policy = {.way = TRIM_SUMMARY, .budget = cost_of(&form, "0 1 6 7 8")};
	struct why why;
	struct trim trim;

	(void)state;
	assert_int_equal(trim_form(arena, &form, &model, &policy, &trim, &why), ERR_OK);
	assert_string_equal(kept_of(arena, &form, &trim.form), "0 1 6 7 8");
	form.turns = trim.gone;
	form.nturns = trim.ngone;
	assert_int_equal(trim.ngone, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(trim.gone[i].at, 2 + i);
	assert_int_equal(trim.note_at, 2);
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
	struct form form = form_of(arena, "s");
	struct tokens_model model = model_of();
	struct trim_policy policy = {.way = way, .rounds = 3};
	struct span text = words(arena, 1);
	struct why why;
	struct trim trim;
	double began;

	for (size_t i = 0; i < rounds; i++)
		for (const char *p = round; *p != '\0'; p++)
			add_turn(arena, &form, *p, text);
	add_turn(arena, &form, 'u', text);
	policy.budget = tokens_form(&model, &form) / 2;
	began = cpu_s();
	assert_int_equal(trim_form(arena, &form, &model, &policy, &trim, &why), ERR_OK);
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
	check_many(50000, "cr", TRIM_SUMMARY);
	check_many(500, "ucra", TRIM_DYNAMIC);
}

/* ---- random conversations ---- */

static uint64_t seed;

static size_t
draw(size_t n)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (size_t)((seed * 2685821657736338717ULL) >> 33) % n;
}

static struct span
any_text(struct arena *arena)
{
	static const char *const pieces[] = {"word ", "\xe4\xb8\xad\xe6\x96\x87",
	    "\xf0\x9f\x8e\x89", "x = f(y);\n", "12345 ", "\xc3\xa9t\xc3\xa9 ", "----",
	    "aGVsbG8gd29ybGQ"};
	size_t n = draw(10) == 0 ? draw(300) : draw(8) == 0 ? 0 : draw(20);
	struct buf *b = arena_buf(arena, MB);

	buf_z(b, "");
	for (size_t i = 0; i < n; i++)
		buf_z(b, pieces[draw(NELEM(pieces))]);
	return buf_text(b);
}

static void
any_part(struct arena *arena, struct form_turn *turn)
{
	static const enum form_kind kinds[] = {FORM_TEXT, FORM_TEXT, FORM_TEXT, FORM_IMAGE,
	    FORM_DOCUMENT, FORM_THOUGHT, FORM_THOUGHT, FORM_REFUSAL};
	bool says = turn->role == FORM_ASSISTANT;
	enum form_kind kind = kinds[draw(turn->role == FORM_USER ? 5 : says ? 8 : 3)];
	struct form_part *part;

	if (says && (kind == FORM_IMAGE || kind == FORM_DOCUMENT))
		kind = FORM_TEXT;
	part = form_add_part(arena, turn, kind);
	if (kind == FORM_IMAGE)
		part->media.url = SPAN("https://x/y.png");
	else if (kind == FORM_DOCUMENT)
		part->media.plain = any_text(arena);
	else
		part->text = any_text(arena);
	if (kind == FORM_THOUGHT && draw(2) == 0)
		part->thought.seal = SPAN("sealed");
}

static void
any_exchange(struct arena *arena, struct form *form)
{
	static const char *const ids[] = {"a", "b", "c", "d"};
	struct form_turn *calls = form_add_turn(arena, form, FORM_ASSISTANT, form->nturns), *turn;

	for (size_t i = draw(2); i > 0; i--)
		any_part(arena, calls);
	for (size_t i = 1 + draw(3); i > 0; i--)
		add_call(arena, calls, ids[i], draw(9) == 0 ? words(arena, draw(99)) : SPAN("x"));
	turn = form_add_turn(arena, form, FORM_TOOL, form->nturns);
	add_results(arena, turn, turn - 1, any_text(arena));
}

static struct form
any_form(struct arena *arena)
{
	struct form form = {.max_output = -1, .thinking_budget = -1};

	for (size_t i = draw(3); i > 0; i--)
		any_part(arena, form_add_turn(arena, &form, draw(2) ? FORM_SYSTEM : FORM_DEVELOPER,
		                    form.nturns));
	for (size_t i = draw(24) + (form.nturns == 0); i > 0; i--) {
		static const enum form_role roles[] = {
		    FORM_USER, FORM_USER, FORM_USER, FORM_ASSISTANT, FORM_ASSISTANT, FORM_SYSTEM};
		size_t which = draw(NELEM(roles) + 4);
		struct form_turn *turn;

		if (which >= NELEM(roles)) {
			any_exchange(arena, &form);
			continue;
		}
		turn = form_add_turn(arena, &form, roles[which], form.nturns);
		for (size_t p = 1 + draw(3); p > 0; p--)
			any_part(arena, turn);
	}
	return form;
}

static bool
same_text(struct span is, struct span was, bool *cut)
{
	if (text_equal(is, was))
		return true;
	*cut = true;
	return is_cut_of(is, was);
}

/* But for texts that were cut the bytes are the same. */
static bool
same_part(const struct form_part *is, const struct form_part *was, bool *cut)
{
	struct form_part like = *is;
	bool same = same_text(is->text, was->text, cut) &&
	            same_text(is->media.plain, was->media.plain, cut) &&
	            is->result.nparts == was->result.nparts;

	for (size_t i = 0; i < is->result.nparts && same; i++)
		same = same_text(is->result.parts[i].text, was->result.parts[i].text, cut) &&
		       is->result.parts[i].kind == was->result.parts[i].kind;
	like.text = was->text;
	like.media.plain = was->media.plain;
	like.result.parts = was->result.parts;
	return same && memcmp(&like, was, sizeof like) == 0;
}

/* The turn as it was, or cut. */
static bool
same_turn(const struct form_turn *is, const struct form_turn *was, bool *cut)
{
	bool same = is->role == was->role && is->at == was->at && is->nparts == was->nparts;

	for (size_t p = 0; p < is->nparts && same; p++)
		same = same_part(&is->parts[p], &was->parts[p], cut);
	return same;
}

struct round {
	struct form form;
	const struct tokens_model *model;
	struct trim_policy policy;
	struct trim trim;
	size_t lead, user;
};

static const char *
fault_of_turns(const struct round *r)
{
	const struct form *is = &r->trim.form, *was = &r->form;
	size_t at = 0, cuts = 0;
	bool user = r->user == SIZE_MAX;

	for (size_t i = 0; i < is->nturns; i++, at++) {
		bool cut = false;

		while (at < was->nturns && was->turns[at].at != is->turns[i].at)
			at++;
		if (at == was->nturns)
			return "order, or a turn that nobody wrote";
		if (!same_turn(&is->turns[i], &was->turns[at], &cut))
			return "a turn is another one";
		if (cut && (at < r->lead || at == r->user))
			return "what must not be cut is cut";
		if (i < r->lead && at != i)
			return "a leading text is gone";
		user |= at == r->user;
		cuts += cut;
	}
	if (!user)
		return "the newest message is gone";
	if (at != was->nturns)
		return "the last turn is gone";
	return r->trim.messages == was->nturns - is->nturns + cuts ? NULL : "not as many messages";
}

static const char *
fault_of_summary(const struct round *r)
{
	size_t gone = r->form.nturns - r->trim.form.nturns;

	if (r->policy.way != TRIM_SUMMARY || r->trim.messages == 0)
		return r->trim.ngone == 0 ? NULL : "gone without a summary";
	return r->trim.ngone == gone && r->trim.note_at == r->lead ? NULL : "gone";
}

static const char *
fault_of(struct arena *arena, struct round *r)
{
	const struct trim *trim = &r->trim;
	const char *fault = fault_of_turns(r);
	struct form form = trim->form;
	struct trim again;
	struct why why;

	if (fault == NULL)
		fault = fault_of_summary(r);
	if (fault != NULL)
		return fault;
	if (r->policy.budget != 0 && trim->after > r->policy.budget)
		return "it does not fit";
	if (trim->before != tokens_form(r->model, &r->form) ||
	    trim->after != tokens_form(r->model, &form))
		return "counted wrong";
	if (r->policy.way != TRIM_ROUNDS && trim->messages > 0 && trim->before <= r->policy.budget)
		return "trimmed without need";
	if (form_check(&form, &why) != ERR_OK)
		return arena_print(arena, "not valid: %s", why.text);
	if (trim_form(arena, &form, r->model, &r->policy, &again, &why) != ERR_OK ||
	    again.messages != 0)
		return "not the same once more";
	return NULL;
}

/* A conversation of answers alone, or of nothing, is no input to anybody. */
static bool
is_asked(const struct form *form)
{
	for (size_t i = 0; i < form->nturns; i++)
		for (size_t p = 0; form->turns[i].role == FORM_USER && p < form->turns[i].nparts;
		     p++)
			if (form->turns[i].parts[p].kind != FORM_TEXT ||
			    form->turns[i].parts[p].text.n > 0)
				return true;
	return false;
}

/* Each API's writer takes what is left where it took the whole, and its reader finds it right. */
static const char *
fault_of_writers(struct arena *arena, const struct round *r, unsigned *written)
{
	struct form_target target = {.model = SPAN("m"),
	    .channel = SPAN("c"),
	    .provider = "openai-compatible",
	    .max_output = -1};

	for (int wire = 0; wire < FORM_WIRE__MAX && is_asked(&r->trim.form); wire++) {
		struct buf *whole = arena_buf(arena, 16 * MB), *out = arena_buf(arena, 16 * MB);
		struct form_loss loss = {.names = NULL}, more = {.names = NULL};
		const struct flow_wire *w = &flow_wires[wire];
		struct form again;
		struct why why;

		target.wire = (enum form_wire)wire;
		if (w->write(arena, &r->form, &target, whole, &loss, &why) != ERR_OK ||
		    w->read(arena, buf_text(whole), &again, &why) != ERR_OK ||
		    form_check(&again, &why) != ERR_OK)
			continue;
		(*written)++;
		if (w->write(arena, &r->trim.form, &target, out, &more, &why) != ERR_OK ||
		    w->read(arena, buf_text(out), &again, &why) != ERR_OK ||
		    form_check(&again, &why) != ERR_OK)
			return arena_print(arena, "%s: %s", w->dialect->name, why.text);
	}
	return NULL;
}

/* Only what cannot fit, and by what its text says. */
static void
check_refused(const struct round *r, const struct why *why)
{
	long long stays = 0, room = 0;

	if (sscanf(why->text,
	        "the conversation does not fit: what has to stay of it is %lld tokens, and there "
	        "is room for %lld",
	        &stays, &room) != 2)
		fail_msg("refused by: %s", why->text);
	if (room != r->policy.budget || stays <= room || stays > tokens_form(r->model, &r->form) ||
	    stays < trim_least(&r->form, r->model))
		fail_msg("refused what fits: %s", why->text);
}

static struct round
any_round(struct arena *arena, const struct tokens_model *model)
{
	struct round r = {.form = any_form(arena), .model = model, .user = SIZE_MAX};
	size_t most = (size_t)tokens_form(model, &r.form) * 5 / 4 + 1;

	r.policy = (struct trim_policy){.way = (enum trim_way)draw(3), .rounds = (int64_t)draw(6)};
	if (draw(10) > 0)
		r.policy.budget = (int64_t)(draw(2) ? draw(most) : draw(most / 4 + 1));
	while (r.lead < r.form.nturns && (r.form.turns[r.lead].role == FORM_SYSTEM ||
	                                     r.form.turns[r.lead].role == FORM_DEVELOPER))
		r.lead++;
	for (size_t i = 0; i < r.form.nturns; i++)
		if (r.form.turns[i].role == FORM_USER)
			r.user = i;
	return r;
}

static void
test_random(void **state)
{
	struct tokens_model model = model_of();
	unsigned refused = 0, trimmed = 0, written = 0;

	(void)state;
	for (uint64_t i = 1; i <= 2000; i++) {
		struct arena *arena = arena_new(512 * MB);
		const char *fault = NULL;
		struct why why = {""};
		struct round r;

		seed = i * 0x9e3779b97f4a7c15ULL;
		r = any_round(arena, &model);
		if (trim_form(arena, &r.form, &model, &r.policy, &r.trim, &why) != ERR_OK) {
			refused++;
			check_refused(&r, &why);
		} else {
			fault = fault_of(arena, &r);
			if (fault == NULL && i % 3 == 0)
				fault = fault_of_writers(arena, &r, &written);
			trimmed += r.trim.messages > 0;
		}
		if (fault != NULL)
			fail_msg("conversation %llu: %s", (unsigned long long)i, fault);
		arena_free(&arena);
	}
	/* the draws are worth something */
	assert_in_range(trimmed, 600, 2000);
	assert_in_range(refused, 200, 1200);
	assert_in_range(written, 500, 6000);
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
	    cmocka_unit_test(test_summary),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
