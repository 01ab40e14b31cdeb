#include "walk.h"

#include "store/key.h"

#include <string.h>

#define FAR_AWAY_S 60 /* beyond it SDKs must not sleep for the stated time: SPEC.md section 4.4 */

static uint64_t
identity_of(const struct conf *conf, const struct route *route)
{
	struct span channel = conf->channels[route->channel].name;

	return key_hash(key_hash(0, channel.p, channel.n), route->model.p, route->model.n);
}

static bool
is_for_any_task(const struct route *route)
{
	return route->target == NULL || route->target->tasks.n == 0;
}

/* Tasks are no reason to serve nobody. */
static void
judge_tasks(struct walk *w, struct span task)
{
	const struct plan *plan = &w->plan;
	bool fits = false;

	for (size_t i = 0; i < plan->ntargets && task.n > 0; i++) {
		const struct route *route = &plan->targets[i];
		struct elect_candidate *c = &w->candidates[i];

		c->lists_task = !is_for_any_task(route) && route_lists(&route->target->tasks, task);
		fits |= c->out == ELECT_IN && (is_for_any_task(route) || c->lists_task);
	}
	for (size_t i = 0; i < plan->ntargets && fits; i++) {
		struct elect_candidate *c = &w->candidates[i];

		if (c->out == ELECT_IN && !is_for_any_task(&plan->targets[i]) && !c->lists_task)
			c->out = ELECT_TASK;
	}
}

static void
begin_candidates(struct walk *w, struct span task, struct arena *arena)
{
	const struct plan *plan = &w->plan;

	w->candidates = arena_alloc(arena, plan->ntargets * sizeof *w->candidates);
	w->facts = arena_alloc(arena, plan->ntargets * sizeof *w->facts);
	for (size_t i = 0; i < plan->ntargets; i++)
		w->candidates[i] = (struct elect_candidate){
		    .identity = identity_of(plan->conf, &plan->targets[i]),
		    .weight = plan->targets[i].target == NULL ? 1 : plan->targets[i].target->weight,
		    .success_ppm = ELECT_RATE_ONE,
		};
	walk_judge_wires(w);
	judge_tasks(w, task);
}

void
walk_judge_wires(struct walk *w)
{
	const struct plan *plan = &w->plan;

	for (size_t i = 0; i < plan->ntargets; i++) {
		unsigned wire = ROUTE_WIRE(plan->conf->channels[plan->targets[i].channel].wire);

		if ((wire & plan->wires) == 0)
			w->candidates[i].out = ELECT_WIRE;
	}
}

/* An account on which a model failed may serve another one, if the failure need not be the account's own. */
static void
wish_tried(const struct walk *w, const struct route *place, struct pick_wish *wish)
{
	wish->ntried = 0;
	for (unsigned i = 0; i < w->nasked; i++) {
		const struct walk_asked *asked = &w->asked[i];

		if (asked->of_model && asked->channel == place->channel &&
		    !text_equal(asked->model, place->model))
			continue;
		wish->tried[wish->ntried].channel = asked->channel;
		wish->tried[wish->ntried++].account = asked->account;
	}
}

static void
wish_for(
    const struct walk *w, const struct route *place, struct arena *arena, struct pick_wish *wish)
{
	wish->channel = place->channel;
	wish->model = arena_z(arena, place->model);
	wish->realm = w->realm;
	if (w->realm.n == 0 && place->entry != NULL)
		wish->realm = place->entry->realm;
	wish->insist = PICK_ANY;
	wish_tried(w, place, wish);
}

/* Where the plan stands now is where the next pick looks. */
static void
use_place(struct walk *w, struct arena *arena)
{
	const struct route place = {
	    .channel = w->plan.channel, .model = w->plan.model, .entry = w->plan.entry};

	wish_for(w, &place, arena, &w->wish);
	w->channel = &w->plan.conf->channels[w->plan.channel];
	w->overloaded = w->unexplained = 0;
	w->asked_again = false;
	w->trial = false;
	w->queue_until.v = 0;
	w->session.channel = w->plan.channel;
	w->session.ours = false;
	w->session.found = (struct pick_session){.bound = false};
}

