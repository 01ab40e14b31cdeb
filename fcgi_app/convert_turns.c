#include "convert_turns.h"

#include "dialect/edit.h"
#include "dialect/messages.h"
#include "dialect/messages_ids.h"

#include <string.h>

/* What became of the parts of one message in the client's list. */
enum fate { FATE_INTACT = 1, FATE_CHANGED = 2, FATE_GONE = 4 };

struct turns {
	struct convert *c;
	const struct convert_target *target;
	struct why *why;
	struct span *items; /* of the client's list, raw */
	unsigned char *fates;
	struct messages_ids ids; /* of `say` */
	size_t n, next;          /* the first that was neither written nor passed over */
	struct buf *list, *system;
	struct form run; /* turns that wait to be written */
};

static const struct scan_value *
list_of(const struct convert *c)
{
	const struct dialect_request *read = &c->rq->read;

	return c->rq->endpoint->wire == FORM_RESPONSES ? &read->input : &read->messages;
}

static void
find_items(struct turns *t)
{
	struct span list = list_of(t->c)->raw, none;
	struct scan_value item;
	size_t at = 0, n = 0;

	while (scan_next(list, &at, &none, &item))
		n++;
	t->items = arena_alloc(t->c->arena, (n + 1) * sizeof *t->items);
	t->fates = arena_alloc(t->c->arena, n + 1);
	for (at = 0; t->n < n && scan_next(list, &at, &none, &item);)
		t->items[t->n++] = item.raw;
}

/* ---- what became of what was sent ---- */

static void
mark(struct turns *t, size_t at, enum fate fate)
{
	if (at < t->n)
		t->fates[at] |= (unsigned char)fate;
}

static bool
is_shortened(const struct form_part *was, const struct form_part *is)
{
	return was->kind == is->kind && was->at == is->at && was->in == is->in && was->of == is->of;
}

/* `is` NULL: it went. */
static void
mark_turn(struct turns *t, const struct form_turn *was, const struct form_turn *is)
{
	size_t k = 0;

	if (was->nparts == 0)
		mark(t, was->at, is != NULL ? FATE_INTACT : FATE_GONE);
	for (size_t i = 0; i < was->nparts; i++) {
		const struct form_part *part = &was->parts[i];

		if (is == NULL || k == is->nparts) {
			mark(t, part->at, FATE_GONE);
		} else if (part == &is->parts[k] ||
		           memcmp(part, &is->parts[k], sizeof *part) == 0) {
			mark(t, part->at, FATE_INTACT);
			k++;
		} else if (is_shortened(part, &is->parts[k])) {
			mark(t, part->at, FATE_CHANGED);
			k++;
		} else {
			mark(t, part->at, FATE_GONE);
		}
	}
}

/* As the writer has it, of a call that is kept. */
static struct span
id_of(struct turns *t, const struct form_turn *calls, struct span id)
{
	struct arena *arena = t->c->arena;
	enum form_wire wire = t->c->rq->endpoint->wire;

	if (wire != FORM_MESSAGES)
		return form_id(arena, wire, id);
	return messages_ids_of(arena, &t->ids, (size_t)(calls - t->c->say->turns), id);
}

/* Results of kept calls must bear the ids that those are written with. */
static void
mark_results(struct turns *t, const struct form_turn *was, const struct form_turn *is)
{
	if (was->role != FORM_TOOL || is == NULL || is == t->c->say->turns ||
	    is[-1].at != FORM_AT_KEPT)
		return;
	for (size_t i = 0; i < was->nparts; i++) {
		struct span id = was->parts[i].result.id;

		if (!text_equal(id_of(t, is - 1, id), id))
			mark(t, was->parts[i].at, FATE_CHANGED);
	}
}

static void
mark_all(struct turns *t)
{
	const struct form *sent = &t->c->form, *say = t->c->say;
	size_t k = 0;

	if (t->c->rq->endpoint->wire == FORM_MESSAGES)
		t->ids = messages_ids_find(t->c->arena, say);
	for (size_t i = 0; i < sent->nturns; i++) {
		const struct form_turn *was = &sent->turns[i], *is = NULL;

		while (k < say->nturns && say->turns[k].at == FORM_AT_KEPT)
			k++;
		if (k < say->nturns && say->turns[k].at == was->at &&
		    say->turns[k].role == was->role)
			is = &say->turns[k++];
		mark_turn(t, was, is);
		mark_results(t, was, is);
	}
}

/* ---- the new list ---- */

