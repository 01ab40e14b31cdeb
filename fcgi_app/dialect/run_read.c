#include "dialect/form.h"

#include "dialect/chat_parts.h"

#include <stdio.h>
#include <string.h>

#define CONTENT "messages[0].content" /* as the readers of chat call it */

/* The client knows it as "input". */
static void
rename_place(struct why *why)
{
	char *at = strstr(why->text, CONTENT);
	struct why named;

	if (at == NULL)
		return;
	snprintf(named.text, sizeof named.text, "%.*sinput%s", (int)(at - why->text), why->text,
	    at + sizeof CONTENT - 1);
	*why = named;
}

static enum err
read_input(struct arena *arena, const struct scan_value *input, struct form *form, struct why *why)
{
	struct chat_reader r = {.arena = arena, .form = form, .why = why};
	struct form_turn *turn = form_add_turn(arena, form, FORM_USER, 0);
	enum err err = chat_parts_read(&r, input, turn);

	if (err == ERR_OK)
		err = form_check(form, why);
	if (err != ERR_OK)
		rename_place(why);
	return err;
}

/* What says where it goes is for others to read. */
static bool
is_known(struct span name)
{
	return scan_is(name, "model") || scan_is(name, "session_id") || scan_is(name, "task_type");
}

/* Of chat it would be given on, where a host speaks that: the dot keeps it from that. */
static void
add_extra(struct arena *arena, struct form *form, struct span name, struct span raw)
{
	const struct span parts[] = {SPAN("run."), scan_string(arena, name)};

	form_add_extra(arena, form, text_span(arena_join(arena, parts, NELEM(parts))), raw);
}

enum err
form_read_run(struct arena *arena, struct span body, struct form *out, struct why *why)
{
	struct scan_value value, input = {.type = SCAN_ABSENT};
	struct span name;
	size_t at = 0;

	*out = (struct form){.from = FORM_CHAT, .max_output = -1, .thinking_budget = -1};
	body = text_trim(body);
	while (scan_next(body, &at, &name, &value))
		if (scan_is(name, "input"))
			input = value;
		else if (scan_is(name, "stream"))
			out->stream = value.type == SCAN_TRUE;
		else if (value.type != SCAN_NULL && !is_known(name))
			add_extra(arena, out, name, value.raw);
	return read_input(arena, &input, out, why);
}
