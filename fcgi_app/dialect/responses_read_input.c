#include "dialect/responses_read_items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE SIZE_MAX
#define WHERE_BYTES 96

/* An item, until its turn comes. */
struct slot {
	struct span raw, call_id;
	size_t next; /* call: its first output; output: the next one of its call; else NONE */
	bool call, output;
	bool owned; /* an output whose call was found: it goes right behind that call's turn */
};

struct input {
	struct responses_reader *r;
	struct slot *slots;
	size_t n;
	size_t open;   /* turn of the assistant that may go on, or NONE */
	size_t *calls; /* slots of its calls */
	size_t ncalls;
	bool said; /* it has a message already */
};

static struct form_turn *
open_turn(struct input *in)
{
	return &in->r->form->turns[in->open];
}

static size_t
count_items(struct span input)
{
	struct scan_value v;
	struct span none;
	size_t at = 0, n = 0;

	while (scan_next(input, &at, &none, &v))
		n++;
	return n;
}

/* Know what each item is, before any memory is spent on what it holds. */
static enum err
read_slots(struct input *in, struct span input)
{
	struct responses_read_item item;
	struct scan_value v;
	struct span none;
	size_t at = 0;

	in->n = count_items(input);
	in->slots = arena_alloc(in->r->arena, (in->n + 1) * sizeof *in->slots);
	in->calls = arena_alloc(in->r->arena, (in->n + 1) * sizeof *in->calls);
	for (size_t i = 0; scan_next(input, &at, &none, &v); i++) {
		enum err err = responses_read_item(in->r, v.raw, i, &item);

		if (err != ERR_OK)
			return err;
		in->slots[i] = (struct slot){.raw = v.raw,
		    .next = NONE,
		    .call = item.kind->what == RESPONSES_READ_A_CALL,
		    .output = item.kind->what == RESPONSES_READ_A_RESULT};
		if (in->slots[i].call || in->slots[i].output)
			in->slots[i].call_id = responses_read_call_id(in->r, &item);
	}
	return ERR_OK;
}

static int
compare_slots(const void *left, const void *right)
{
	const struct slot *a = *(const struct slot *const *)left;
	const struct slot *b = *(const struct slot *const *)right;
	size_t n = a->call_id.n < b->call_id.n ? a->call_id.n : b->call_id.n;
	int order = n == 0 ? 0 : memcmp(a->call_id.p, b->call_id.p, n);

	if (order == 0)
		order = (a->call_id.n > b->call_id.n) - (a->call_id.n < b->call_id.n);
	return order != 0 ? order : (a > b) - (a < b);
}

/* An output belongs to the last call before it that has its id: some clients count from 0 anew. */
static void
pair_slots(struct input *in)
{
	const struct slot **sorted = arena_alloc(in->r->arena, (in->n + 1) * sizeof *sorted);
	size_t n = 0, last = NONE;
	bool call = false;

	for (size_t i = 0; i < in->n; i++)
		if (in->slots[i].call || in->slots[i].output)
			sorted[n++] = &in->slots[i];
	qsort(sorted, n, sizeof *sorted, compare_slots);
	for (size_t i = 0; i < n; i++) {
		size_t slot = (size_t)(sorted[i] - in->slots);

		if (i == 0 || !text_equal(sorted[i - 1]->call_id, sorted[i]->call_id))
			call = false;
		if (in->slots[slot].call) {
			call = true;
		} else if (call) {
			in->slots[slot].owned = true;
			in->slots[last].next = slot;
		}
		last = slot;
	}
}

/* The turn of the assistant is over: the results of its calls follow. */
static enum err
close_turn(struct input *in)
{
	struct responses_read_item item;
	struct form_turn *turn = NULL;
	enum err err = ERR_OK;

	for (size_t i = 0; i < in->ncalls; i++)
		for (size_t slot = in->slots[in->calls[i]].next; slot != NONE && err == ERR_OK;
		     slot = in->slots[slot].next) {
			if (turn == NULL)
				turn = form_add_turn(in->r->arena, in->r->form, FORM_TOOL, slot);
			err = responses_read_item(in->r, in->slots[slot].raw, slot, &item);
			if (err == ERR_OK)
				err = responses_read_result(in->r, &item, turn);
		}
	in->open = NONE;
	in->ncalls = 0;
	in->said = false;
	return err;
}

/* The assistant goes on, or begins. */
static struct form_turn *
assistant(struct input *in, size_t at)
{
	if (in->open == NONE) {
		form_add_turn(in->r->arena, in->r->form, FORM_ASSISTANT, at);
		in->open = in->r->form->nturns - 1;
	}
	return open_turn(in);
}

static enum err
read_said(struct input *in, const struct responses_read_item *item, const char *where)
{
	struct form_turn parts = {.at = item->at};
	struct form_turn *turn;
	enum err err = responses_read_parts(in->r, &parts, &item->v[RESPONSES_READ_CONTENT], where);

	/* a message without content is not worth a turn */
	if (err != ERR_OK || parts.nparts == 0)
		return err;
	if (in->said || in->ncalls > 0)
		err = close_turn(in);
	if (err != ERR_OK)
		return err;
	turn = assistant(in, item->at);
	for (size_t i = 0; i < parts.nparts; i++)
		*form_add_part(in->r->arena, turn, FORM_TEXT) = parts.parts[i];
	in->said = true;
	return ERR_OK;
}

