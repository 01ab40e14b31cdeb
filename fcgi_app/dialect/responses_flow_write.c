#include "dialect/responses_flow_out.h"

static void
start(struct flow_writer *w, struct buf *out)
{
	struct responses_object o = {.status = "in_progress"};

	if (w->started)
		return;
	w->started = true;
	responses_flow_object(w, "response.created", &o, out);
	responses_flow_object(w, "response.in_progress", &o, out);
}

static void
on_text(struct flow_writer *w, struct span text, bool refusal, struct buf *out)
{
	struct responses_flow_out *item;

	if (text.n == 0)
		return;
	item = responses_flow_open(w, RESPONSES_MESSAGE, out);
	if (item->text != NULL && responses_flow_part(item)->refusal != refusal)
		responses_flow_end_part(w, item, out);
	if (item->text == NULL)
		responses_flow_begin_part(w, item, refusal, out);
	buf_span(item->text, text);
	responses_flow_piece(
	    w, item, refusal ? "response.refusal.delta" : "response.output_text.delta", text, out);
}

static void
on_thought(struct flow_writer *w, struct span text, struct buf *out)
{
	struct responses_flow_out *item;

	if (text.n == 0)
		return;
	item = responses_flow_open(w, RESPONSES_REASONING, out);
	if (item->text == NULL)
		responses_flow_begin_part(w, item, false, out);
	buf_span(item->text, text);
	responses_flow_piece(w, item, "response.reasoning_summary_text.delta", text, out);
}

static void
on_break(struct flow_writer *w, struct buf *out)
{
	if (w->open == NULL)
		return;
	/* another block of text is another part of the message; another thought another item */
	if (w->open->out.kind == RESPONSES_MESSAGE)
		responses_flow_end_part(w, w->open, out);
	else
		responses_flow_end_open(w, "completed", out);
}

static void
on_seal(struct flow_writer *w, struct span seal, bool redacted, struct buf *out)
{
	if (redacted || w->open == NULL || w->open->out.kind != RESPONSES_REASONING) {
		if (!w->job.wants_seals || seal.n == 0)
			return;
		responses_flow_end_open(w, "completed", out);
		responses_flow_open(w, RESPONSES_REASONING, out);
	}
	if (w->job.wants_seals)
		w->open->out.seal = arena_copy(w->job.arena, seal);
	if (redacted)
		w->open->out.seal = text_span(arena_join(
		    w->job.arena, (const struct span[]){SPAN(RESPONSES_REDACTED), seal}, 2));
	responses_flow_end_open(w, "completed", out);
}

static void
on_call(struct flow_writer *w, const struct flow *step, struct buf *out)
{
	struct arena *arena = w->job.arena;
	struct responses_item call = {.kind = step->custom ? RESPONSES_CUSTOM : RESPONSES_CALL,
	    .name = arena_copy(arena, step->name),
	    .namespace = arena_copy(arena, step->namespace)};
	struct responses_flow_out *item;
	bool wrapped;

	responses_flow_end_open(w, "completed", out);
	responses_flow_end_waiting(w, out);
	responses_restore(w->job.loss, &call, &wrapped);
	item = responses_flow_new(w, call.kind, "in_progress");
	item->wrapped = wrapped;
	item->out.call_id = arena_copy(arena, step->id);
	item->out.name = call.name;
	item->out.namespace = call.namespace;
	item->out.arguments = (struct span){"", 0};
	item->text = arena_buf(arena, SIZE_MAX / 4);
	w->calls = responses_flow_grow(arena, w->calls, w->ncalls, &w->cap_calls, sizeof *w->calls);
	w->calls[w->ncalls++] = item->index;
	responses_flow_put_item(w, item, "response.output_item.added", out);
}

static struct responses_flow_out *
call_of(const struct flow_writer *w, size_t call)
{
	struct responses_flow_out *item = call < w->ncalls ? w->items[w->calls[call]] : NULL;

	return item == NULL || item->done ? NULL : item;
}

static void
on_arguments(struct flow_writer *w, const struct flow *step, struct buf *out)
{
	struct responses_flow_out *item = call_of(w, step->call);

	if (item == NULL || step->text.n == 0)
		return;
	buf_span(item->text, step->text);
	if (!item->wrapped)
		responses_flow_piece(w, item,
		    item->out.kind == RESPONSES_CUSTOM ? "response.custom_tool_call_input.delta"
		                                       : "response.function_call_arguments.delta",
		    step->text, out);
}

