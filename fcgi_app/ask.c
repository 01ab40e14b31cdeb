#include "ask.h"

#include "base/clock.h"
#include "base/emit.h"

#define BODY_SLACK 65536

/*
 * Anthropic's API states the limit on an answer in one way only; for all others the writers know how each host wants
 * it. So the question is put in its words.
 */
#define PATH "/v1/messages"

/* The side of the client: he sends nothing more, and what he would get is taken out of the walk. */
static ssize_t
read_nothing(void *io, char *dst, size_t n)
{
	(void)io, (void)dst, (void)n;
	return 0;
}

static bool
write_nowhere(void *io, const char *bytes, size_t n)
{
	(void)io, (void)bytes, (void)n;
	return true;
}

static bool
flush_nothing(void *io)
{
	(void)io;
	return true;
}

/* It is the true client who may have gone. */
static void
probe_client(void *io)
{
	const struct exchange *x = io;

	if (x->probe != NULL)
		x->probe(x->io);
}

/* Of the variables only those count that say whose accounts may see what the client sent. */
static struct exchange *
own_exchange(struct serve_job *job)
{
	static const char *const passed[] = {"SLUICE_REALM", "HTTP_X_SLUICE_REALM"};
	struct arena *arena = job->s->arena;
	struct exchange *x = arena_alloc(arena, sizeof *x);
	size_t n = 0;

	*x = (struct exchange){
	    .params = arena_alloc(arena, (NELEM(passed) + 1) * sizeof *x->params),
	    .client_fd = -1,
	    .io = job->x,
	    .read = read_nothing,
	    .write = write_nowhere,
	    .flush = flush_nothing,
	    .probe = probe_client,
	};
	for (size_t i = 0; i < NELEM(passed); i++) {
		struct span value = exchange_param(job->x, passed[i]);

		if (value.n > 0)
			x->params[n++] = arena_join(
			    arena, (struct span[]){text_span(passed[i]), SPAN("="), value}, 3);
	}
	return x;
}

static struct span
body_of(struct arena *arena, const struct ask *ask)
{
	/* one byte may take six */
	struct buf *out =
	    arena_buf(arena, (ask->model.n + ask->system.n + ask->text.n) * 6 + BODY_SLACK);
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_text(&e, "model", ask->model);
	emit_i64(&e, "max_tokens", ask->max_tokens);
	if (ask->system.n > 0)
		emit_text(&e, "system", ask->system);
	emit_array(&e, "messages");
	emit_object(&e, NULL);
	emit_z(&e, "role", "user");
	emit_text(&e, "content", ask->text);
	emit_end(&e);
	emit_end(&e);
	emit_end(&e);
	return buf_text(out);
}

static enum err
begin(struct serve_job *q, struct serve_job *job, const struct ask *ask, struct why *why)
{
	struct arena *arena = job->s->arena;
	struct span body = body_of(arena, ask);
	const char *purpose = ask->purpose == NULL ? "question" : ask->purpose;

	if (ask->model.n > REQUEST_MODEL_MAX) {
		err_why(why, "the model's name is too long");
		return ERR_BAD_INPUT;
	}
	*q = (struct serve_job){.s = job->s, .x = own_exchange(job), .inner = true};
	q->rq = (struct request){
	    .id =
	        text_span(arena_print(arena, "%.*s-%s", (int)job->rq.id.n, job->rq.id.p, purpose)),
	    .method = SPAN("POST"),
	    .path = PATH,
	    .endpoint = endpoint_find(SPAN(PATH)),
	    .client = job->rq.client,
	    .model = ask->model,
	};
	q->record.arrived = clock_mono();
	q->record.purpose = purpose;
	q->respond = (struct respond){
	    .x = q->x, .arena = arena, .dialect = q->rq.endpoint->dialect, .request_id = q->rq.id};
	return dialect_read(q->rq.endpoint->dialect, body, &q->rq.read, why);
}

/* The texts of an answer, one behind the other; thoughts are none. */
static struct span
text_of(struct arena *arena, struct span body)
{
	static const char *const path = "content";
	static const char *const parts[] = {"type", "text"};
	struct buf *out = arena_buf(arena, body.n + 1);
	struct scan_value list, part, v[NELEM(parts)];
	struct span name;
	size_t at = 0;

	if (scan_pick(body, &path, &list, 1, NULL) != ERR_OK || list.type != SCAN_ARRAY)
		return (struct span){"", 0};
	while (scan_next(list.raw, &at, &name, &part))
		if (scan_pick(part.raw, parts, v, NELEM(parts), NULL) == ERR_OK &&
		    v[0].type == SCAN_STRING && scan_is(v[0].raw, "text") &&
		    v[1].type == SCAN_STRING)
			buf_span(out, scan_string(arena, v[1].raw));
	return text_trim(buf_text(out));
}

static void
judge(const struct serve_job *q, struct ask_answer *answer)
{
	const struct forward_outcome *o = &q->walk.outcome;
	const char *outcome = q->record.outcome;

	if (outcome == NULL || !text_is(text_span(outcome), "ok")) {
		err_why(&answer->why, "%s%s%s", outcome == NULL ? "no answer" : outcome,
		    q->walk.has_outcome ? ": " : "", q->walk.has_outcome ? o->finding.message : "");
		return;
	}
	answer->text = text_of(q->s->arena, o->body);
	answer->ok = answer->text.n > 0;
	if (!answer->ok)
		err_why(&answer->why, "the answer holds no text");
}

void
ask_run(struct serve_job *job, const struct ask *ask, struct ask_answer *answer_out)
{
	struct serve *s = job->s;
	struct serve_job *q = arena_alloc(s->arena, sizeof *q);
	struct mono_ms now = clock_mono();

	*answer_out = (struct ask_answer){.ok = false, .text = {"", 0}};
	if (begin(q, job, ask, &answer_out->why) != ERR_OK)
		return;
	s->watch->deadline.v = now.v + ask->limit_ms;
	serve_job_run(q);
	now = clock_mono();
	answer_out->late = watch_is_late(s->watch, now);
	s->watch->deadline.v = 0;
	/* a client that is done sending has its time from here on */
	if (s->watch->half_closed)
		s->watch->half_closed_at = now;
	judge(q, answer_out);
	if (!answer_out->ok && answer_out->late)
		q->record.outcome = "limit";
	record_request(s->log, &q->record, &q->rq, &q->respond, clock_wall(), now);
}
