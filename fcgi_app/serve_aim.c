#include "serve_aim.h"

#include "access.h"
#include "answer.h"
#include "base/clock.h"
#include "conf/options.h"
#include "run_job.h"
#include "serve_size.h"
#include "task_of.h"

/* ---- the beginning ---- */

/* Who can serve it: conversations are converted, all else goes to its own API. */
static unsigned
own_wires(const struct serve_job *j)
{
	return j->rq.endpoint->converts ? ROUTE_WIRES_ALL : ROUTE_WIRE(j->rq.endpoint->wire);
}

static bool
is_count(const struct serve_job *j)
{
	return j->rq.endpoint->dialect == &dialect_count_tokens;
}

static bool
find_routes(struct serve_job *j, struct route_list *list_out)
{
	struct route_wish wish = {.model = j->rq.model, .task = j->task};

	/* tokens are counted for any */
	wish.wires = is_count(j) ? ROUTE_WIRES_ALL : own_wires(j);
	if (route_all(j->s->conf, &wish, j->s->arena, list_out))
		return true;
	answer_refuse(j, 404, "model_not_found",
	    arena_print(j->s->arena, "no channel serves the model '%.*s'",
	        (int)(j->rq.model.n < 128 ? j->rq.model.n : 128), j->rq.model.p));
	return false;
}

static void
find_session(struct serve_job *j)
{
	struct session_key *key = arena_alloc(j->s->arena, sizeof *key);
	struct walk *w = &j->walk;

	if (!j->s->conf->sticky.enabled || !j->s->has_secret)
		return;
	run_job_session(j, key);
	if (key->kind != SESSION_NONE)
		w->wish.session = w->session.key = key->hash;
	j->record.session = key->brief;
}

bool
serve_aim_begin(struct serve_job *j)
{
	struct route_list list;
	struct walk_start start = {.list = &list, .realm = access_realm(j->x)};
	struct walk *w = &j->walk;

	j->record.task = j->task = task_of(j, route_is_auto(j->s->conf, j->rq.model));
	if (!find_routes(j, &list))
		return false;
	start.task = j->task;
	start.wires = is_count(j) ? ROUTE_WIRES_ALL : own_wires(j);
	walk_begin(w, j->s->pool, &start, j->s->arena);
	convert_begin(&j->convert, j->s->arena, &j->rq, clock_wall().v / 1000);
	/* for quotas */
	w->wish.tokens = (uint64_t)(serve_size_limit(j) + dialect_guess_tokens(j->rq.read.body.n));
	find_session(j);
	return true;
}

/* ---- which target ---- */

static enum store_rc
elect_in(struct txn *txn, void *arg)
{
	return walk_elect(txn, arg);
}

struct trial {
	const struct walk_elect *elect;
	bool taken;
};

static enum store_rc
trial_in(struct txn *txn, void *arg)
{
	struct trial *trial = arg;

	return walk_elect_trial(txn, trial->elect, &trial->taken);
}

static void
warn(struct serve_job *j, const char *message)
{
	serve_job_log(j, LOG_LEVEL_WARN, message, env_error(j->s->env));
}

/* May the request go to the chosen target? One that was at rest takes one request over all processes. */
static bool
is_ours(struct serve_job *j, const struct walk_elect *e)
{
	const struct elect_candidate *c = &j->walk.candidates[e->target];
	struct trial trial = {e, false};

	/* that it can be had now is unlikely for who is only spare: the one request is not spent on it */
	if (!c->trial || j->explain || is_count(j) || (c->out != ELECT_IN && c->out != ELECT_FULL))
		return true;
	if (env_update(j->s->env, trial_in, &trial) == STORE_OK)
		return trial.taken;
	warn(j, "a target at rest could not be tried");
	return true;
}

static bool
look(struct serve_job *j, struct walk_elect *e)
{
	e->now = clock_wall();
	if (env_view(j->s->env, elect_in, e) == STORE_OK)
		return e->target != ELECT_NOBODY;
	warn(j, "the targets could not be looked at");
	e->target = elect_choose(j->walk.candidates, j->walk.plan.ntargets, &e->rule);
	return e->target != ELECT_NOBODY;
}

static struct walk_elect
begin_elect(struct serve_job *j)
{
	struct walk *w = &j->walk;

	return (struct walk_elect){
	    .walk = w,
	    .slot = j->s->slot,
	    .arena = j->s->arena,
	    .size = serve_size(j),
	    .rule = walk_rule(w, serve_job_random(j->s)),
	};
}

/* To another target. */
static bool
take_target(struct serve_job *j)
{
	struct walk *w = &j->walk;
	struct walk_elect e;

	if (w->candidates == NULL || w->attempts >= w->max_attempts || w->last_chance)
		return false;
	e = begin_elect(j);
	for (size_t i = 0; i <= w->plan.ntargets && look(j, &e); i++)
		if (is_ours(j, &e)) {
			j->record.routing = options_routings[e.rule.strategy];
			walk_take(w, e.target, j->s->arena);
			return true;
		}
	return false;
}

