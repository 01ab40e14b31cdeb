#include "attempt.h"

#include "base/clock.h"
#include "dialect/edit.h"

#include <stdio.h>

/* The client's headers that may pass, by the variables they arrive in. */
static size_t
pass_headers(const struct exchange *x, struct upstream_header *headers, size_t most)
{
	static const struct {
		const char *variable, *header;
	} allowed[] = {
	    {"HTTP_OPENAI_BETA", "OpenAI-Beta"}, {"HTTP_IDEMPOTENCY_KEY", "Idempotency-Key"}};
	size_t n = 0;

	for (size_t i = 0; i < NELEM(allowed) && n < most; i++) {
		struct span value = exchange_param(x, allowed[i].variable);

		if (value.n > 0)
			headers[n++] = (struct upstream_header){allowed[i].header, value};
	}
	return n;
}

/* The bytes for the upstream: the client's, with only the edited values replaced. */
static struct span
edited_body(struct serve_job *j, struct span model)
{
	struct edit edits[2];
	struct buf *out;
	size_t n = 0;

	if (j->rq.model.n > 0 && !text_equal(model, j->rq.model))
		edits[n++] = edit_model(j->s->arena, &j->rq.read, model);
	if (j->rq.stream && j->rq.endpoint->dialect->usage_option &&
	    !j->walk.channel->quirks.no_stream_options && edit_usage(&j->rq.read, &edits[n]))
		n++;
	if (n == 0)
		return j->rq.read.body;
	out = arena_buf(j->s->arena, j->rq.read.body.n + model.n * 6 + 256);
	edit_apply(j->rq.read.body, edits, n, out);
	return buf_text(out);
}

/* The connection broke before the request was out: nobody has seen it, so it is sent once more, to the same account. */
static bool
may_resend(const struct serve_job *j)
{
	const struct forward_outcome *o = &j->walk.outcome;

	return o->connected && !o->written_whole && o->status == 0 && !j->respond.committed &&
	       !j->s->watch->client_gone &&
	       (o->transport == TRANSPORT_CONNECT || o->transport == TRANSPORT_REUSED);
}

void
attempt_log(struct serve_job *j, const struct journal_row *events, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (events[i].account[0] !=
		    '\0') /* those of channels are logged in their own words */
			record_event(j->s->log, &events[i], j->rq.id);
}

void
attempt_log_breaker(
    struct serve_job *j, const struct conf_channel *channel, const struct breaker_change *change)
{
	char message[256];

	if (change->text[0] == '\0')
		return;
	j->s->hard_facts = true;
	snprintf(message, sizeof message, "channel [%.*s] %s",
	    (int)(channel->name.n < 64 ? channel->name.n : 64), channel->name.p, change->text);
	log_fields(j->s->log, change->warn ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, clock_wall(), message,
	    LOG_TEXT("id", j->rq.id), LOG_TEXT("channel", channel->name));
}

static int64_t
first_content_ms(const struct forward_outcome *o)
{
	if (o->first_content.v != 0)
		return o->first_content.v - o->started.v;
	/* of a plain answer the whole is the first content */
	return o->finding.verdict == VERDICT_OK ? o->ended.v - o->started.v : -1;
}

static void
settle(struct serve_job *j, struct pick_lease *lease, const char *model)
{
	struct forward_outcome *outcome = &j->walk.outcome;
	struct settle_outcome result = {
	    .finding = &outcome->finding,
	    .usage = &outcome->tap.usage,
	    .model = model,
	    .client = arena_z(j->s->arena, j->rq.client),
	    .latency_ms = outcome->ended.v - outcome->started.v,
	    .first_content_ms = first_content_ms(outcome),
	    .sent = outcome->connected,
	    .session = j->walk.session.key != NULL ? &j->walk.session : NULL,
	};
	struct settle_report report;
	struct why why;

	if (outcome->finding.verdict == VERDICT_OK || outcome->tap.content)
		dialect_settle(&outcome->tap, j->rq.read.body.n);
	if (settle_lease(j->s->env, j->s->slot, j->s->pool, lease, &result, clock_wall(), &report,
	        &why) != ERR_OK) {
		log_fields(j->s->log, LOG_LEVEL_ERROR, clock_wall(), "a lease could not be settled",
		    LOG_TEXT("id", j->rq.id), LOG_Z("why", why.text));
		j->s->unreleased = !settle_release(j->s->env, j->s->slot);
	} else {
		attempt_log(j, report.events, report.n);
		attempt_log_breaker(j, j->walk.channel, &report.breaker);
		j->s->hard_facts = j->s->hard_facts || report.hard;
		if (report.hard && j->s->nhard++ < SERVE_HARD_MAX)
			j->s->hard[j->s->nhard - 1] = lease->ref;
	}
	record_attempt(&j->record, j->walk.channel, lease, outcome);
}

void
attempt_run(struct serve_job *j, struct pick_lease *lease)
{
	const struct conf_account *account = &j->walk.channel->accounts[lease->account];
	struct span model = text_span(j->walk.wish.model);
	struct upstream_header headers[4];
	struct upstream_call call = {
	    .channel = j->walk.channel,
	    .account = account,
	    .path = j->rq.endpoint->dialect->path,
	    .body = edited_body(j, model),
	    .stream = j->rq.stream,
	    .headers = headers,
	    .nheaders = pass_headers(j->x, headers, NELEM(headers)),
	};
	struct forward_task task = {
	    .up = j->s->up,
	    .arena = j->s->arena,
	    .conf = j->s->conf,
	    .call = &call,
	    .dialect = j->rq.endpoint->dialect,
	    .respond = &j->respond,
	    .watch = j->s->watch,
	    .model = model,
	    .wants_usage = j->rq.wants_usage,
	    .clock = clock_mono,
	    .wall = clock_wall,
	};

	j->walk.attempts++;
	j->respond.attempts = j->walk.attempts;
	j->respond.channel = j->walk.channel->name;
	j->respond.account = account->id;
	j->respond.model = model;
	walk_tried(&j->walk, lease);
	forward_send(&task, &j->walk.outcome);
	if (may_resend(j))
		forward_send(&task, &j->walk.outcome);
	j->walk.has_outcome = true;
	j->respond.upstream_id = j->walk.outcome.upstream_id;
	settle(j, lease, model.p);
	if (!lease->settled)
		die("a lease was not settled");
}
