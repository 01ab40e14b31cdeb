#include "dialect/responses.h"

/* The answer's items, and the list that they are written to. */
struct list {
	const struct flow_job *job;
	const struct flow_answer *answer;
	struct emit e;
	struct responses_part *parts; /* of the message that is being gathered */
	size_t nparts, nitems;
	size_t last_text; /* index of the last text in the turn: it takes the citations */
};

static const char *
status_of(const struct list *l, bool last)
{
	const char *reason, *status = responses_status(l->answer->finish, &reason);

	return last ? status : "completed";
}

static void
put(struct list *l, struct responses_item *item, const char *prefix)
{
	item->id = responses_id(l->job->arena, prefix, l->job->id, l->nitems++);
	responses_emit_item(&l->e, NULL, item);
}

static void
put_message(struct list *l, bool last)
{
	struct responses_item item = {.kind = RESPONSES_MESSAGE,
	    .status = status_of(l, last),
	    .parts = l->parts,
	    .nparts = l->nparts};

	if (l->nparts > 0)
		put(l, &item, "msg_");
	l->nparts = 0;
}

static struct span
annotations(struct list *l)
{
	struct span all = l->answer->citations, none;
	struct buf *out = arena_buf(l->job->arena, SIZE_MAX / 4);
	struct scan_value v;
	struct emit e;
	size_t at = 0;

	emit_init(&e, out);
	emit_array(&e, NULL);
	while (scan_next(all, &at, &none, &v))
		responses_emit_citation(&e, NULL, v.raw);
	emit_end(&e);
	return buf_text(out);
}

static void
add_said(struct list *l, const struct form_part *part, size_t i)
{
	struct responses_part *said = &l->parts[l->nparts++];

	*said = (struct responses_part){.refusal = part->kind == FORM_REFUSAL, .text = part->text};
	if (i == l->last_text && l->answer->citations.n > 0)
		said->annotations = annotations(l);
}

static void
put_thought(struct list *l, const struct form_part *part)
{
	struct responses_part summary = {.text = part->text};
	struct responses_item item = {
	    .kind = RESPONSES_REASONING, .parts = &summary, .nparts = part->text.n > 0};

	if (l->job->wants_seals && part->thought.seal.n > 0) {
		item.seal = part->thought.seal;
		if (part->thought.redacted)
			item.seal = text_span(arena_join(l->job->arena,
			    (const struct span[]){SPAN(RESPONSES_REDACTED), item.seal}, 2));
	}
	if (item.nparts > 0 || item.seal.n > 0)
		put(l, &item, "rs_");
}

static void
put_call(struct list *l, const struct form_call *call, bool last)
{
	struct responses_item item = {.kind = call->custom ? RESPONSES_CUSTOM : RESPONSES_CALL,
	    .status = status_of(l, last),
	    .call_id = call->id,
	    .name = call->name,
	    .namespace = call->namespace,
	    .arguments = call->arguments};
	bool wrapped;

	responses_restore(l->job->loss, &item, &wrapped);
	if (wrapped)
		item.arguments = responses_unwrap(l->job->arena, item.arguments);
	put(l, &item, item.kind == RESPONSES_CUSTOM ? "ctc_" : "fc_");
}

static void
put_part(struct list *l, size_t i)
{
	const struct form_turn *turn = &l->answer->turn;
	const struct form_part *part = &turn->parts[i];
	bool last = i + 1 == turn->nparts;

	switch (part->kind) {
	case FORM_TEXT:
	case FORM_REFUSAL:
		add_said(l, part, i);
		if (last)
			put_message(l, true);
		break;
	case FORM_THOUGHT:
		put_message(l, false);
		put_thought(l, part);
		break;
	case FORM_CALL:
		put_message(l, false);
		put_call(l, &part->call, last);
		break;
	case FORM_IMAGE:
	case FORM_DOCUMENT:
	case FORM_AUDIO:
	case FORM_RESULT:
	case FORM_OPAQUE: break;
	}
}

void
flow_answer_responses(const struct flow_job *job, const struct flow_answer *answer, struct buf *out)
{
	const struct form_turn *turn = &answer->turn;
	struct buf *output = arena_buf(job->arena, SIZE_MAX / 4);
	struct list l = {.job = job, .answer = answer, .last_text = SIZE_MAX};
	struct responses_object o = {.job = job, .id = job->response_id};
	struct emit e;

	l.parts = arena_alloc(job->arena, (turn->nparts + 1) * sizeof *l.parts);
	for (size_t i = 0; i < turn->nparts; i++)
		if (turn->parts[i].kind == FORM_TEXT)
			l.last_text = i;
	emit_init(&l.e, output);
	emit_array(&l.e, NULL);
	for (size_t i = 0; i < turn->nparts; i++)
		put_part(&l, i);
	put_message(&l, true);
	emit_end(&l.e);
	if (o.id.n == 0)
		o.id = responses_id(job->arena, "resp_", job->id, 0);
	o.status = responses_status(answer->finish, &o.incomplete_reason);
	o.output = buf_text(output);
	o.usage = answer->usage.seen ? &answer->usage : NULL;
	emit_init(&e, out);
	responses_emit_object(&e, NULL, &o);
}
