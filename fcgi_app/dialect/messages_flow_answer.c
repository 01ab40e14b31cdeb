#include "dialect/messages_answer.h"

struct writer {
	const struct flow_job *job;
	struct emit e;
	size_t blocks;
	bool calls, refused;
};

static void
write_thought(struct writer *w, const struct form_part *part)
{
	struct span seal = messages_answer_seal(part->thought.seal);

	emit_object(&w->e, NULL);
	if (part->thought.redacted) {
		emit_z(&w->e, "type", "redacted_thinking");
		emit_text(&w->e, "data", seal);
	} else {
		emit_z(&w->e, "type", "thinking");
		emit_text(&w->e, "thinking", part->text);
		emit_text(&w->e, "signature", seal);
	}
	emit_end(&w->e);
}

static void
write_text(struct writer *w, struct span text)
{
	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", "text");
	emit_text(&w->e, "text", text);
	emit_end(&w->e);
}

static void
write_call(struct writer *w, const struct form_call *call)
{
	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", "tool_use");
	emit_text(&w->e, "id", form_id(w->job->arena, FORM_MESSAGES, call->id));
	emit_text(&w->e, "name", messages_answer_tool(w->job, call->name));
	emit_raw(
	    &w->e, "input", messages_answer_input(w->job->arena, call->arguments, call->custom));
	emit_end(&w->e);
}

static void
write_part(struct writer *w, const struct form_part *part)
{
	switch (part->kind) {
	case FORM_TEXT:
	case FORM_REFUSAL:
		if (part->text.n == 0)
			return;
		w->refused |= part->kind == FORM_REFUSAL;
		write_text(w, part->text);
		break;
	case FORM_THOUGHT: write_thought(w, part); break;
	case FORM_CALL:
		w->calls = true;
		write_call(w, &part->call);
		break;
	case FORM_IMAGE:
	case FORM_DOCUMENT:
	case FORM_AUDIO:
	case FORM_RESULT:
	case FORM_OPAQUE: return;
	}
	w->blocks++;
}

void
flow_answer_messages(const struct flow_job *job, const struct flow_answer *answer, struct buf *out)
{
	struct writer w = {.job = job};
	struct emit *e = &w.e;
	const char *reason;

	emit_init(e, out);
	emit_object(e, NULL);
	emit_text(e, "id", messages_answer_id(job, answer->id));
	emit_z(e, "type", "message");
	emit_z(e, "role", "assistant");
	emit_text(e, "model", job->model);
	emit_array(e, "content");
	for (size_t i = 0; i < answer->turn.nparts; i++)
		write_part(&w, &answer->turn.parts[i]);
	if (w.blocks == 0) /* clients take the first block without looking */
		write_text(&w, SPAN(""));
	emit_end(e);
	reason = messages_answer_reason(answer->finish, w.calls, w.refused);
	emit_z(e, "stop_reason", reason);
	if (*reason == 's')
		emit_text(e, "stop_sequence", answer->stop);
	else
		emit_null(e, "stop_sequence");
	messages_answer_usage(e, &answer->usage);
	emit_end(e);
}
