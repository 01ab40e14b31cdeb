#include "attempt.h"

#include "base/clock.h"

#include <stdio.h>

#define VERSION "2023-06-01" /* of Anthropic's API: what every client but the newest asks for */

/* The client's headers that may pass, by the variables they arrive in: to its own API alone. */
static size_t
pass_headers(const struct serve_job *j, struct upstream_header *headers, size_t most)
{
	static const struct {
		const char *variable, *header;
		bool anthropic; /* no other API knows it */
	} allowed[] = {
	    {"HTTP_OPENAI_BETA", "OpenAI-Beta", false},
	    {"HTTP_IDEMPOTENCY_KEY", "Idempotency-Key", false},
	    {"HTTP_ANTHROPIC_VERSION", "anthropic-version", true},
	    {"HTTP_ANTHROPIC_BETA", "anthropic-beta", true},
	};
	bool messages = j->convert.way.channel->wire == WIRE_MESSAGES, versioned = false;
	size_t n = 0;

	for (size_t i = 0; i < NELEM(allowed) && n + 1 < most && j->convert.way.same; i++) {
		struct span value = exchange_param(j->x, allowed[i].variable);

		if (value.n == 0 || (allowed[i].anthropic && !messages))
			continue;
		headers[n++] = (struct upstream_header){allowed[i].header, value};
		versioned |= text_is(text_span(allowed[i].header), "anthropic-version");
	}
	if (messages && !versioned)
		headers[n++] = (struct upstream_header){"anthropic-version", SPAN(VERSION)};
	return n;
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
		/* those of channels are logged in their own words */
		if (events[i].account[0] != '\0' || events[i].model[0] != '\0')
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

/* Tokens of the prompt as it was sent; 0 = nobody counted them. */
static int64_t
counted(const struct serve_job *j)
{
	return j->context.counted > 0 ? j->context.counted : j->record.estimated_tokens;
}

static void
settle(struct serve_job *j, struct pick_lease *lease, const char *model)
{
	struct forward_outcome *outcome = &j->walk.outcome;
	/* counting tokens says nothing of how an account does its work, not even of a breaker's permit */
	bool aside = j->rq.endpoint->dialect == &dialect_count_tokens;
	const struct classify_finding nothing = {.verdict = VERDICT_CANCELLED};
	struct settle_outcome result = {
	    .finding = aside ? &nothing : &outcome->finding,
	    .aside = aside,
	    .target = j->rq.endpoint->dialect->judged,
	    .usage = &outcome->tap.usage,
	    .model = model,
	    .estimated = (uint64_t)counted(j),
	    .client = arena_z(j->s->arena, j->rq.client),
	    .latency_ms = outcome->ended.v - outcome->started.v,
	    .first_content_ms = aside ? -1 : first_content_ms(outcome),
	    .sent = outcome->connected,
	    .session = j->walk.session.key != NULL ? &j->walk.session : NULL,
	};
	struct settle_report report;
	struct why why;

	if (outcome->finding.verdict == VERDICT_OK || outcome->tap.content)
		dialect_settle(&outcome->tap,
		    j->convert.say != NULL ? j->convert.way.body.n : j->rq.read.body.n);
	if (settle_lease(j->s->env, j->s->slot, j->s->pool, lease, &result, clock_wall(), &report,
	        &why) != ERR_OK) {
		serve_job_log(j, LOG_LEVEL_ERROR, "a lease could not be settled", why.text);
		j->s->unreleased = !settle_release(j->s->env, j->s->slot);
	} else {
		attempt_log(j, report.events, report.n);
		attempt_log_breaker(j, j->walk.channel, &report.breaker);
		j->s->hard_facts = j->s->hard_facts || report.hard;
		if (report.hard && j->s->nhard++ < SERVE_HARD_MAX)
			j->s->hard[j->s->nhard - 1] = lease->ref;
	}
	j->record.estimated_tokens = counted(j);
	record_attempt(&j->record, j->walk.channel, lease, text_span(model), outcome);
}

/* The events that end a stream: who keeps something of it does so before its client sees them. */
static void
keep(void *job, struct span events)
{
	recall_keep_events(job, events);
	context_keep(job);
}

static bool
is_too_long(const struct serve_job *j)
{
	return j->walk.outcome.finding.verdict == VERDICT_CONTEXT_LENGTH;
}

/* The call once, and to the same account once more where that may mend it. */
static void
send(struct serve_job *j, struct forward_task *task, struct upstream_call *call)
{
	const struct convert_way *way = &j->convert.way;
	bool native = call->body.p != way->body.p;
	int64_t tokens = j->context.counted;

	if (native) /* what is sent has not been counted */
		j->context.counted = 0;
	j->respond.trimmed = native ? (struct span){"", 0} : j->context.told;
	forward_send(task, &j->walk.outcome);
	if (may_resend(j))
		forward_send(task, &j->walk.outcome);
	if (native && recall_is_lost(j)) {
		call->body = way->body;
		j->context.counted = tokens;
		j->respond.trimmed = j->context.told;
		forward_send(task, &j->walk.outcome);
	}
	if (is_too_long(j) && context_shrink(j)) {
		call->body = way->body;
		j->respond.dropped = way->dropped;
		j->respond.trimmed = j->context.told;
		forward_send(task, &j->walk.outcome);
	}
}

void
attempt_run(struct serve_job *j, struct pick_lease *lease)
{
	const struct conf_account *account = &j->walk.channel->accounts[lease->account];
	struct span model = text_span(j->walk.wish.model);
	const struct convert_way *way = &j->convert.way;
	struct span native = recall_native(j, lease->account);
	struct upstream_header headers[6];
	struct upstream_call call = {
	    .channel = j->walk.channel,
	    .account = account,
	    .path = way->dialect->path,
	    .model = model,
	    .body = native.n > 0 ? native : way->body,
	    .more = {way->more[0], way->more[1]},
	    .content_type = j->rq.form_type,
	    .any = way->dialect->media,
	    .stream = way->stream,
	    .headers = headers,
	    .nheaders = pass_headers(j, headers, NELEM(headers)),
	};
	struct forward_task task = {
	    .up = j->s->up,
	    .arena = j->s->arena,
	    .conf = j->s->conf,
	    .call = &call,
	    .dialect = way->dialect,
	    .convert = &j->convert,
	    .stream = j->rq.stream,
	    .respond = &j->respond,
	    .watch = j->s->watch,
	    .model = model,
	    .wants_usage = j->rq.wants_usage,
	    .ending = keep,
	    .ending_arg = j,
	    .clock = clock_mono,
	    .wall = clock_wall,
	};

	j->walk.attempts++;
	j->respond.attempts = j->walk.attempts;
	j->respond.channel = j->walk.channel->name;
	j->respond.account = j->convert.account = account->id;
	j->respond.model = model;
	j->respond.dropped = way->dropped;
	j->record.estimated_tokens = weigh_counted(&j->weigh, model);
	walk_tried(&j->walk, lease);
	send(j, &task, &call);
	j->walk.has_outcome = true;
	j->respond.upstream_id = j->walk.outcome.upstream_id;
	settle(j, lease, model.p);
	if (!lease->settled)
		die("a lease was not settled");
}
