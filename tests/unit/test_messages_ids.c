#include "dialect/messages_ids.h"

#include "lib/in_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Turns of calls, apart by blanks; each letter is an id. */
static struct form
form_of(const char *letters)
{
	struct form form = {.turns = NULL};
	struct form_turn *turn = form_add_turn(arena, &form, FORM_ASSISTANT, 0);

	for (; *letters != '\0'; letters++)
		if (*letters == ' ')
			turn = form_add_turn(arena, &form, FORM_ASSISTANT, 0);
		else
			form_add_part(arena, turn, FORM_CALL)->call.id =
			    arena_copy(arena, (struct span){letters, 1});
	return form;
}

/* The ids as they are sent, in letters again: one that is not its letter is told as a digit, the same for the same. */
static const char *
sent_of(const struct form *form)
{
	struct messages_ids ids = messages_ids_find(arena, form);
	struct buf *out = arena_buf(arena, 4096);
	struct span seen[10];
	size_t nseen = 0;

	for (size_t i = 0; i < form->nturns; i++) {
		if (i > 0)
			buf_char(out, ' ');
		for (size_t k = 0; k < form->turns[i].nparts; k++) {
			struct span id = form->turns[i].parts[k].call.id;
			struct span sent = messages_ids_of(arena, &ids, i, id);
			size_t at = 0;

			if (text_equal(sent, id)) {
				buf_span(out, id);
				continue;
			}
			while (at < nseen && !text_equal(seen[at], sent))
				at++;
			if (at == nseen)
				seen[nseen++] = sent;
			buf_print(out, "%zu", at);
		}
	}
	return arena_z(arena, buf_text(out));
}

static void
test_rows(void **state)
{
	static const struct {
		const char *what, *turns, *want;
	} rows[] = {
	    {"none", "", ""},
	    {"one", "a", "a"},
	    {"all of their own", "abc d  ef", "abc d  ef"},
	    {"the second of two", "a a", "a 0"},
	    {"each further one is another", "a a a", "a 0 1"},
	    {"among others", "xab cad a", "xab c0d 1"},
	    {"two of them, in any order", "ab ba", "ab 01"},
	    {"that no host takes", ": x", "0 x"},
	    {"and again", ": :", "0 1"},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct form form = form_of(rows[i].turns);
		const char *got = sent_of(&form);

		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s: got \"%s\", want \"%s\"", rows[i].what, got, rows[i].want);
	}
}

/* What comes later changes nothing of what was: prompts stay the same. */
static void
test_stays(void **state)
{
	struct form some = form_of("a a"), more = form_of("a a ba a");
	struct messages_ids few = messages_ids_find(arena, &some);
	struct messages_ids all = messages_ids_find(arena, &more);

	(void)state;
	assert_int_equal(few.n, 1);
	assert_int_equal(all.n, 3);
	assert_true(text_equal(few.list[0].sent, all.list[0].sent));
	assert_true(text_equal(messages_ids_of(arena, &all, 0, SPAN("b")), SPAN("b")));
	for (size_t i = 0; i < all.n; i++)
		for (size_t k = 0; k < i; k++)
			assert_false(text_equal(all.list[i].sent, all.list[k].sent));
}

/* One was told to a client of this API already, the other is as its host gave it. */
static void
test_alike(void **state)
{
	struct form form = form_of(": x");
	struct messages_ids ids;

	(void)state;
	form.turns[1].parts[0].call.id = form_id(arena, FORM_MESSAGES, SPAN(":"));
	ids = messages_ids_find(arena, &form);
	assert_int_equal(ids.n, 1);
	assert_int_equal(ids.list[0].turn, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_rows, in_arena_begin, in_arena_end),
	    cmocka_unit_test_setup_teardown(test_stays, in_arena_begin, in_arena_end),
	    cmocka_unit_test_setup_teardown(test_alike, in_arena_begin, in_arena_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
