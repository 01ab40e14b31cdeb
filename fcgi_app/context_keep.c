#include "context.h"

#include "base/clock.h"
#include "dialect/chat_answer.h"
#include "redact.h"
#include "serve_job.h"

struct keep {
	struct serve_job *j;
	struct arena *arena;
	const struct flow_answer *answer;
};

static bool
is_object(struct span json)
{
	return text_starts(text_trim(json), "{") && scan_pick(json, NULL, NULL, 0, NULL) == ERR_OK;
}

static const struct form_name *
name_of(const struct keep *k, struct span sent)
{
	const struct form_loss *loss = &k->j->convert.way.loss;

	for (size_t i = 0; !k->j->convert.way.same && i < loss->nnames; i++)
		if (text_equal(loss->names[i].sent, sent))
			return &loss->names[i];
	return NULL;
}

/* As the client has got it: it sends results by these ids and names. */
static void
put_back(const struct keep *k, struct form_call *call)
{
	const struct form_name *name = name_of(k, call->name);

	if (name != NULL && name->custom && !call->custom) {
		call->custom = true;
		call->arguments = chat_answer_unwrap(k->arena, call->arguments);
	}
	if (name != NULL) {
		call->name = name->original;
		call->namespace = name->namespace;
	}
	if (!k->j->convert.way.same && k->j->rq.endpoint->wire == FORM_MESSAGES)
		call->id = form_id(k->arena, FORM_MESSAGES, call->id);
}

/* False: it was cut, or the client's API has no place for its result. */
static bool
keep_call(const struct keep *k, struct form_call *call)
{
	if (k->j->rq.endpoint->dialect == &dialect_run)
		return false;
	put_back(k, call);
	if (call->custom || is_object(call->arguments))
		return true;
	call->arguments = SPAN("{}"); /* what no API would take again */
	return k->answer->finish != FLOW_LENGTH;
}

static struct span
clean(const struct keep *k, struct span text)
{
	return redact_all(k->j->s->conf, k->arena, text);
}

static struct form_turn
answer_turn(const struct keep *k)
{
	const struct form_turn *said = &k->answer->turn;
	struct form_turn turn = {.role = FORM_ASSISTANT};

	turn.parts = arena_alloc(k->arena, (said->nparts + 1) * sizeof *turn.parts);
	for (size_t i = 0; i < said->nparts; i++) {
		struct form_part part = said->parts[i];

		if (part.kind == FORM_CALL && !keep_call(k, &part.call))
			continue;
		part.text = clean(k, part.text);
		part.call.arguments = clean(k, part.call.arguments);
		part.thought.seal = clean(k, part.thought.seal);
		turn.parts[turn.nparts++] = part;
	}
	return turn;
}

/* The client has seen the host's own bytes: of an id that we made it cannot know. */
static bool
is_nameless(const struct keep *k, const struct form_call *call)
{
	return call->made && k->j->convert.way.same;
}

/* Would it be taken as part of a later request, with results of its calls? */
static bool
is_sound(const struct keep *k, const struct form_turn *turn)
{
	struct form_turn turns[] = {*turn, {.role = FORM_TOOL}};
	struct form form = {.from = k->j->convert.form.from, .turns = turns, .nturns = 2};
	struct why why;

	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_call *call = &turn->parts[i].call;

		if (turn->parts[i].kind != FORM_CALL)
			continue;
		if (is_nameless(k, call))
			return false;
		form_add_part(k->arena, &turns[1], FORM_RESULT)->result.id = call->id;
	}
	return form_check(&form, &why) == ERR_OK;
}

static void
not_kept(struct serve_job *j, enum log_level level, const char *why)
{
	j->respond.not_kept = !j->respond.committed;
	log_fields(j->s->log, level, clock_wall(), "an exchange was not kept",
	    LOG_TEXT("id", j->rq.id), LOG_Z("session", j->context.key.brief), LOG_Z("why", why));
}

static void
append(struct serve_job *j)
{
	struct context *c = &j->context;
	struct context_store at = {
	    j->s, j->rq.client, c->key.hash, clock_wall(), c->had.head.turns};
	struct why why = {""};
	enum store_rc rc = context_store_append(&at, c->fresh, c->nfresh, c->first, &why);
	bool usual = rc == STORE_FULL || rc == STORE_NONE;

	if (rc != STORE_OK)
		not_kept(j, usual ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, why.text);
}

/* The answer as a turn, behind what was sent. */
static void
keep(const struct keep *k)
{
	struct context *c = &k->j->context;
	struct form_turn turn;

	if (k->answer == NULL) {
		not_kept(k->j, LOG_LEVEL_INFO, "the answer cannot be read, or is too large");
		return;
	}
	turn = answer_turn(k);
	if (!is_sound(k, &turn)) {
		not_kept(k->j, LOG_LEVEL_WARN,
		    "the answer's calls cannot be told apart, or have no id or name");
		return;
	}
	if (turn.nparts > 0)
		c->fresh[c->nfresh++] = turn;
	append(k->j);
}

void
context_keep(struct serve_job *j)
{
	const struct keep k = {j, j->s->arena, j->walk.outcome.answer};

	if (!j->context.appends || j->context.kept || j->respond.gone || j->s->watch->client_gone)
		return;
	j->context.kept = true;
	keep(&k);
	/* whoever sees the end may go on at once */
	context_end(j);
}
