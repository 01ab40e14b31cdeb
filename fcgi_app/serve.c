#include "serve.h"

#include "access.h"
#include "base/clock.h"
#include "dialect/edit.h"
#include "page.h"
#include "record.h"
#include "request.h"
#include "route.h"
#include "settle.h"
#include "walk.h"

#include <unistd.h>

#define ROOM_LOOK_MS 20
#define BODY_KEEP_BYTES 131072 /* of the body's buffer, between requests */

/* One request on its way. */
struct job {
	struct serve *s;
	struct exchange *x;
	struct request rq;
	struct respond respond;
	struct record record;
	struct walk walk;
};

static uint64_t
next_random(struct serve *s)
{
	/* xorshift64*: spreads picks and back-offs, guards nothing */
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return s->random * 2685821657736338717ULL;
}

static void
refuse(struct job *j, int status, const char *code, const char *message)
{
	struct respond_error error = {
	    .status = status, .code = code, .message = text_span(message), .retry_after_s = -1};

	j->record.outcome = code;
	respond_error(&j->respond, &error);
}

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
edited_body(struct job *j, struct span model)
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

static void
log_events(struct job *j, const struct settle_report *report)
{
	for (unsigned i = 0; i < report->n; i++)
		record_event(j->s->log, &report->events[i], j->rq.id);
}

static void
settle(struct job *j, struct pick_lease *lease, const char *model)
{
	struct forward_outcome *outcome = &j->walk.outcome;
	struct settle_outcome result = {
	    .finding = &outcome->finding,
	    .usage = &outcome->tap.usage,
	    .model = model,
	    .latency_ms = outcome->ended.v - outcome->started.v,
	};
	struct settle_report report;
	struct why why;

	if (outcome->finding.verdict == VERDICT_OK || outcome->tap.content)
		dialect_settle(&outcome->tap, j->rq.read.body.n);
	if (settle_lease(j->s->env, j->s->slot, j->s->pool, lease, &result, clock_wall(), &report,
	        &why) != ERR_OK)
		log_fields(j->s->log, LOG_LEVEL_ERROR, clock_wall(), "a lease could not be settled",
		    LOG_TEXT("id", j->rq.id), LOG_Z("why", why.text));
	log_events(j, &report);
	record_attempt(&j->record, j->walk.channel, lease, outcome);
}

/* The connection broke before the request was out: nobody has seen it, so it is sent once more, to the same account. */
static bool
may_resend(const struct job *j)
{
	const struct forward_outcome *o = &j->walk.outcome;

	return o->connected && !o->written_whole && o->status == 0 && !j->respond.committed &&
	       !j->s->watch->client_gone &&
	       (o->transport == TRANSPORT_CONNECT || o->transport == TRANSPORT_REUSED);
}

static void
attempt(struct job *j, struct pick_lease *lease, struct span model)
{
	const struct conf_account *account = &j->walk.channel->accounts[lease->account];
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
}

