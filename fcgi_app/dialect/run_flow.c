#include "dialect/run.h"

#include "base/emit.h"

#define TEXT_MAX ((size_t)1 << 31)

struct flow_writer {
	const struct flow_job *job;
	struct buf *content; /* all that was said */
	bool ended;
};

static struct flow_writer *
begin(const struct flow_job *job)
{
	struct flow_writer *w = arena_alloc(job->arena, sizeof *w);

	w->job = job;
	w->content = arena_buf(job->arena, TEXT_MAX);
	return w;
}

static void
emit_answer(const struct flow_job *job, struct span content, struct buf *out)
{
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_bool(&e, "success", true);
	emit_text(&e, "session_id", job->session_id);
	emit_text(&e, "content", content);
	emit_text(&e, "model_used", job->model_used);
	emit_text(&e, "account_id", job->account);
	emit_null(&e, "error");
	emit_end(&e);
}

static void
write_piece(struct flow_writer *w, struct span text, struct buf *out)
{
	struct emit e;

	if (text.n == 0)
		return;
	buf_span(w->content, text);
	buf_z(out, "data: ");
	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_text(&e, "content", text);
	emit_end(&e);
	buf_z(out, "\n\n");
}

static void
write_end(struct flow_writer *w, struct buf *out)
{
	if (w->ended)
		return;
	w->ended = true;
	buf_z(out, "data: ");
	emit_answer(w->job, buf_text(w->content), out);
	buf_z(out, "\n\n");
}

static void
step(struct flow_writer *w, const struct flow *flow, struct buf *out)
{
	switch (flow->kind) {
	case FLOW_TEXT:
	case FLOW_REFUSAL: write_piece(w, flow->text, out); break;
	case FLOW_END: write_end(w, out); break;
	case FLOW_START:
	case FLOW_THOUGHT:
	case FLOW_SEAL:
	case FLOW_REDACTED:
	case FLOW_CALL:
	case FLOW_ARGUMENTS:
	case FLOW_CALL_END:
	case FLOW_CITATION:
	case FLOW_BREAK:
	case FLOW_FINISH:
	case FLOW_USAGE: break;
	}
}

static void
error(struct flow_writer *w, int status, const char *type, const char *code, struct span message,
    struct buf *out)
{
	w->ended = true;
	run_error_event(out, status, type, code, message);
}

const struct flow_writer_kind flow_write_run = {.begin = begin, .step = step, .error = error};

void
flow_answer_run(const struct flow_job *job, const struct flow_answer *answer, struct buf *out)
{
	struct buf *content = arena_buf(job->arena, TEXT_MAX);

	for (size_t i = 0; i < answer->turn.nparts; i++) {
		const struct form_part *part = &answer->turn.parts[i];

		if (part->kind == FORM_TEXT || part->kind == FORM_REFUSAL)
			buf_span(content, part->text);
	}
	emit_answer(job, buf_text(content), out);
}
