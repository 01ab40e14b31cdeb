#include "dialect/responses_flow_out.h"

#include <string.h>

/* A list of pointers or places that doubles. */
void *
responses_flow_grow(struct arena *arena, void *old, size_t n, size_t *cap, size_t size)
{
	void *list = old;

	if (n == *cap) {
		*cap = n == 0 ? 8 : n * 2;
		list = arena_alloc(arena, *cap * size);
		if (n > 0)
			memcpy(list, old, n * size);
	}
	return list;
}

void
responses_flow_begin(struct flow_writer *w, const char *type, struct buf *out)
{
	buf_z(out, "event: ");
	buf_z(out, type);
	buf_z(out, "\ndata: ");
	emit_init(&w->e, out);
	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", type);
	emit_i64(&w->e, "sequence_number", w->sequence++);
}

void
responses_flow_close(struct flow_writer *w)
{
	emit_end(&w->e);
	buf_z(w->e.out, "\n\n");
}

/* An event about an item. */
void
responses_flow_begin_of(
    struct flow_writer *w, const struct responses_flow_out *item, const char *type, struct buf *out)
{
	responses_flow_begin(w, type, out);
	emit_text(&w->e, "item_id", item->out.id);
	emit_i64(&w->e, "output_index", (int64_t)item->index);
}

struct span
responses_flow_output(const struct flow_writer *w)
{
	struct buf *list = arena_buf(w->job.arena, SIZE_MAX / 4);

	buf_char(list, '[');
	for (size_t i = 0; i < w->nitems; i++) {
		if (!w->items[i]->done)
			continue;
		if (list->n > 1)
			buf_char(list, ',');
		buf_span(list, w->items[i]->json);
	}
	buf_char(list, ']');
	return buf_text(list);
}

/* An event that carries the response object. */
void
responses_flow_object(
    struct flow_writer *w, const char *type, struct responses_object *o, struct buf *out)
{
	o->job = &w->job;
	o->id = w->id;
	o->usage = w->has_usage ? &w->usage : NULL;
	responses_flow_begin(w, type, out);
	responses_emit_object(&w->e, "response", o);
	responses_flow_close(w);
}

struct responses_flow_out *
responses_flow_new(struct flow_writer *w, enum responses_kind kind, const char *status)
{
	static const char *const prefixes[] = {
	    [RESPONSES_MESSAGE] = "msg_",
	    [RESPONSES_REASONING] = "rs_",
	    [RESPONSES_CALL] = "fc_",
	    [RESPONSES_CUSTOM] = "ctc_",
	};
	struct responses_flow_out *item = arena_alloc(w->job.arena, sizeof *item);

	w->items = responses_flow_grow(
	    w->job.arena, w->items, w->nitems, &w->cap, sizeof(struct responses_flow_out *));
	item->index = w->nitems;
	item->out = (struct responses_item){.kind = kind,
	    .status = status,
	    .id = responses_id(w->job.arena, prefixes[kind], w->job.id, item->index)};
	w->items[w->nitems++] = item;
	return item;
}

void
responses_flow_put_item(
    struct flow_writer *w, const struct responses_flow_out *item, const char *type, struct buf *out)
{
	responses_flow_begin(w, type, out);
	emit_i64(&w->e, "output_index", (int64_t)item->index);
	if (item->done)
		emit_raw(&w->e, "item", item->json);
	else
		responses_emit_item(&w->e, "item", &item->out);
	responses_flow_close(w);
}

static void
finish_item(struct flow_writer *w, struct responses_flow_out *item, struct buf *out)
{
	struct buf *json = arena_buf(w->job.arena, SIZE_MAX / 4);
	struct emit e;

	emit_init(&e, json);
	responses_emit_item(&e, NULL, &item->out);
	item->json = buf_text(json);
	item->done = true;
	responses_flow_put_item(w, item, "response.output_item.done", out);
}

/* The part of a message, or the summary, that is open. */
struct responses_part *
responses_flow_part(const struct responses_flow_out *item)
{
	return &item->parts[item->out.nparts - 1];
}

void
responses_flow_begin_part(
    struct flow_writer *w, struct responses_flow_out *item, bool refusal, struct buf *out)
{
	bool message = item->out.kind == RESPONSES_MESSAGE;

	item->parts = responses_flow_grow(
	    w->job.arena, item->parts, item->out.nparts, &item->cap, sizeof *item->parts);
	item->parts[item->out.nparts++] =
	    (struct responses_part){.refusal = refusal, .text = {"", 0}};
	item->out.parts = item->parts;
	item->text = arena_buf(w->job.arena, SIZE_MAX / 4);
	item->citations = NULL;
	item->ncitations = 0;
	responses_flow_begin_of(w, item,
	    message ? "response.content_part.added" : "response.reasoning_summary_part.added", out);
	if (message) {
		emit_i64(&w->e, "content_index", (int64_t)item->out.nparts - 1);
		responses_emit_part(&w->e, "part", responses_flow_part(item));
	} else {
		emit_i64(&w->e, "summary_index", 0);
		emit_raw(&w->e, "part", SPAN("{\"type\":\"summary_text\",\"text\":\"\"}"));
	}
	responses_flow_close(w);
}

