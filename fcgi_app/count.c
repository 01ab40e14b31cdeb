#include "count.h"

#include "answer.h"
#include "base/emit.h"
#include "dialect/estimate.h"
#include "dialect/flow.h"

static bool
is_count(const struct serve_job *j)
{
	return j->rq.endpoint->dialect == &dialect_count_tokens && !j->explain;
}

static void
answer(struct serve_job *j)
{
	struct form *form = arena_alloc(j->s->arena, sizeof *form);
	struct buf *out = arena_buf(j->s->arena, 64);
	struct why why;
	struct emit e;

	if (flow_wires[FORM_MESSAGES].read(j->s->arena, j->rq.read.body, form, &why) != ERR_OK) {
		answer_refuse(j, 400, "invalid_request_error", why.text);
		return;
	}
	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_i64(&e, "input_tokens", estimate_form(form, j->walk.plan.model));
	emit_end(&e);
	j->respond.estimated = true;
	j->respond.model = j->walk.plan.model;
	j->record.outcome = "ok";
	respond_json(&j->respond, 200, buf_text(out));
}

bool
count_here(struct serve_job *j)
{
	if (!is_count(j) || j->walk.channel->wire == WIRE_MESSAGES)
		return false;
	answer(j);
	return true;
}

bool
count_instead(struct serve_job *j)
{
	int status = j->walk.outcome.status;

	if (!is_count(j) || !j->walk.has_outcome ||
	    (status != 404 && status != 405 && status != 501))
		return false;
	answer(j);
	return true;
}