static void
put_comma(struct buf *out)
{
	if (out->n > 0 && out->p[out->n - 1] != '[')
		buf_char(out, ',');
}

/* What is inside of an array's brackets. */
static struct span
inside(struct span array)
{
	return text_trim((struct span){array.p + 1, array.n - 2});
}

static void
put_inside(struct buf *out, const struct scan_value *array)
{
	struct span text;

	if (array->type != SCAN_ARRAY)
		return;
	text = inside(array->raw);
	if (text.n == 0)
		return;
	put_comma(out);
	buf_span(out, text);
}

/* What waits is written. */
static enum err
flush(struct turns *t)
{
	static const char *const paths[] = {"messages", "input", "system"};
	struct form_target to = convert_form_target(t->c, t->target);
	struct buf *out;
	struct scan_value v[NELEM(paths)];
	enum err err;

	if (t->run.nturns == 0)
		return ERR_OK;
	out = arena_buf(t->c->arena, convert_room(t->c));
	to.piece = true;
	err = flow_wires[to.wire].write(t->c->arena, &t->run, &to, out, &t->c->way.loss, t->why);
	t->run.nturns = 0;
	if (err != ERR_OK)
		return err;
	edit_surrogates(out->p, out->n);
	if (out->over || scan_pick(buf_text(out), paths, v, NELEM(paths), NULL) != ERR_OK) {
		err_why(t->why, "the conversation grows too large");
		return ERR_BAD_INPUT;
	}
	put_inside(t->list, to.wire == FORM_RESPONSES ? &v[1] : &v[0]);
	put_inside(t->system, &v[2]);
	return ERR_OK;
}

static bool
is_as_sent(const struct turns *t, size_t at)
{
	return t->fates[at] == 0 || t->fates[at] == FATE_INTACT;
}

/* The client's own messages up to this one, without those that changed or went. */
static enum err
pass_items(struct turns *t, size_t at)
{
	for (; t->next <= at && t->next < t->n; t->next++) {
		if (!is_as_sent(t, t->next))
			continue;
		if (flush(t) != ERR_OK)
			return ERR_BAD_INPUT;
		put_comma(t->list);
		buf_span(t->list, t->items[t->next]);
	}
	return ERR_OK;
}

static void
wait_turn(struct turns *t, const struct form_turn *turn, size_t from, size_t to)
{
	size_t n = t->run.nturns;
	struct form_turn *one = &t->run.turns[n];

	/* results of one turn stay together: they are written by the calls before them */
	if (n > 0 && from > 0 && one[-1].parts + one[-1].nparts == turn->parts + from) {
		one[-1].nparts += to - from;
		return;
	}
	t->run.nturns++;
	*one = *turn;
	one->parts = turn->nparts > 0 ? turn->parts + from : NULL;
	one->nparts = to - from;
}

/* A turn that was sent may be of several messages, and a message of several turns. */
static enum err
say_sent(struct turns *t, const struct form_turn *turn)
{
	size_t from = 0, to;

	do {
		size_t at = turn->nparts > 0 ? turn->parts[from].at : turn->at;

		for (to = from; to < turn->nparts && turn->parts[to].at == at; to++)
			;
		/* what is not in the list stays where it is */
		if (at < t->n && pass_items(t, at) != ERR_OK)
			return ERR_BAD_INPUT;
		if (at < t->n && !is_as_sent(t, at))
			wait_turn(t, turn, from, to);
		from = to;
	} while (from < turn->nparts);
	return ERR_OK;
}

/* Kept texts that lead are no part of the list of messages. */
static enum err
say_leading(struct turns *t, size_t *at)
{
	const struct form *say = t->c->say;

	if (t->c->rq->endpoint->wire != FORM_MESSAGES)
		return ERR_OK;
	*at = form_leading(say);
	for (size_t k = 0; k < *at; k++) {
		if (say->turns[k].at == FORM_AT_KEPT)
			wait_turn(t, &say->turns[k], 0, say->turns[k].nparts);
		else if (say_sent(t, &say->turns[k]) != ERR_OK)
			return ERR_BAD_INPUT;
	}
	return flush(t);
}

static enum err
say_all(struct turns *t)
{
	const struct form *say = t->c->say;
	size_t k = 0;
	enum err err = say_leading(t, &k);

	for (; k < say->nturns && err == ERR_OK; k++)
		if (say->turns[k].at == FORM_AT_KEPT)
			wait_turn(t, &say->turns[k], 0, say->turns[k].nparts);
		else
			err = say_sent(t, &say->turns[k]);
	if (err == ERR_OK)
		err = flush(t);
	if (err == ERR_OK && t->n > 0)
		err = pass_items(t, t->n - 1);
	return err == ERR_OK ? flush(t) : err;
}