/* A plain answer is whole before any byte of it goes out. */
static void
deliver(struct job *j)
{
	struct forward_outcome *o = &j->walk.outcome;
	struct respond_head head = {
	    .status = o->status,
	    .content_type = o->content_type.n > 0 ? o->content_type : SPAN("application/json"),
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

static void
give_up(struct job *j)
{
	struct walk_end end = walk_end(&j->walk, clock_wall());
	struct forward_outcome *o = &j->walk.outcome;
	struct respond_error error = {
	    .status = end.status,
	    .code = end.code,
	    .message = text_span(end.message),
	    .retry_after_s = client_retry_after(&end, o),
	    .no_retry = end.no_retry,
	};
	struct respond_head head = {
	    .status = end.status,
	    .content_type = o->content_type.n > 0 ? o->content_type : SPAN("application/json"),
	    .retry_after_s = error.retry_after_s,
	};

	j->record.outcome = end.code == NULL ? "client" : end.code;
	if (end.code == NULL)
		respond_whole(&j->respond, &head, o->body);
	else
		respond_error(&j->respond, &error);
}

static void
store_failed(struct job *j, const struct why *why)
{
	struct respond_error error = {.status = 503,
	    .code = "store_unavailable",
	    .message = SPAN("the gateway's state cannot be used now, try again shortly"),
	    .retry_after_s = 1};

	log_fields(j->s->log, LOG_LEVEL_ERROR, clock_wall(), "the store failed",
	    LOG_TEXT("id", j->rq.id), LOG_Z("why", why->text));
	j->record.outcome = error.code;
	respond_error(&j->respond, &error);
}

enum round {
	ROUND_AGAIN,
	ROUND_SERVED,
	ROUND_GONE, /* the client went away, or a committed stream broke: nothing more to say */
	ROUND_GIVE_UP,
	ROUND_STORE,
};

/* All usable accounts are only full: look again for a while. False: there is nothing to wait for, or no longer. */
static bool
wait_for_room(struct job *j)
{
	struct mono_ms now = clock_mono();

	if (j->walk.queue_until.v == 0)
		j->walk.queue_until.v = now.v + j->walk.channel->policy.pool.queue_timeout_ms;
	j->walk.exhausted = j->walk.reason.result != PICK_FULL || now.v >= j->walk.queue_until.v ||
	                    j->s->watch->stopping;
	if (!j->walk.exhausted)
		watch_sleep(j->s->watch, ROOM_LOOK_MS, clock_mono);
	return !j->walk.exhausted;
}

/* What follows from an attempt. */
static enum round
after_attempt(struct job *j)
{
	enum walk_next next;

	if (j->walk.outcome.finding.verdict == VERDICT_OK)
		return ROUND_SERVED;
	if (j->respond.committed || j->s->watch->client_gone || j->respond.gone)
		return ROUND_GONE;
	if (j->walk.outcome.stopped)
		return ROUND_GIVE_UP;
	next = walk_next(&j->walk);
	if (next == WALK_WAIT)
		watch_sleep(j->s->watch, walk_backoff_ms(&j->walk, next_random(j->s)), clock_mono);
	return next == WALK_STOP ? ROUND_GIVE_UP : ROUND_AGAIN;
}

static enum round
one_round(struct job *j, struct span model, struct why *why)
{
	struct pick_lease lease;

	if (j->s->watch->client_gone)
		return ROUND_GONE;
	j->walk.wish.random = next_random(j->s);
	if (pick_take(j->s->env, j->s->slot, &j->walk.wish, clock_wall(), &lease, &j->walk.reason,
	        why) != ERR_OK)
		return ROUND_STORE;
	if (!lease.taken)
		return wait_for_room(j) ? ROUND_AGAIN : ROUND_GIVE_UP;
	attempt(j, &lease, model);
	if (!lease.settled)
		die("a lease was not settled");
	return after_attempt(j);
}

static void
forward(struct job *j)
{
	struct why why = {""};
	struct route route;
	enum round round;
	struct span model;

	if (!route_find(j->s->conf, j->rq.model, WIRE_CHAT, &route)) {
		refuse(j, 404, "model_not_found",
		    arena_print(j->s->arena, "no channel serves the model '%.*s'",
		        (int)(j->rq.model.n < 128 ? j->rq.model.n : 128), j->rq.model.p));
		return;
	}
	model = arena_copy(j->s->arena, route.model);
	j->walk.channel = &j->s->conf->channels[route.channel];
	j->walk.wish.pool = j->s->pool;
	j->walk.wish.channel = route.channel;
	j->walk.wish.model = model.p;
	j->walk.wish.realm = route.entry != NULL ? route.entry->realm : (struct span){"", 0};
	j->walk.wish.insist = PICK_ANY;
	do
		round = one_round(j, model, &why);
	while (round == ROUND_AGAIN);
	switch (round) {
	case ROUND_AGAIN:
	case ROUND_SERVED: deliver(j); break;
	case ROUND_GONE:
		j->record.outcome =
		    j->s->watch->client_gone || j->respond.gone ? "cancelled" : "broken";
		break;
	case ROUND_GIVE_UP: give_up(j); break;
	case ROUND_STORE: store_failed(j, &why); break;
	}
}

static void
read_and_forward(struct job *j)
{
	struct why why = {""};
	enum err err;

	buf_clear(&j->s->body);
	j->s->body.max = (size_t)j->s->conf->server.max_body_bytes + 2 * BODY_KEEP_BYTES;
	err = request_body(
	    &j->rq, j->x, j->s->arena, j->s->conf->server.max_body_bytes, &j->s->body, &why);
	switch (err) {
	case ERR_OK: break;
	case ERR_TOO_BIG: refuse(j, 413, "request_too_large", why.text); return;
	case ERR_TIMEOUT: refuse(j, 408, "request_timeout", why.text); return;
	case ERR_IO:
		j->record.outcome = "cancelled";
		j->respond.gone = true;
		return;
	case ERR_BAD_INPUT:
	case ERR_NOT_FOUND:
	case ERR_CONFIG:
	case ERR_STORE: refuse(j, 400, "invalid_request_error", why.text); return;
	}
	/* only now is everything read, so that a readable connection means: closed */
	watch_begin(j->s->watch, j->x->client_fd);
	forward(j);
}

/* No key may ever be served: once per document root, is the configuration below it? */
static bool
is_exposed(struct serve *s, const struct exchange *x)
{
	struct span root = exchange_param(x, "DOCUMENT_ROOT");

	if (root.n == 0 || text_is(root, s->checked_root))
		return root.n > 0 && s->exposed;
	s->exposed = conf_is_exposed(s->conf, root);
	text_clean(s->checked_root, sizeof s->checked_root, root);
	if (s->exposed)
		log_fields(s->log, LOG_LEVEL_ERROR, clock_wall(),
		    "the configuration lies below the document root: move it out of the web's reach",
		    LOG_TEXT("document_root", root));
	return s->exposed;
}

static bool
may_enter(struct job *j)
{
	const struct endpoint *endpoint = j->rq.endpoint;
	enum access_answer answer;

	if (endpoint != NULL && endpoint->who == ENDPOINT_ANYONE)
		return true;
	answer = access_client(j->s->conf, j->x, &j->rq.client);
	if (answer == ACCESS_OK && endpoint != NULL && endpoint->who == ENDPOINT_ADMIN)
		answer = access_admin(j->s->conf, j->rq.client);
	switch (answer) {
	case ACCESS_OK: return true;
	case ACCESS_UNKNOWN: refuse(j, 401, "unauthenticated", access_hint()); break;
	case ACCESS_REFUSED:
		refuse(j, 403, "forbidden", "this path is for admins: see auth.admins");
		break;
	case ACCESS_UNBUILT:
		refuse(j, 503, "unavailable", "auth.mode 'keys' is not built into this version");
		break;
	}
	return false;
}

/* OPTIONS: a preflight only where CORS is configured. */
static bool
is_preflight(struct job *j)
{
	struct respond_head head = {.status = 204, .length = 0, .retry_after_s = -1};

	if (j->respond.origin.n == 0 ||
	    exchange_param(j->x, "HTTP_ACCESS_CONTROL_REQUEST_METHOD").n == 0)
		return false;
	head.allow = j->rq.endpoint == NULL ? "OPTIONS" : endpoint_allow(j->rq.endpoint);
	j->respond.preflight = true;
	j->record.outcome = "preflight";
	respond_head(&j->respond, &head);
	return true;
}

static void
wrong_method(struct job *j)
{
	struct respond_error error = {.status = 405,
	    .code = "method_not_allowed",
	    .message = SPAN("this path does not take this method, see Allow"),
	    .retry_after_s = -1,
	    .allow = endpoint_allow(j->rq.endpoint)};

	j->record.outcome = error.code;
	respond_error(&j->respond, &error);
}

static void
dispatch(struct job *j)
{
	if (text_is(j->rq.method, "OPTIONS") && !is_preflight(j) && j->rq.endpoint != NULL) {
		wrong_method(j);
		return;
	}
	if (j->respond.preflight)
		return;
	if (is_exposed(j->s, j->x)) {
		refuse(j, 503, "misconfigured", "the gateway is not set up safely, see its log");
		return;
	}
	if (!may_enter(j))
		return;
	if (j->rq.endpoint == NULL) {
		refuse(j, 404, "not_found", "unknown path");
		return;
	}
	if (!endpoint_takes(j->rq.endpoint, j->rq.method)) {
		wrong_method(j);
		return;
	}
	if (j->s->env == NULL) {
		struct why why;

		err_why(&why, "%s", j->s->store_error);
		store_failed(j, &why);
		return;
	}
	if (j->rq.endpoint->work == ENDPOINT_FORWARD)
		read_and_forward(j);
	else
		page_serve(j->s, &j->rq, &j->respond);
}

static struct span
fresh_id(struct serve *s)
{
	char id[] = "req_000000000000000000000000";
	uint64_t a = next_random(s), b = next_random(s);

	for (size_t i = 4; i < sizeof id - 1; i++) {
		id[i] = "0123456789abcdef"[a & 15];
		a = a >> 4 | b << 60;
		b >>= 4;
	}
	return arena_copy(s->arena, (struct span){id, sizeof id - 1});
}

void
serve_exchange(struct serve *s, struct exchange *x)
{
	struct job j = {.s = s, .x = x};

	watch_begin(s->watch, -1); /* until the body is read, bytes on it mean nothing */
	j.record.arrived = clock_mono();
	request_head(&j.rq, x, s->conf, fresh_id(s));
	j.respond = (struct respond){
	    .x = x,
	    .arena = s->arena,
	    .dialect = j.rq.endpoint != NULL ? j.rq.endpoint->dialect : &dialect_chat,
	    .request_id = j.rq.id,
	    .origin = access_origin(s->conf, x),
	    .head_only = text_is(j.rq.method, "HEAD"),
	};
	dispatch(&j);
	record_request(s->log, &j.record, &j.rq, &j.respond, clock_wall(), clock_mono());
	watch_begin(s->watch, -1);
	buf_shrink(&s->body, BODY_KEEP_BYTES);
	arena_reset(s->arena);
}