void
walk_begin(
    struct walk *w, const struct pool *pool, const struct walk_start *start, struct arena *arena)
{
	const struct route_list *list = start->list;

	w->answers = arena_alloc(arena, (pool->conf->nchannels + 1) * sizeof *w->answers);
	w->max_attempts = pool->conf->channels[list->at[0].channel].policy.upstream.max_attempts;
	w->wish.pool = pool;
	w->realm = start->realm;
	w->strategy = list->strategy;
	if (list->n > 1 || list->at[0].target != NULL) {
		plan_begin_targets(&w->plan, pool->conf, list, start->wires);
		begin_candidates(w, start->task, arena);
	} else {
		plan_begin(&w->plan, pool->conf, &list->at[0], start->wires);
		if (!plan_next(&w->plan, w->answers))
			die("a route leads to no channel");
	}
	use_place(w, arena);
}

void
walk_part(struct walk *w, struct arena *arena)
{
	size_t n = w->plan.ntargets;
	struct elect_candidate *candidates;

	if (w->candidates == NULL)
		return;
	candidates = arena_alloc(arena, n * sizeof *candidates);
	for (size_t i = 0; i < n; i++)
		candidates[i] = w->candidates[i];
	w->candidates = candidates;
	w->facts = arena_alloc(arena, n * sizeof *w->facts);
}

static uint64_t
session_draw(const uint8_t *key)
{
	uint64_t draw;

	memcpy(&draw, key, sizeof draw);
	return draw;
}

struct elect_rule
walk_rule(const struct walk *w, uint64_t draw)
{
	const struct conf *conf = w->plan.conf;
	const uint8_t *session = w->session.key;

	return (struct elect_rule){
	    .strategy = w->has_outcome ? conf->routing.fallback : w->strategy,
	    .fallback = conf->routing.fallback,
	    .min_success_ppm = (uint32_t)(conf->routing.min_success_rate * ELECT_RATE_ONE + 0.5),
	    .draw = session != NULL ? session_draw(session) : draw,
	    .by_session = session != NULL,
	};
}

void
walk_take(struct walk *w, size_t target, struct arena *arena)
{
	struct elect_candidate *candidate = &w->candidates[target];
	bool first = w->plan.visited == 0;

	plan_take(&w->plan, target);
	use_place(w, arena);
	w->trial = candidate->trial;
	candidate->out = ELECT_TRIED;
	if (first)
		w->max_attempts = w->channel->policy.upstream.max_attempts;
}

void
walk_wish(const struct walk *w, size_t target, struct arena *arena, struct pick_wish *wish_out)
{
	*wish_out = w->wish;
	wish_for(w, &w->plan.targets[target], arena, wish_out);
}

bool
walk_has_other(const struct walk *w)
{
	for (size_t i = 0; i < w->plan.ntargets && w->candidates != NULL; i++)
		if (w->candidates[i].out == ELECT_IN)
			return true;
	return false;
}

/* Of any kind: somebody else comes before who rests here. */
static bool
has_next(const struct walk *w)
{
	for (size_t i = 0; i < w->plan.ntargets && w->candidates != NULL; i++)
		if (elect_is_spare(w->candidates[i].out))
			return true;
	return walk_has_other(w);
}

void
walk_note_answers(struct walk *w)
{
	w->plan.other = walk_has_other(w);
	w->wish.no_probe = !w->last_chance && (has_next(w) || plan_more(&w->plan, w->answers));
	w->wish.last_resort = w->last_chance;
	w->wish.fallback =
	    plan_has_fallback(w->plan.conf, w->plan.channel, w->plan.wires, w->answers);
}

struct convert_target
walk_target(const struct walk *w)
{
	struct conf_target known = plan_target(&w->plan);

	return (struct convert_target){
	    .channel = w->channel,
	    .model = w->plan.model,
	    .max_output = known.max_output,
	    .defaults = known.defaults,
	    .ndefaults = known.ndefaults,
	};
}

