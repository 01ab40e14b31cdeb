#include "lib/letters.h"

#include <stdlib.h>
#include <string.h>

#define MB ((size_t)1 << 20)

struct span
letters_text(struct arena *arena, size_t units)
{
	struct buf *b = arena_buf(arena, 64 * MB);

	for (size_t i = 0; i < units * LETTERS_WORDS; i++)
		buf_z(b, "word ");
	buf_char(b, '.');
	return buf_text(b);
}

void
letters_call(struct arena *arena, struct form_turn *turn, const char *id, struct span text)
{
	struct form_part *part = form_add_part(arena, turn, FORM_CALL);

	part->call.id = text_span(arena_print(arena, "%s%zu", id, turn->at));
	part->call.name = SPAN("f");
	part->call.arguments =
	    text_span(arena_print(arena, "{\"a\":\"%.*s\"}", (int)text.n, text.p));
}

void
letters_results(
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

void
letters_turn(struct arena *arena, struct form *form, char letter, struct span text)
{
	struct form_turn *turn = form_add_turn(arena, form, role_of(letter), form->nturns);

	if (letter == 'r') {
		letters_results(arena, turn, turn - 1, text);
		return;
	}
	if (letter == 'e')
		form_add_part(arena, turn, FORM_TEXT)->text = SPAN("");
	else if (letter != 'c' && letter != 'C')
		form_add_part(arena, turn, FORM_TEXT)->text = text;
	if (letter == 'c' || letter == 'C' || letter == 't')
		letters_call(arena, turn, "call_", text);
	if (letter == 'C')
		letters_call(arena, turn, "more_", text);
}

struct form
letters_form(struct arena *arena, const char *letters)
{
	struct form form = {.max_output = -1, .thinking_budget = -1};

	for (const char *p = letters; *p != '\0';) {
		char letter = *p++, *end;
		unsigned long units = strtoul(p, &end, 10);

		letters_turn(arena, &form, letter, letters_text(arena, end == p ? 1 : units));
		for (p = end; *p == ' '; p++)
			;
	}
	return form;
}

bool
letters_is_cut(struct span is, struct span was)
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
