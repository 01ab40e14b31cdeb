#include "count.h"

#include "answer.h"
#include "base/emit.h"
#include "dialect/flow.h"
#include "tokenizer.h"

#define UNCOUNTED_MS (10 * 60 * 1000)
#define LOGGED_BYTES (256 * 1024) /* larger bodies are not counted for the log alone */

static bool
is_count(const struct serve_job *j)
{
	return j->rq.endpoint->dialect == &dialect_count_tokens && !j->explain;
}

static void
answer(struct serve_job *j)
{
	struct tokens_model model = tokens_model(tokenizer_of(j->s), j->walk.plan.model);
	struct buf *out = arena_buf(j->s->arena, 64);
	struct why why;
	const struct form *form =
	    flow_read(j->s->arena, j->rq.endpoint->wire, j->rq.read.body, &why);
	struct emit e;

	if (form == NULL) {
		answer_refuse(j, 400, "invalid_request_error", why.text);
		return;
	}
	emit_init(&e, out);
	emit_object(&e, NULL);
	j->record.estimated_tokens = tokens_form(&model, form);
	emit_i64(&e, "input_tokens", j->record.estimated_tokens);
	emit_end(&e);
	j->respond.estimated = !tokens_are_exact(&model, form);
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

/* A conversion has read it already. */
static const struct form *
form_of(struct serve_job *j)
{
	struct why why;

	if (j->convert.say != NULL)
		return j->convert.say;
	if (j->convert.state == CONVERT_READ)
		return &j->convert.form;
	return flow_read(j->s->arena, j->rq.endpoint->wire, j->rq.read.body, &why);
}

void
count_for_log(struct serve_job *j)
{
	const struct endpoint *endpoint = j->rq.endpoint;
	struct span body = j->rq.read.body, model = j->walk.plan.model;
	struct tokens_model by;
	const struct form *form;

	if (j->record.estimated_tokens > 0 || endpoint == NULL || !endpoint->converts ||
	    body.n == 0 || body.n > LOGGED_BYTES || !log_wants(j->s->log, LOG_LEVEL_INFO))
		return;
	form = form_of(j);
	if (form == NULL)
		return;
	by = tokens_model(tokenizer_of(j->s), model.n > 0 ? model : j->rq.model);
	j->record.estimated_tokens = tokens_form(&by, form);
}