/* ---- the body ---- */

/* The client's system text with what is kept behind it. */
static struct span
join_system(struct turns *t, const struct scan_value *own)
{
	struct buf *out = arena_buf(t->c->arena, own->raw.n + t->system->n + 64);

	buf_char(out, '[');
	if (own->type == SCAN_STRING && own->raw.n > 2) {
		buf_z(out, "{\"type\":\"text\",\"text\":");
		buf_span(out, own->raw);
		buf_char(out, '}');
	}
	put_inside(out, own);
	put_comma(out);
	buf_span(out, buf_text(t->system));
	buf_char(out, ']');
	return buf_text(out);
}

static struct edit
edit_system(struct turns *t)
{
	static const char *const path = "system";
	struct span body = t->c->rq->read.body;
	struct scan_value own;

	/* a name that stands twice was refused when the form was read */
	if (scan_pick(body, &path, &own, 1, NULL) != ERR_OK)
		own.type = SCAN_ABSENT;
	if (own.type != SCAN_ABSENT)
		return (struct edit){own.raw, join_system(t, &own)};
	own.raw.n = 0;
	return (struct edit){{text_trim(body).p + 1, 0},
	    text_span(arena_join(t->c->arena,
	        (const struct span[]){SPAN("\"system\":"), join_system(t, &own), SPAN(",")}, 3))};
}

/* A host of messages wants tools where there are calls, also where the client offers none any more. */
static size_t
edit_tool(const struct turns *t, struct edit *edit_out)
{
	static const char *const paths[] = {"tools", "tool_choice"};
	const struct convert *c = t->c;
	struct span body = c->rq->read.body;
	struct scan_value own[NELEM(paths)];

	if (c->rq->endpoint->wire != FORM_MESSAGES || c->form.ntools > 0 ||
	    !messages_wants_tool(c->say->turns, c->say->nturns) ||
	    scan_pick(body, paths, own, NELEM(paths), NULL) != ERR_OK ||
	    own[0].type != SCAN_ABSENT || own[1].type != SCAN_ABSENT)
		return 0;
	*edit_out = (struct edit){{text_trim(body).p + 1, 0},
	    SPAN("\"tools\":" MESSAGES_TOOL ",\"tool_choice\":" MESSAGES_TOOL_CHOICE ",")};
	return 1;
}

static enum err
build(struct turns *t, struct dialect_request *read_out)
{
	const struct convert *c = t->c;
	const struct scan_value *list = list_of(c);
	struct edit edits[3];
	size_t n = 0, room = c->rq->read.body.n + t->list->n + t->system->n + 512;
	struct buf *out;

	buf_char(t->list, ']');
	if (t->list->over || t->system->over) {
		err_why(t->why, "the conversation grows too large");
		return ERR_BAD_INPUT;
	}
	edits[n++] = (struct edit){list->raw, buf_text(t->list)};
	if (t->system->n > 0) {
		edits[n] = edit_system(t);
		room += edits[n++].text.n;
	}
	n += edit_tool(t, &edits[n]);
	out = arena_buf(c->arena, room);
	edit_apply(c->rq->read.body, edits, n, out);
	return dialect_read(c->rq->endpoint->dialect, buf_text(out), read_out, t->why);
}

enum err
convert_turns(struct convert *c, const struct convert_target *target,
    struct dialect_request *read_out, struct why *why)
{
	size_t room = convert_room(c), parts = 0;
	struct turns t = {
	    .c = c,
	    .target = target,
	    .why = why,
	    .list = arena_buf(c->arena, room),
	    .system = arena_buf(c->arena, room),
	    .run = {.from = c->form.from,
	        .max_output = -1,
	        .effort = c->form.effort,
	        .thinking_budget = c->form.thinking_budget},
	};

	for (size_t i = 0; i < c->say->nturns; i++)
		parts += c->say->turns[i].nparts + 1;
	t.run.turns = arena_alloc(c->arena, (parts + 1) * sizeof *t.run.turns);
	buf_char(t.list, '[');
	find_items(&t);
	mark_all(&t);
	if (say_all(&t) != ERR_OK)
		return ERR_BAD_INPUT;
	return build(&t, read_out);
}