/* ---- the chain ---- */

struct chain_look {
	struct serve_job *j;
	struct wall_ms now;
};

static enum store_rc
read_answers(struct txn *txn, void *arg)
{
	struct chain_look *look = arg;
	const struct pool *pool = look->j->s->pool;
	struct walk *w = &look->j->walk;
	enum store_rc rc = pick_chain(txn, pool, w->plan.first.channel, look->now, w->answers);

	if (rc == STORE_OK && w->plan.channel != w->plan.first.channel)
		rc = pick_chain(txn, pool, w->plan.channel, look->now, w->answers);
	return rc;
}

/* Only channels with a fallback list pay for this. */
static void
look_at_chain(struct serve_job *j)
{
	struct chain_look look = {j, clock_wall()};
	const struct conf *conf = j->s->conf;
	const struct plan *plan = &j->walk.plan;

	if (conf->channels[plan->first.channel].nfallback == 0 &&
	    conf->channels[plan->channel].nfallback == 0)
		return;
	if (env_view(j->s->env, read_answers, &look) != STORE_OK)
		warn(j, "the fallback channels could not be looked at");
}

void
serve_aim_look(struct serve_job *j)
{
	look_at_chain(j);
	walk_note_answers(&j->walk);
}

/* ---- the body ---- */

/* Put the request into the API of the walk's present channel. */
static enum err
aim(struct serve_job *j, struct why *why)
{
	struct convert_target target = walk_target(&j->walk);
	enum err err = recall_aim(j, why);

	if (err == ERR_OK)
		err = context_aim(j, why);
	return err == ERR_OK ? convert_aim(&j->convert, &target, why) : err;
}

/* In the words that clients look for who then shorten their conversation. */
static bool
refuse_size(struct serve_job *j, int64_t window)
{
	const struct plan *plan = &j->walk.plan;
	long long limit = serve_size_limit(j), prompt = 0, most = window;
	const char *text;

	for (size_t i = 0; i < plan->ntargets; i++)
		if (plan->targets[i].target != NULL &&
		    plan->targets[i].target->context_window == window)
			prompt = j->walk.facts[i].prompt;
	if (j->rq.endpoint->wire == FORM_MESSAGES && limit > 0)
		text = arena_print(j->s->arena,
		    "prompt is too long: input length and `max_tokens` exceed context limit: %lld + %lld > %lld",
		    prompt, limit, most);
	else if (j->rq.endpoint->wire == FORM_MESSAGES)
		text = arena_print(
		    j->s->arena, "prompt is too long: %lld tokens > %lld maximum", prompt, most);
	else
		text = arena_print(j->s->arena,
		    "This model's maximum context length is %lld tokens. However, you requested %lld "
		    "tokens (%lld in the prompt, %lld for the answer).",
		    most, prompt + limit, prompt, limit);
	answer_refuse(j, 400, "context_length_exceeded", text);
	return false;
}

/* Each turn of the Responses API has another name, so its hash would lead it anywhere. */
static void
note_served(struct serve_job *j)
{
	const struct walk *w = &j->walk;

	for (size_t i = 0; i < w->plan.ntargets && j->recall.found; i++)
		w->candidates[i].served =
		    text_equal(w->plan.conf->channels[w->plan.targets[i].channel].name,
		        j->recall.from.channel);
}

bool
serve_aim_first(struct serve_job *j)
{
	struct walk *w = &j->walk;
	int64_t window;

	if (w->candidates == NULL)
		return true;
	note_served(j);
	if (j->explain)
		return true;
	if (!take_target(j)) {
		window = walk_largest_window(w);
		if (window > 0)
			return refuse_size(j, window);
		if (!walk_next_channel(w, j->s->arena)) {
			w->exhausted = true;
			answer_give_up(j);
			return false;
		}
	}
	w->plan.wires = own_wires(j);
	walk_judge_wires(w);
	return true;
}

/* Who cannot read what the client says may still pass it on. */
static void
narrow(struct serve_job *j)
{
	if (j->convert.state != CONVERT_UNREADABLE)
		return;
	j->walk.plan.wires &= ROUTE_WIRE(j->rq.endpoint->wire);
	walk_judge_wires(&j->walk);
}

bool
serve_aim_body(struct serve_job *j)
{
	const char *code = "invalid_request_error";
	struct why why, other;

	if (j->walk.candidates != NULL && j->explain)
		return true;
	if (aim(j, &why) == ERR_OK)
		return true;
	if (j->context.unfit)
		code = "context_length_exceeded";
	narrow(j);
	while (take_target(j)) {
		if (aim(j, &other) == ERR_OK)
			return true;
		narrow(j);
	}
	answer_refuse(j, 400, code, why.text);
	return false;
}

bool
serve_aim_next(struct serve_job *j)
{
	struct why why;

	while (take_target(j) || walk_next_channel(&j->walk, j->s->arena)) {
		if (aim(j, &why) == ERR_OK)
			return true;
		narrow(j);
	}
	return false;
}
