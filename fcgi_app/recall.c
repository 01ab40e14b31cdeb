#include "recall.h"

#include "answer.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/nonce.h"
#include "recall_store.h"
#include "redact.h"
#include "serve_job.h"

#include "store/sticky.h"

#define ID_DIGITS 48

static bool
is_responses(const struct request *rq)
{
	return rq->endpoint->converts && rq->endpoint->wire == FORM_RESPONSES;
}

/* "store" is true unless it says otherwise. What runs in the background has no end that could be seen here. */
static bool
wants_keeping(struct span body)
{
	static const char *const paths[] = {"store", "background"};
	struct scan_value v[NELEM(paths)];

	return scan_pick(body, paths, v, NELEM(paths), NULL) == ERR_OK && v[0].type != SCAN_FALSE &&
	       v[1].type != SCAN_TRUE;
}

static bool
refuse(struct serve_job *j, const char *code, const char *message)
{
	struct buf *out = arena_buf(j->s->arena, 4096);
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_object(&e, "error");
	emit_z(&e, "message", message);
	emit_z(&e, "type", "invalid_request_error");
	emit_z(&e, "param", "previous_response_id");
	emit_z(&e, "code", code);
	emit_end(&e);
	emit_end(&e);
	buf_char(out, '\n');
	j->record.outcome = code;
	respond_json(&j->respond, 400, buf_text(out));
	return false;
}

static bool
store_failed(struct serve_job *j)
{
	struct why why;

	err_why(&why, "%s", env_error(j->s->env));
	answer_store_failed(j, &why);
	return false;
}

/* With what is sent. */
static bool
is_readable(struct serve_job *j, struct span kept)
{
	struct recall *r = &j->recall;
	size_t n = scan_items(kept, FORM_ITEMS_MAX) + scan_items(r->written.body, FORM_ITEMS_MAX);

	if (n > FORM_ITEMS_MAX)
		return refuse(j, "conversation_too_large",
		    arena_print(j->s->arena,
		        "the conversation has more than %d messages, parts of them and tools: begin "
		        "another one",
		        FORM_ITEMS_MAX));
	r->carried = history_carry(j->s->arena, &r->from);
	return true;
}

static bool
find(struct serve_job *j, struct span id)
{
	struct recall_store at = {j->s, j->rq.client, id, clock_wall()};
	struct recall *r = &j->recall;
	struct span text;
	char shown[160];

	switch (recall_store_get(&at, j->s->arena, &text)) {
	case STORE_OK: r->found = history_read(j->s->arena, text, &r->from); break;
	case STORE_NONE: break;
	case STORE_FULL:
	case STORE_BUSY:
	case STORE_BAD:
	case STORE_IO: return store_failed(j);
	}
	if (r->found)
		return is_readable(j, text);
	text_clean(shown, sizeof shown, id);
	return refuse(j, "previous_response_not_found",
	    arena_print(j->s->arena,
	        "Previous response with id '%s' not found: it was not kept, was deleted or has "
	        "expired",
	        shown));
}

/* ---- prefer the account that keeps it ---- */

struct bind {
	const struct serve_job *j;
	size_t account;
};

static enum store_rc
bind_in(struct txn *txn, void *arg)
{
	const struct bind *b = arg;
	const struct walk *w = &b->j->walk;
	const struct pool *pool = b->j->s->pool;
	struct sticky_id id = {w->session.key, pool->channels[w->plan.channel].number, clock_wall(),
	    pool->conf->sticky.ttl_ms};
	struct sticky_row row;
	enum store_rc rc = sticky_get(txn, &id, &row);

	return rc == STORE_NONE
	           ? sticky_put(txn, &id, pool_ref(pool, w->plan.channel, b->account).number)
	           : rc;
}

/* A conversation that is bound already stays where it is. */
void
recall_bind(struct serve_job *j)
{
	const struct walk *w = &j->walk;
	const struct history *from = &j->recall.from;
	struct bind b = {j, 0};

	if (!j->recall.found || j->explain || w->session.key == NULL || !from->stored ||
	    !text_equal(w->channel->name, from->channel))
		return;
	while (b.account < w->channel->naccounts &&
	       !text_equal(w->channel->accounts[b.account].id, from->account))
		b.account++;
	if (b.account < w->channel->naccounts && pool_has(j->s->pool, w->plan.channel, b.account) &&
	    env_update(j->s->env, bind_in, &b) != STORE_OK)
		serve_job_log(j, LOG_LEVEL_WARN, "a session was not bound", env_error(j->s->env));
}

bool
recall_begin(struct serve_job *j)
{
	const struct scan_value *previous = &j->rq.read.previous_response_id;
	struct recall *r = &j->recall;
	struct span id;

	*r = (struct recall){.carried = {"", 0}, .plain = {"", 0}};
	if (!is_responses(&j->rq))
		return true;
	r->written = j->rq.read;
	r->keeps = wants_keeping(j->rq.read.body) && !j->explain;
	/* not from the request's id, which the client may choose: it would overwrite its own responses */
	j->convert.response_id = nonce_name(j->s->arena, "resp_", ID_DIGITS);
	j->convert.store = r->keeps;
	if (previous->type == SCAN_ABSENT || previous->type == SCAN_NULL)
		return true;
	if (previous->type != SCAN_STRING)
		return refuse(
		    j, "invalid_request_error", "'previous_response_id' must be a string");
	id = scan_string(j->s->arena, previous->raw);
	j->convert.previous_id = id;
	return find(j, id);
}