/* Whether it ended or was cut off only the finish tells, if nothing else comes before that. */
static void
on_call_end(struct flow_writer *w, size_t call, struct buf *out)
{
	struct responses_flow_out *item = call_of(w, call);

	if (item == NULL || item == w->waiting)
		return;
	responses_flow_end_waiting(w, out);
	w->waiting = item;
}

static void
on_citation(struct flow_writer *w, struct span raw, struct buf *out)
{
	struct responses_flow_out *item = w->open;
	struct emit e;

	if (item == NULL || item->text == NULL || item->out.kind != RESPONSES_MESSAGE)
		return;
	if (item->citations == NULL)
		item->citations = arena_buf(w->job.arena, SIZE_MAX / 4);
	buf_char(item->citations, item->ncitations == 0 ? '[' : ',');
	emit_init(&e, item->citations);
	responses_emit_citation(&e, NULL, raw);
	responses_flow_begin_of(w, item, "response.output_text.annotation.added", out);
	emit_i64(&w->e, "content_index", (int64_t)item->out.nparts - 1);
	emit_i64(&w->e, "annotation_index", (int64_t)item->ncitations++);
	responses_emit_citation(&w->e, "annotation", raw);
	responses_flow_close(w);
}

/* What is open ends here, in the order of the output. */
static void
on_finish(struct flow_writer *w, enum flow_finish how, struct buf *out)
{
	const char *reason, *status = responses_status(how, &reason);

	w->finished = true;
	w->finish = how;
	w->waiting = NULL;
	for (size_t i = 0; i < w->nitems; i++) {
		struct responses_flow_out *item = w->items[i];

		if (item->done)
			continue;
		if (item == w->open)
			responses_flow_end_open(w, status, out);
		else
			responses_flow_end_call(w, item, status, out);
	}
}

static void
on_end(struct flow_writer *w, struct buf *out)
{
	struct responses_object o = {.status = NULL};

	if (!w->finished)
		on_finish(w, FLOW_STOP, out);
	o.status = responses_status(w->finish, &o.incomplete_reason);
	o.output = responses_flow_output(w);
	responses_flow_object(
	    w, o.incomplete_reason == NULL ? "response.completed" : "response.incomplete", &o, out);
}

static struct flow_writer *
begin(const struct flow_job *job)
{
	struct flow_writer *w = arena_alloc(job->arena, sizeof *w);

	w->job = *job;
	w->id = job->response_id;
	if (w->id.n == 0)
		w->id = responses_id(job->arena, "resp_", job->id, 0);
	return w;
}

static void
write_step(struct flow_writer *w, const struct flow *step, struct buf *out)
{
	start(w, out);
	switch (step->kind) {
	case FLOW_START: break;
	case FLOW_TEXT: on_text(w, step->text, false, out); break;
	case FLOW_REFUSAL: on_text(w, step->text, true, out); break;
	case FLOW_THOUGHT: on_thought(w, step->text, out); break;
	case FLOW_SEAL: on_seal(w, step->text, false, out); break;
	case FLOW_REDACTED: on_seal(w, step->text, true, out); break;
	case FLOW_CALL: on_call(w, step, out); break;
	case FLOW_ARGUMENTS: on_arguments(w, step, out); break;
	case FLOW_CALL_END: on_call_end(w, step->call, out); break;
	case FLOW_CITATION: on_citation(w, step->text, out); break;
	case FLOW_BREAK: on_break(w, out); break;
	case FLOW_FINISH: on_finish(w, step->finish, out); break;
	case FLOW_USAGE:
		w->usage = *step->usage;
		w->has_usage = true;
		break;
	case FLOW_END: on_end(w, out); break;
	}
}

static void
write_error(struct flow_writer *w, int status, const char *type, const char *code,
    struct span message, struct buf *out)
{
	struct responses_object o = {.status = "failed",
	    .error_code = responses_error_code(status, code),
	    .error_message = message};

	(void)type;
	if (w->started) {
		o.output = responses_flow_output(w);
		responses_flow_object(w, "response.failed", &o, out);
		return;
	}
	responses_flow_begin(w, "error", out);
	emit_z(&w->e, "code", o.error_code);
	emit_text(&w->e, "message", message);
	emit_null(&w->e, "param");
	responses_flow_close(w);
}

const struct flow_writer_kind flow_write_responses = {
    .begin = begin,
    .step = write_step,
    .error = write_error,
};
