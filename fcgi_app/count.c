#include "count.h"

#include "answer.h"
#include "base/emit.h"
#include "dialect/tokens.h"
#include "dialect/flow.h"

#define UNCOUNTED_MS (10 * 60 * 1000)

static bool
is_count(const struct serve_job *j)
{
	return j->rq.endpoint->dialect == &dialect_count_tokens && !j->explain;
}

static void
answer(struct serve_job *j)
{
	struct tokens_model model = tokens_model(NULL, j->walk.plan.model);
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
	emit_i64(&e, "input_tokens", tokens_form(&model, form));
	emit_end(&e);
	j->respond.estimated = true;
	j->respond.model = j->walk.plan.model;
	j->record.outcome = "ok";
	respond_json(&j->respond, 200, buf_text(out));
}

static uint16_t
channel_of(const struct serve_job *j)
{
	return j->s->pool->channels[j->walk.plan.channel].number;
}

static bool
is_uncounted(const struct serve_job *j, struct mono_ms now)
{
	for (size_t i = 0; i < SERVE_UNCOUNTED_MAX; i++) {
		const struct serve_uncounted *u = &j->s->uncounted[i];

		if (u->channel == channel_of(j) && u->generation == j->s->generation &&
		    now.v < u->until.v)
			return true;
	}
	return false;
}

/* A 404 may be the model's: that says nothing of others. */
static void
note_uncounted(struct serve_job *j, struct mono_ms now)
{
	const struct forward_outcome *o = &j->walk.outcome;

	if (o->status == 404 && text_has_fold(text_span(o->finding.message), "model"))
		return;
	j->s->uncounted[j->s->nuncounted++ % SERVE_UNCOUNTED_MAX] =
	    (struct serve_uncounted){channel_of(j), j->s->generation, {now.v + UNCOUNTED_MS}};
}

bool
count_here(struct serve_job *j, struct mono_ms now)
{
	if (!is_count(j) || (j->walk.channel->wire == WIRE_MESSAGES && !is_uncounted(j, now)))
		return false;
	answer(j);
	return true;
}

bool
count_instead(struct serve_job *j, struct mono_ms now)
{
	int status = j->walk.outcome.status;

	if (!is_count(j) || !j->walk.has_outcome ||
	    (status != 404 && status != 405 && status != 501))
		return false;
	note_uncounted(j, now);
	answer(j);
	return true;
}
