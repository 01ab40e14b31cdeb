#include "forward_transfer.h"

void
forward_begin_flow(struct transfer *t)
{
	if (!forward_converts(t))
		return;
	t->gathers = !t->task->stream;
	if (t->gathers || !t->task->convert->way.same)
		t->flow = convert_flow_begin(t->task->convert, t->gathers);
}

/* Our keys are taken out of what is converted: an escape might hide them in what comes out. */
static void
feed(struct transfer *t, const struct sse_event *event)
{
	struct sse_event clean = *event;

	clean.data = redact_apply(&t->redact, t->scratch, event->data);
	buf_clear(t->made);
	convert_flow_event(t->flow, &clean, t->made);
	if (clean.data.p != event->data.p)
		arena_reset(t->scratch);
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
	feed(t, event);
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
	if (t->flow == NULL || t->out->finding.verdict != VERDICT_OK)
		return;
	buf_clear(t->made);
	convert_flow_end(t->flow, t->made);
	if (!t->gathers)
		pass_end(t);
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
	} else if (!t->gathers) {
		return;
	}
	if (t->task->stream) {
		pass_end(t);
		return;
	}
	out->body = redact_apply(&t->redact, t->task->arena, buf_text(t->made));
	out->whole = true;
}
