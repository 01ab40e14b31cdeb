/*
 * trim - what it costs to make a conversation fit: CPU time of trim_form(), and what of it is the counting of tokens.
 *
 * Messages of about 400 bytes; the budget is half of what the whole has. A conversation that fits is only counted.
 * With a file of rank tables: counted exactly, too.
 */
#include "dialect/trim.h"

#include "bench/measure.h"

#include <stdio.h>

#define ROUNDS 7
#define ARENA_BYTES ((size_t)1 << 31)
#define MESSAGE_BYTES 400

static struct span
text_of(struct arena *arena, size_t bytes)
{
	static const char words[] = "the quick brown fox jumps over 13 lazy dogs (again); ";
	struct buf *b = arena_buf(arena, ARENA_BYTES);

	while (b->n < bytes)
		buf_z(b, words);
	return buf_text(b);
}

static void
add(struct arena *arena, struct form *form, enum form_role role, struct span text)
{
	struct form_turn *turn = form_add_turn(arena, form, role, form->nturns);

	form_add_part(arena, turn, FORM_TEXT)->text = text;
}

static void
add_exchange(struct arena *arena, struct form *form, struct span text)
{
	struct form_part *inner = arena_alloc(arena, sizeof *inner);
	struct form_turn *turn = form_add_turn(arena, form, FORM_ASSISTANT, form->nturns);

	*inner = (struct form_part){.kind = FORM_TEXT, .text = text};
	form_add_part(arena, turn, FORM_CALL)->call = (struct form_call){
	    .id = SPAN("a"), .name = SPAN("f"), .arguments = SPAN("{\"path\":\"x\"}")};
	turn = form_add_turn(arena, form, FORM_TOOL, form->nturns);
	form_add_part(arena, turn, FORM_RESULT)->result =
	    (struct form_result){.id = SPAN("a"), .parts = inner, .nparts = 1};
}

static struct form
history(struct arena *arena, size_t messages, bool tools, size_t last)
{
	struct form form = {.max_output = -1, .thinking_budget = -1};
	struct span text = text_of(arena, MESSAGE_BYTES);

	add(arena, &form, FORM_SYSTEM, text);
	while (form.nturns + 4 < messages) {
		add(arena, &form, FORM_USER, text);
		if (tools)
			add_exchange(arena, &form, text);
		add(arena, &form, FORM_ASSISTANT, text);
	}
	add(arena, &form, FORM_USER, text);
	if (last > 0)
		add_exchange(arena, &form, text_of(arena, last));
	return form;
}

static void
measure(
    const struct tokens_model *model, const char *what, size_t messages, bool tools, size_t last)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct form form = history(arena, messages, tools, last);
	struct trim_policy policy = {.model = model, .way = TRIM_DYNAMIC};
	double best = 0, counting = 0;
	struct trim trim = {.messages = 0};

	for (int i = 0; i < ROUNDS; i++) {
		struct arena *scratch = arena_new(ARENA_BYTES);
		double begun = measure_us(CLOCK_PROCESS_CPUTIME_ID) / 1e3, ms;
		struct why why;

		policy.budget = tokens_form(model, &form) / 2;
		ms = measure_us(CLOCK_PROCESS_CPUTIME_ID) / 1e3 - begun;
		counting = i == 0 || ms < counting ? ms : counting;
		begun = measure_us(CLOCK_PROCESS_CPUTIME_ID) / 1e3;
		if (trim_form(scratch, &form, &policy, &trim, &why) != ERR_OK)
			die("%s: %s", what, why.text);
		ms = measure_us(CLOCK_PROCESS_CPUTIME_ID) / 1e3 - begun;
		best = i == 0 || ms < best ? ms : best;
		arena_free(&scratch);
	}
	printf("%-26s %9zu %9lld %9lld %9.2f %9.2f\n", what, trim.messages, (long long)trim.before,
	    (long long)trim.after, best, counting);
	arena_free(&arena);
}

static void
measure_all(const char *how, struct tokens *tokens)
{
	struct tokens_model model = tokens_model(tokens, SPAN("gpt-4o"));

	printf(
	    "== a conversation cut to half of its tokens, %s, CPU ms\n%-26s %9s %9s %9s %9s %9s\n",
	    how, "", "messages", "before", "after", "all", "counting");
	measure(&model, "2,000 messages", 2000, false, 0);
	measure(&model, "2,000, with tools", 2000, true, 0);
	measure(&model, "20,000 messages", 20000, false, 0);
	measure(&model, "one result of 6 MB", 8, false, (size_t)6 << 20);
}

int
main(int argc, char **argv)
{
	struct tokens *tokens = NULL;
	struct why why;

	measure_all("estimated", NULL);
	if (argc < 2)
		return 0;
	if (tokens_open(argv[1], &tokens, &why) == ERR_OK)
		measure_all("counted exactly", tokens);
	else
		printf("-- skipped: %s\n", why.text);
	tokens_close(&tokens);
	return 0;
}
