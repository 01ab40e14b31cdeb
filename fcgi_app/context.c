#include "context.h"

#include "answer.h"
#include "base/clock.h"
#include "context_join.h"

#include <string.h>

#define LOOK_MS 20
#define REFUSE_MS 50 /* a client may have seen an error before its request let go */

void
context_wish(struct serve_job *j, struct span session)
{
	j->context.wish = session;
}

static bool
refuse(struct serve_job *j, const char *message)
{
	answer_refuse(j, 400, "invalid_request_error", message);
	return false;
}

/* What the headers ask for. False: it was refused. */
static bool
read_headers(struct serve_job *j)
{
	struct span word = exchange_param(j->x, "HTTP_X_CONTEXT");
	struct span session = exchange_param(j->x, "HTTP_X_SESSION_ID");
	const struct endpoint *endpoint = j->rq.endpoint;

	if (word.n == 0 || j->context.wish.n > 0)
		return true;
	if (!text_is_fold(text_trim(word), "append"))
		return refuse(j, "X-Context takes one word: append");
	if (!endpoint->converts || endpoint->wire == FORM_RESPONSES)
		return refuse(j, "X-Context is for chat completions and messages (responses have "
		                 "previous_response_id)");
	if (!j->s->conf->context.enabled)
		return refuse(j,
		    "conversations are not kept here: context.enabled is not set, leave X-Context out");
	session = text_trim(session);
	if (session.n == 0)
		return refuse(j, "X-Context wants an X-Session-Id: the conversation's name");
	if (session.n > SESSION_NAME_MAX)
		return refuse(j, arena_print(j->s->arena, "X-Session-Id has more than %d bytes",
		                     SESSION_NAME_MAX));
	j->context.wish = session;
	return true;
}

static bool
store_failed(struct serve_job *j, const char *text)
{
	struct why why;

	err_why(&why, "%s", text);
	answer_store_failed(j, &why);
	return false;
}

static bool
refuse_busy(struct serve_job *j)
{
	struct respond_error error = {.status = 409,
	    .type = "invalid_request_error",
	    .code = "conversation_busy",
	    .message = SPAN("another request of this conversation is being answered: wait for its "
	                    "end, or begin another conversation by another session id"),
	    .retry_after_s = 1};

	j->record.outcome = error.code;
	respond_error(&j->respond, &error);
	return false;
}

/* False: it was answered, or its client has gone. */
static bool
wait_for_others(struct serve_job *j)
{
	struct watch *watch = j->s->watch;

	watch_sleep(watch, LOOK_MS, clock_mono);
	watch_signals(watch, clock_mono());
	watch_client(watch, clock_mono());
	if (watch->client_gone) {
		j->record.outcome = "cancelled";
		j->respond.gone = true;
		return false;
	}
	if (watch->stopping) {
		answer_refuse(j, 503, "restarting", "the gateway is restarting, try again");
		return false;
	}
	return true;
}

/* One request of a conversation at a time: what it adds is what the next one goes on with. */
static bool
hold(struct serve_job *j)
{
	const struct conf *conf = j->s->conf;
	int64_t wait_ms = conf->context.on_conflict == CONF_CONFLICT_WAIT
	                      ? conf->policy.upstream.first_byte_timeout_ms
	                      : REFUSE_MS;
	struct mono_ms until = {clock_mono().v + wait_ms};
	uint64_t name;
	enum store_rc rc;

	memcpy(&name, j->context.key.hash, sizeof name);
	/* all look equally often: who looked less often the longer he waited would come last of all */
	while ((rc = hold_take(j->s->env, name, &j->context.hold)) == STORE_BUSY) {
		if (clock_mono().v >= until.v)
			return refuse_busy(j);
		if (!wait_for_others(j))
			return false;
	}
	j->context.held = rc == STORE_OK;
	/* a client that is done sending has its time from here on */
	if (j->s->watch->half_closed)
		j->s->watch->half_closed_at = clock_mono();
	return rc == STORE_OK || store_failed(j, env_error(j->s->env));
}

static bool
refuse_size(struct serve_job *j, const char *text)
{
	answer_refuse(j, 400, "conversation_too_large",
	    arena_print(j->s->arena, "%s: begin another conversation by another session id", text));
	return false;
}

static bool
load(struct serve_job *j)
{
	struct context_store at = {j->s, j->rq.client, j->context.key.hash, clock_wall(), 0};
	struct why why = {""};

	switch (context_store_get(&at, j->s->arena, &j->context.had, &why)) {
	case STORE_OK: return true;
	case STORE_NONE: j->context.had = (struct context_turns){.n = 0}; return true;
	case STORE_FULL: return refuse_size(j, why.text);
	case STORE_BAD:
		log_fields(j->s->log, LOG_LEVEL_ERROR, clock_wall(),
		    "a conversation cannot be read", LOG_TEXT("id", j->rq.id),
		    LOG_Z("session", j->context.key.brief), LOG_Z("why", why.text));
		answer_refuse(j, 500, "conversation_damaged",
		    "what is kept of this conversation cannot be read any more: begin another one "
		    "by another session id");
		return false;
	case STORE_BUSY:
	case STORE_IO: break;
	}
	return store_failed(j, why.text);
}

/* The answer comes on top, so it may still grow too large to be kept. */
static bool
has_room(struct serve_job *j)
{
	const struct dialect_request *read = &j->rq.read;
	const struct conf *conf = j->s->conf;
	int64_t session = conf->context.max_session_bytes, body = conf->server.max_body_bytes;
	int64_t most = session < body ? session : body;
	uint64_t bytes = j->context.had.head.bytes + read->messages.raw.n + read->input.raw.n;
	size_t items = form_items(j->context.had.turns, j->context.had.n) +
	               scan_items(read->body, FORM_ITEMS_MAX);

	if (items > FORM_ITEMS_MAX)
		return refuse_size(
		    j, arena_print(j->s->arena,
		           "it would have more than %d messages, parts of them and tools",
		           FORM_ITEMS_MAX));
	return bytes <= (uint64_t)most ||
	       refuse_size(j,
	           arena_print(j->s->arena,
	               "it would have %llu bytes, and %lld are kept of one (context.max_session)",
	               (unsigned long long)bytes, (long long)most));
}

/* The answer is one more. */
static bool
has_turns(struct serve_job *j)
{
	size_t n = j->context.had.n + j->context.nfresh + 1;

	return n <= TALK_TURNS_MAX ||
	       refuse_size(
	           j, arena_print(j->s->arena, "it would have %zu messages, and %d are kept of one",
	                  n, TALK_TURNS_MAX));
}

bool
context_begin(struct serve_job *j)
{
	struct context *c = &j->context;
	struct why why = {""};

	if (!read_headers(j))
		return false;
	if (c->wish.n == 0)
		return true;
	if (!j->s->has_secret)
		return store_failed(j, "there is no secret for the names of conversations");
	session_name(&j->s->secret, j->rq.client, SESSION_HEADER, c->wish, &c->key);
	if (j->record.session == NULL)
		j->record.session = c->key.brief;
	if (!j->explain && !hold(j))
		return false;
	if (!load(j) || !has_room(j))
		return false;
	if (context_join(j, &why) != ERR_OK)
		return refuse(j, why.text);
	if (!has_turns(j))
		return false;
	c->appends = j->convert.gathers = !j->explain;
	c->wished = j->walk.wish.tokens;
	return true;
}

void
context_end(struct serve_job *j)
{
	if (j->context.held)
		hold_release(&j->context.hold);
	j->context.held = false;
}