static void
end_said(struct flow_writer *w, struct responses_flow_out *item, struct buf *out)
{
	struct responses_part *part = responses_flow_part(item);
	int64_t place = (int64_t)item->out.nparts - 1;

	responses_flow_begin_of(
	    w, item, part->refusal ? "response.refusal.done" : "response.output_text.done", out);
	emit_i64(&w->e, "content_index", place);
	emit_text(&w->e, part->refusal ? "refusal" : "text", part->text);
	if (!part->refusal)
		emit_raw(&w->e, "logprobs", SPAN("[]"));
	responses_flow_close(w);
	responses_flow_begin_of(w, item, "response.content_part.done", out);
	emit_i64(&w->e, "content_index", place);
	responses_emit_part(&w->e, "part", part);
	responses_flow_close(w);
}

static void
end_summary(struct flow_writer *w, struct responses_flow_out *item, struct buf *out)
{
	struct span text = responses_flow_part(item)->text;

	responses_flow_begin_of(w, item, "response.reasoning_summary_text.done", out);
	emit_i64(&w->e, "summary_index", 0);
	emit_text(&w->e, "text", text);
	responses_flow_close(w);
	responses_flow_begin_of(w, item, "response.reasoning_summary_part.done", out);
	emit_i64(&w->e, "summary_index", 0);
	emit_object(&w->e, "part");
	emit_z(&w->e, "type", "summary_text");
	emit_text(&w->e, "text", text);
	emit_end(&w->e);
	responses_flow_close(w);
}

void
responses_flow_end_part(struct flow_writer *w, struct responses_flow_out *item, struct buf *out)
{
	if (item->text == NULL)
		return;
	responses_flow_part(item)->text = buf_text(item->text);
	if (item->citations != NULL) {
		buf_char(item->citations, ']');
		responses_flow_part(item)->annotations = buf_text(item->citations);
	}
	item->text = NULL;
	if (item->out.kind == RESPONSES_MESSAGE)
		end_said(w, item, out);
	else
		end_summary(w, item, out);
}

/* The message or reasoning that is open is over. */
void
responses_flow_end_open(struct flow_writer *w, const char *status, struct buf *out)
{
	struct responses_flow_out *item = w->open;

	w->open = NULL;
	if (item == NULL)
		return;
	responses_flow_end_part(w, item, out);
	if (item->out.kind == RESPONSES_MESSAGE)
		item->out.status = status;
	finish_item(w, item, out);
}

void
responses_flow_piece(struct flow_writer *w, const struct responses_flow_out *item, const char *type,
    struct span text, struct buf *out)
{
	responses_flow_begin_of(w, item, type, out);
	if (item->out.kind == RESPONSES_MESSAGE)
		emit_i64(&w->e, "content_index", (int64_t)item->out.nparts - 1);
	else if (item->out.kind == RESPONSES_REASONING)
		emit_i64(&w->e, "summary_index", 0);
	emit_text(&w->e, "delta", text);
	if (item->out.kind == RESPONSES_MESSAGE && !responses_flow_part(item)->refusal)
		emit_raw(&w->e, "logprobs", SPAN("[]"));
	responses_flow_close(w);
}

void
responses_flow_end_call(
    struct flow_writer *w, struct responses_flow_out *item, const char *status, struct buf *out)
{
	bool custom = item->out.kind == RESPONSES_CUSTOM;
	const char *delta = custom ? "response.custom_tool_call_input.delta"
	                           : "response.function_call_arguments.delta";

	if (item->done)
		return;
	item->out.arguments = buf_text(item->text);
	if (item->wrapped)
		item->out.arguments = responses_unwrap(w->job.arena, item->out.arguments);
	else if (!custom && item->text->n == 0)
		item->out.arguments = SPAN("{}");
	if (item->out.arguments.n > 0 && (item->wrapped || item->text->n == 0))
		responses_flow_piece(w, item, delta, item->out.arguments, out);
	responses_flow_begin_of(w, item,
	    custom ? "response.custom_tool_call_input.done"
	           : "response.function_call_arguments.done",
	    out);
	if (!custom)
		emit_text(&w->e, "name", item->out.name);
	emit_text(&w->e, custom ? "input" : "arguments", item->out.arguments);
	responses_flow_close(w);
	item->out.status = status;
	finish_item(w, item, out);
}

void
responses_flow_end_waiting(struct flow_writer *w, struct buf *out)
{
	struct responses_flow_out *item = w->waiting;

	w->waiting = NULL;
	if (item != NULL)
		responses_flow_end_call(w, item, "completed", out);
}

/* The open item, if it is of that kind; else a new one. */
struct responses_flow_out *
responses_flow_open(struct flow_writer *w, enum responses_kind kind, struct buf *out)
{
	if (w->open != NULL && w->open->out.kind == kind)
		return w->open;
	responses_flow_end_open(w, "completed", out);
	responses_flow_end_waiting(w, out);
	w->open = responses_flow_new(w, kind, kind == RESPONSES_MESSAGE ? "in_progress" : NULL);
	responses_flow_put_item(w, w->open, "response.output_item.added", out);
	return w->open;
}