/* It began to rest on the way: it is not come back to. */
static bool
first_rests(const struct walk *w)
{
	for (size_t i = 0; i < w->plan.ntargets; i++)
		if (w->plan.targets[i].target == w->plan.first.target &&
		    w->facts[i].rest_until_ms != 0)
			return true;
	return false;
}

bool
walk_next_channel(struct walk *w, struct arena *arena)
{
	if (w->attempts >= w->max_attempts || w->last_chance)
		return false;
	if (plan_next(&w->plan, w->answers)) {
		use_place(w, arena);
		return true;
	}
	if (w->plan.visited <= 1 || first_rests(w))
		return false;
	w->last_chance = true;
	plan_back(&w->plan);
	use_place(w, arena);
	return true;
}

void
walk_tried(struct walk *w, const struct pick_lease *lease)
{
	if (w->nasked == PICK_TRIED_MAX)
		return;
	w->asked[w->nasked++] = (struct walk_asked){
	    .channel = lease->channel, .account = lease->account, .model = w->plan.model};
	w->wish.tried[w->wish.ntried].channel = lease->channel;
	w->wish.tried[w->wish.ntried++].account = lease->account;
}

/* Was it the model that failed, or may have been? */
static bool
is_the_models(enum verdict verdict)
{
	return verdict == VERDICT_MODEL_RATE || verdict == VERDICT_MODEL_MISSING ||
	       verdict == VERDICT_OVERLOAD || verdict == VERDICT_SERVER;
}

static size_t
last_tried(const struct walk *w)
{
	return w->wish.ntried == 0 ? PICK_ANY : w->wish.tried[w->wish.ntried - 1].account;
}

/* Two accounts overloaded: no more are burnt; the first is asked once more. */
static enum walk_next
after_overload(struct walk *w)
{
	if (w->overloaded++ == 0)
		w->first_overloaded = last_tried(w);
	if (w->overloaded < 2)
		return WALK_WAIT;
	if (w->asked_again)
		return WALK_STOP;
	w->asked_again = true;
	w->wish.insist = w->first_overloaded;
	return WALK_WAIT;
}

enum walk_next
walk_next(struct walk *w)
{
	enum verdict verdict = w->outcome.finding.verdict;

	w->wish.insist = PICK_ANY; /* asked once more is enough, whatever came of it */
	if (w->nasked > 0)
		w->asked[w->nasked - 1].of_model = is_the_models(verdict);
	if (w->attempts >= w->max_attempts)
		return WALK_STOP;
	if (verdict == VERDICT_OVERLOAD)
		return after_overload(w);
	switch (verdict_table[verdict].next) {
	case NEXT_NEVER: return WALK_STOP;
	case NEXT_AT_ONCE: return WALK_AGAIN;
	case NEXT_ONCE: return ++w->unexplained < 2 ? WALK_AGAIN : WALK_STOP;
	case NEXT_BACKOFF: break;
	}
	/* nobody else to ask: do not make the client wait for it */
	return w->wish.ntried < w->channel->naccounts ? WALK_WAIT : WALK_AGAIN;
}

int64_t
walk_backoff_ms(struct walk *w, uint64_t random)
{
	int64_t ms = w->channel->policy.upstream.retry_backoff_ms;
	int64_t max = w->channel->policy.upstream.retry_backoff_max_ms;

	for (unsigned i = 0; i < w->backoffs && ms < max; i++)
		ms *= 2;
	if (ms > max)
		ms = max;
	w->backoffs++;
	/* +-25 % */
	return ms * 3 / 4 + (ms > 1 ? (int64_t)(random % (uint64_t)(ms / 2 + 1)) : 0);
}

void
walk_note_reason(struct walk *w)
{
	struct wall_ms earliest = w->reason.earliest;

	if (earliest.v != 0 && (w->earliest.v == 0 || earliest.v < w->earliest.v))
		w->earliest = earliest;
}

