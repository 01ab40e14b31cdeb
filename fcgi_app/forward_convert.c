#include "forward_transfer.h"

void
forward_begin_flow(struct transfer *t)
{
	if (!forward_converts(t))
		return;
	t->gathers = !t->task->stream;
	if (t->gathers || !t->task->convert->way.same)
		t->flow = convert_flow_begin(t->task->convert, t->gathers);
	else if (t->task->convert->gathers)
		t->listener = convert_flow_listen(t->task->convert);
}

/* Our keys are taken out of what is converted: an escape might hide them in what comes out. */
static void
feed(struct transfer *t, struct convert_flow *flow, const struct sse_event *event)
{
	struct sse_event clean = *event;

	clean.data = redact_apply(&t->redact, t->scratch, event->data);
	buf_clear(t->made);
	convert_flow_event(flow, &clean, t->made);
	t->out->answer = convert_flow_answer(flow);
	if (clean.data.p != event->data.p)
		arena_reset(t->scratch);
}

/* What is longer than any answer may be is not gathered to its end. */
void
forward_note(struct transfer *t, const struct sse_event *event, enum dialect_part part)
{
	if (t->task->convert != NULL)
		convert_error_note(t->task->convert, &t->trail, event);
	if (t->out->tap.content_bytes > t->body->max)
		t->listener = NULL;
	if (t->listener != NULL && part != PART_ERROR)
		feed(t, t->listener, event);
}

static void
pass_end(struct transfer *t)
{
	if (!t->gathers)
		forward_ending(t, buf_text(t->made));
	forward_pass(t, buf_text(t->made));
}

void
forward_event(struct transfer *t, const struct sse_event *event, enum dialect_part part)
{
	feed(t, t->flow, event);
	if (t->made->over || t->out->tap.content_bytes > t->body->max) {
		t->stop = STOP_TOO_BIG;
		return;
	}
	switch (part) {
	case PART_NOTHING: forward_hold(t, event->comment ? event->raw : buf_text(t->made)); break;
	case PART_PREAMBLE:
	case PART_USAGE: forward_hold(t, buf_text(t->made)); break;
	case PART_CONTENT:
	case PART_FINISH: forward_pass(t, buf_text(t->made)); break;
	case PART_END: pass_end(t); break;
	case PART_ERROR: break;
	}
}

void
forward_end_flow(struct transfer *t)
{
	struct convert_flow *flow = t->flow != NULL ? t->flow : t->listener;

	if (flow == NULL || t->out->finding.verdict != VERDICT_OK)
		return;
	buf_clear(t->made);
	convert_flow_end(flow, t->made);
	t->out->answer = convert_flow_answer(flow);
	if (t->flow == NULL && !t->out->tap.ended)
		forward_ending(t, text_span(t->task->dialect->end_marker));
	else if (t->flow != NULL && !t->gathers)
		pass_end(t);
}

/* A plain answer that passes as it is. */
static void
listen_to_body(struct transfer *t)
{
	struct convert_flow *listener;

	if (!t->task->convert->gathers)
		return;
	listener = convert_flow_listen(t->task->convert);
	convert_flow_body(listener, t->out->body, t->made);
	convert_flow_end(listener, t->made);
	t->out->answer = convert_flow_answer(listener);
}

void
forward_convert_body(struct transfer *t)
{
	bool events = t->mode == MODE_EVENTS;
	struct forward_outcome *out = t->out;

	if (out->finding.verdict != VERDICT_OK || !forward_converts(t))
		return;
	if (!events && (t->task->stream || !t->task->convert->way.same)) {
		t->flow = convert_flow_begin(t->task->convert, !t->task->stream);
		buf_clear(t->made);
		convert_flow_body(t->flow, out->body, t->made);
		convert_flow_end(t->flow, t->made);
		out->answer = convert_flow_answer(t->flow);
	} else if (!t->gathers) {
		if (!events)
			listen_to_body(t);
		return;
	}
	if (t->task->stream) {
		pass_end(t);
		return;
	}
	out->body = redact_apply(&t->redact, t->task->arena, buf_text(t->made));
	out->whole = true;
}