/* ---- the body ---- */

static struct span
body_for(struct serve_job *j, bool native, struct span channel)
{
	const struct recall *r = &j->recall;
	struct arena *arena = j->s->arena;
	struct span items = history_fit(arena, r->carried, native, channel);

	return history_body(
	    arena, &r->written, history_join(arena, items, history_own(arena, &r->written)));
}

struct span
recall_whole(struct serve_job *j)
{
	struct recall *r = &j->recall;

	if (r->found && r->plain.n == 0)
		r->plain = body_for(j, false, SPAN(""));
	return r->plain;
}

enum err
recall_aim(struct serve_job *j, struct why *why)
{
	const struct conf_channel *channel = j->walk.channel;
	bool native = channel->wire == WIRE_RESPONSES;

	if (is_responses(&j->rq))
		j->convert.gathers = j->recall.keeps && !native;
	if (!j->recall.found)
		return ERR_OK;
	return dialect_read(j->rq.endpoint->dialect,
	    native ? body_for(j, true, channel->name) : recall_whole(j), &j->rq.read, why);
}

struct span
recall_native(struct serve_job *j, size_t account)
{
	const struct conf_channel *channel = j->walk.channel;
	const struct history *from = &j->recall.from;
	struct convert_target target = walk_target(&j->walk);
	struct request *written;
	struct convert *convert;
	struct why why;

	if (!j->recall.found || !from->stored || !j->convert.way.same ||
	    !text_equal(channel->name, from->channel) ||
	    !text_equal(channel->accounts[account].id, from->account))
		return (struct span){"", 0};
	written = arena_alloc(j->s->arena, sizeof *written);
	convert = arena_alloc(j->s->arena, sizeof *convert);
	*written = j->rq;
	written->read = j->recall.written;
	convert_begin(convert, j->s->arena, written, 0);
	if (convert_aim(convert, &target, &why) != ERR_OK)
		return (struct span){"", 0};
	return convert->way.body;
}

bool
recall_is_lost(const struct serve_job *j)
{
	const struct forward_outcome *o = &j->walk.outcome;
	struct span message = text_span(o->finding.message);

	if (j->respond.committed || (o->status != 400 && o->status != 404))
		return false;
	return text_is(text_span(o->finding.code), "previous_response_not_found") ||
	       text_has_fold(message, "previous response") ||
	       text_has_fold(message, "previous_response");
}

/* ---- the answer ---- */

static bool
has_seals(const struct form_turn *turn)
{
	for (size_t i = 0; i < turn->nparts; i++)
		if (turn->parts[i].thought.seal.n > 0)
			return true;
	return false;
}

/* The items with what their makers want back, where the client's have it not; else empty. */
static struct span
sealed_output(struct serve_job *j)
{
	static const char *const path = "output";
	const struct flow_answer *answer = j->walk.outcome.answer;
	const struct convert *c = &j->convert;
	const struct flow_job job = {.arena = j->s->arena,
	    .model = j->rq.model,
	    .id = j->rq.id,
	    .form = &c->form,
	    .loss = &c->way.loss,
	    .wants_seals = true};
	struct scan_value output;
	struct buf *out;

	if (c->way.same || c->form.wants_seals || answer == NULL || !has_seals(&answer->turn))
		return (struct span){"", 0};
	out = arena_buf(j->s->arena, SIZE_MAX / 4);
	flow_answer_responses(&job, answer, out);
	if (scan_pick(buf_text(out), &path, &output, 1, NULL) != ERR_OK)
		return (struct span){"", 0};
	return redact_all(j->s->conf, j->s->arena, output.raw);
}

static void
keep(struct serve_job *j, const struct history_answer *answer)
{
	const struct recall *r = &j->recall;
	struct arena *arena = j->s->arena;
	struct span items = history_join(arena, r->carried, history_own(arena, &r->written));
	struct history history = {
	    .channel = j->respond.channel,
	    .account = j->respond.account,
	    .native = j->convert.way.same,
	    .stored = answer->stored && j->convert.way.same,
	    .items =
	        text_span(arena_join(arena, (const struct span[]){SPAN("["), items, SPAN("]")}, 3)),
	    .response = answer->response,
	    .output = sealed_output(j),
	};
	struct recall_store at = {j->s, j->rq.client, answer->id, clock_wall()};
	struct buf *text = arena_buf(arena, (size_t)j->s->conf->context.max_session_bytes);
	enum store_rc rc;

	history_write(&history, text);
	if (text->over) {
		serve_job_log(j, LOG_LEVEL_INFO, "a response was not kept",
		    "the conversation is larger than context.max_session");
		return;
	}
	rc = recall_store_put(&at, buf_text(text));
	if (rc != STORE_OK)
		serve_job_log(j, LOG_LEVEL_WARN, "a response was not kept", env_error(j->s->env));
}

void
recall_keep_plain(struct serve_job *j)
{
	struct history_answer answer;

	if (!j->respond.committed && j->recall.keeps &&
	    history_answer(j->s->arena, j->walk.outcome.body, &answer))
		keep(j, &answer);
}

void
recall_keep_events(void *job, struct span events)
{
	struct serve_job *j = job;
	struct history_answer answer;

	if (j->recall.keeps && !j->recall.kept && history_events(j->s->arena, events, &answer)) {
		j->recall.kept = true;
		keep(j, &answer);
	}
}