void
walk_note_rest(struct walk *w, int64_t until_ms)
{
	w->rests = true;
	if (w->earliest.v == 0 || until_ms < w->earliest.v)
		w->earliest.v = until_ms;
}

/* The request itself is at fault: the upstream's own words go to the client. */
static struct walk_end
end_as_client(const struct walk *w)
{
	int status = w->outcome.status;

	if ((status >= 400 && status < 500) || status == 501)
		return (struct walk_end){.status = status, .retry_after_s = -1};
	return (struct walk_end){.status = 400,
	    .code = w->outcome.finding.code[0] != '\0' ? w->outcome.finding.code
	                                               : "invalid_request_error",
	    .message = w->outcome.finding.message,
	    .retry_after_s = -1};
}

static struct walk_end
end_as_pool(const struct walk *w, struct wall_ms now)
{
	int64_t s = (w->earliest.v - now.v + 999) / 1000;

	if (w->rests && w->reason.result == PICK_TAKEN) /* no pick was made */
		return (struct walk_end){503, "model_resting",
		    "every target of this model rests after failures, see Retry-After",
		    s < 1 ? 1 : s, s > FAR_AWAY_S};
	switch (w->reason.result) {
	case PICK_OPEN:
		return (struct walk_end){503, "channel_open",
		    "the channel is resting after failures, see Retry-After", s < 1 ? 1 : s,
		    s > FAR_AWAY_S};
	case PICK_WAITING:
	case PICK_FULL:
		return (struct walk_end){429, "pool_exhausted",
		    "every usable account is busy, try again shortly", 1, false};
	case PICK_COOLING:
		return (struct walk_end){429, "pool_exhausted",
		    "every usable account is resting, see Retry-After", s < 1 ? 1 : s,
		    s > FAR_AWAY_S};
	case PICK_MISSING:
		return (struct walk_end){
		    404, "model_not_found", "no account serves this model", -1, false};
	case PICK_TAKEN:
	case PICK_TRIED:
	case PICK_NOBODY: break;
	}
	return (struct walk_end){503, "no_account",
	    "no account can serve this: all are disabled, lack the model, have another realm, or may "
	    "never take so many tokens at once",
	    -1, true};
}

/* By the kind of the last attempt. */
static struct walk_end
end_as_upstream(const struct walk *w)
{
	const struct classify_finding *f = &w->outcome.finding;
	int status = verdict_table[f->verdict].status;

	if (w->outcome.transport == TRANSPORT_TIMEOUT)
		status = 504;
	return (struct walk_end){
	    .status = status > 0 ? status : 502,
	    .code = f->verdict == VERDICT_MODEL_MISSING ? "model_not_found" : "upstream_error",
	    .message = f->message[0] != '\0' ? f->message : "the upstream failed",
	    .retry_after_s = status == 429 ? 1 : -1,
	    .no_retry = true,
	};
}

static bool
is_the_upstreams(enum verdict verdict)
{
	return verdict == VERDICT_SERVER || verdict == VERDICT_NETWORK ||
	       verdict == VERDICT_OVERLOAD || verdict == VERDICT_NOBODY;
}

struct walk_end
walk_end(const struct walk *w, struct wall_ms now)
{
	enum verdict verdict = w->outcome.finding.verdict;

	if (!w->has_outcome)
		return end_as_pool(w, now);
	if (verdict == VERDICT_CANCELLED)
		return (struct walk_end){
		    503, "restarting", "the gateway is restarting, try again", 1, false};
	if (verdict == VERDICT_CLIENT || verdict == VERDICT_CONTEXT_LENGTH ||
	    (verdict == VERDICT_UNEXPLAINED && w->unexplained >= 2))
		return end_as_client(w);
	if (w->exhausted && !is_the_upstreams(verdict) && w->reason.result != PICK_TRIED)
		return end_as_pool(w, now);
	return end_as_upstream(w);
}