static enum err
read_message(struct input *in, const struct responses_read_item *item)
{
	static const struct {
		const char *name;
		enum form_role role;
	} roles[] = {
	    {"user", FORM_USER},
	    {"system", FORM_SYSTEM},
	    {"developer", FORM_DEVELOPER},
	};
	const struct scan_value *role = &item->v[RESPONSES_READ_ROLE];
	char where[WHERE_BYTES];
	enum err err;

	snprintf(where, sizeof where, "input[%zu].content", item->at);
	if (role->type != SCAN_STRING)
		return responses_read_refuse(in->r, "'input[%zu].role' is missing", item->at);
	if (scan_is(role->raw, "assistant"))
		return read_said(in, item, where);
	for (size_t i = 0; i < NELEM(roles); i++) {
		struct form_turn *turn;

		if (!scan_is(role->raw, roles[i].name))
			continue;
		err = close_turn(in);
		if (err != ERR_OK)
			return err;
		turn = form_add_turn(in->r->arena, in->r->form, roles[i].role, item->at);
		return responses_read_parts(in->r, turn, &item->v[RESPONSES_READ_CONTENT], where);
	}
	return responses_read_refuse(in->r,
	    "'input[%zu].role' must be \"user\", \"assistant\", \"system\" or \"developer\"",
	    item->at);
}

/* One whose call is not there gets a turn of its own, which form_check() refuses by name. */
static enum err
read_output(struct input *in, const struct responses_read_item *item)
{
	enum err err = close_turn(in);

	if (err != ERR_OK || in->slots[item->at].owned)
		return err;
	return responses_read_result(
	    in->r, item, form_add_turn(in->r->arena, in->r->form, FORM_TOOL, item->at));
}

/* A thought belongs to what comes after it: behind a message or a call it begins another turn. */
static enum err
read_thought(struct input *in, const struct responses_read_item *item)
{
	struct form_turn parts = {.at = item->at};
	enum err err = ERR_OK;

	responses_read_thought(in->r, item, &parts);
	if (parts.nparts == 0)
		return ERR_OK;
	if (in->said || in->ncalls > 0)
		err = close_turn(in);
	if (err == ERR_OK)
		*form_add_part(in->r->arena, assistant(in, item->at), FORM_THOUGHT) =
		    parts.parts[0];
	return err;
}

static enum err
refuse_reference(struct input *in, const struct responses_read_item *item)
{
	return responses_read_refuse(in->r,
	    "'input[%zu]' is of the type '%s': its content is kept elsewhere, and this model's "
	    "provider cannot read it",
	    item->at, item->kind->type);
}

static enum err
read_one(struct input *in, const struct responses_read_item *item)
{
	char where[WHERE_BYTES];

	switch (item->kind->what) {
	case RESPONSES_READ_A_MESSAGE: return read_message(in, item);
	case RESPONSES_READ_A_CALL:
		in->calls[in->ncalls++] = item->at;
		return responses_read_call(in->r, item, assistant(in, item->at));
	case RESPONSES_READ_A_RESULT: return read_output(in, item);
	case RESPONSES_READ_A_THOUGHT: return read_thought(in, item);
	case RESPONSES_READ_SOME_TOOLS:
		snprintf(where, sizeof where, "input[%zu].tools", item->at);
		return responses_read_tools(in->r, &item->v[RESPONSES_READ_TOOLS], where);
	case RESPONSES_READ_A_REFERENCE: return refuse_reference(in, item);
	case RESPONSES_READ_OPAQUE:
		form_add_part(in->r->arena, assistant(in, item->at), FORM_OPAQUE)->text = item->raw;
		return ERR_OK;
	}
	return ERR_OK;
}

/* Turns of the assistant that came to hold nothing: reasoning that only named what a server kept. */
static void
drop_empty(struct form *form)
{
	size_t kept = 0;

	for (size_t i = 0; i < form->nturns; i++) {
		if (form->turns[i].role != FORM_USER && form->turns[i].nparts == 0)
			continue;
		form->turns[kept++] = form->turns[i];
	}
	form->nturns = kept;
}

enum err
responses_read_input(struct responses_reader *r, const struct scan_value *input)
{
	struct input in = {.r = r, .open = NONE};
	struct responses_read_item item;
	enum err err;

	if (input->type == SCAN_STRING) {
		struct form_turn *turn = form_add_turn(r->arena, r->form, FORM_USER, 0);

		return responses_read_parts(r, turn, input, "input");
	}
	if (input->type != SCAN_ARRAY)
		return responses_read_refuse(r, "'input' must be a string or an array of items");
	err = read_slots(&in, input->raw);
	if (err != ERR_OK)
		return err;
	pair_slots(&in);
	for (size_t i = 0; i < in.n && err == ERR_OK; i++) {
		err = responses_read_item(r, in.slots[i].raw, i, &item);
		if (err == ERR_OK)
			err = read_one(&in, &item);
	}
	if (err == ERR_OK)
		err = close_turn(&in);
	drop_empty(r->form);
	return err;
}
