#include "answer.h"

#include "base/clock.h"
#include "convert_error.h"
#include "explain.h"
#include "serve_size.h"

#define FAULT_MAX (1024 * 1024)
#define EXPLAIN_MAX (64 * 1024 * 1024)

void
answer_refuse(struct serve_job *j, int status, const char *code, const char *message)
{
	struct respond_error error = {
	    .status = status, .code = code, .message = text_span(message), .retry_after_s = -1};

	j->record.outcome = code;
	respond_error(&j->respond, &error);
}

void
answer_method(struct serve_job *j)
{
	struct respond_error error = {.status = 405,
	    .code = "method_not_allowed",
	    .message = SPAN("this path does not take this method, see Allow"),
	    .retry_after_s = -1,
	    .allow = endpoint_allow(j->rq.endpoint)};

	j->record.outcome = error.code;
	respond_error(&j->respond, &error);
}

/* What is JSON is called so, whatever the upstream called it. */
static struct span
type_of(const struct forward_outcome *o)
{
	if (o->whole || o->content_type.n == 0 || text_has_fold(o->content_type, "event-stream"))
		return SPAN("application/json");
	return o->content_type;
}

/* A plain answer is whole before any byte of it goes out. */
void
answer_deliver(struct serve_job *j)
{
	struct forward_outcome *o = &j->walk.outcome;
	struct respond_head head = {
	    .status = o->status,
	    .content_type = type_of(o),
	    .retry_after_s = -1,
	};

	j->record.outcome = "ok";
	if (!j->respond.committed)
		respond_whole(&j->respond, &head, o->body);
}

static int64_t
client_retry_after(const struct walk_end *end, const struct forward_outcome *o)
{
	int64_t s;

	if (end->code == NULL && text_i64(o->retry_after, 0, 86400 * 365, &s))
		return s;
	return end->retry_after_s;
}

struct others {
	struct serve_job *j;
	struct wall_ms now;
};

static enum store_rc
look_for_others(struct txn *txn, void *arg)
{
	const struct others *o = arg;
	struct walk *w = &o->j->walk;

	return pick_look(txn, o->j->s->slot, &w->wish, o->now, &w->reason);
}

/* The attempts are used up by limits: whether others were left decides when the client may come again. */
static void
note_others(struct serve_job *j, struct wall_ms now)
{
	struct others others = {j, now};
	struct walk *w = &j->walk;

	if (w->exhausted || !w->has_outcome ||
	    verdict_table[w->outcome.finding.verdict].status != 429)
		return;
	w->wish.ntried = 0;
	if (env_view(j->s->env, look_for_others, &others) != STORE_OK ||
	    w->reason.result != PICK_COOLING)
		return;
	w->exhausted = true;
	walk_note_reason(w);
}

/* The upstream's own words, in the client's API. */
static void
convert_fault(struct serve_job *j, struct respond_head *head)
{
	const struct forward_outcome *o = &j->walk.outcome;
	struct convert_error error = {
	    .status = head->status,
	    .context_length = o->finding.verdict == VERDICT_CONTEXT_LENGTH,
	    .body = o->body,
	    .content_type = o->content_type,
	    .message = o->finding.message,
	    .code = o->finding.code,
	};
	struct buf *out = arena_buf(j->s->arena, FAULT_MAX);

	convert_error_body(&j->convert, &error, out);
	head->content_type = SPAN("application/json");
	respond_whole(&j->respond, head, buf_text(out));
}

void
answer_give_up(struct serve_job *j)
{
	struct wall_ms now = clock_wall();
	struct forward_outcome *o = &j->walk.outcome;
	struct respond_error error;
	struct respond_head head;
	struct walk_end end;

	note_others(j, now);
	end = walk_end(&j->walk, now);
	error = (struct respond_error){
	    .status = end.status,
	    .code = end.code,
	    .message = text_span(end.message),
	    .retry_after_s = client_retry_after(&end, o),
	    .no_retry = end.no_retry,
	};
	head = (struct respond_head){
	    .status = end.status,
	    .content_type = type_of(o),
	    .retry_after_s = error.retry_after_s,
	};
	j->record.outcome = end.code == NULL ? "client" : end.code;
	if (end.code == NULL && !j->convert.way.same)
		convert_fault(j, &head);
	else if (end.code == NULL)
		respond_whole(&j->respond, &head, o->body);
	else
		respond_error(&j->respond, &error);
}

void
answer_store_failed(struct serve_job *j, const struct why *why)
{
	struct respond_error error = {.status = 503,
	    .code = "store_unavailable",
	    .message = SPAN("the gateway's state cannot be used now, try again shortly"),
	    .retry_after_s = 1};

	serve_job_log(j, LOG_LEVEL_ERROR, "the store failed", why->text);
	j->record.outcome = error.code;
	respond_error(&j->respond, &error);
}

void
answer_explain(struct serve_job *j)
{
	struct explain explain = {
	    .walk = &j->walk,
	    .env = j->s->env,
	    .slot = j->s->slot,
	    .arena = j->s->arena,
	    .now = clock_wall(),
	    .size = serve_size(j),
	    .model = j->rq.model,
	    .task = j->task,
	    .client = j->rq.client,
	    .session = j->walk.session.key != NULL ? j->record.session : NULL,
	    .degraded = j->s->degraded,
	};
	struct buf *out = arena_buf(j->s->arena, EXPLAIN_MAX);
	struct why why;

	if (explain_json(&explain, out, &why) != ERR_OK) {
		answer_store_failed(j, &why);
		return;
	}
	j->record.outcome = "explained";
	respond_json(&j->respond, 200, buf_text(out));
}
