#include "walk.h"

#define FAR_AWAY_S 60 /* beyond it SDKs must not sleep for the stated time: SPEC.md section 4.4 */

/* Where the plan stands now is where the next pick looks. */
static void
use_channel(struct walk *w, struct arena *arena)
{
	w->channel = &w->plan.conf->channels[w->plan.channel];
	w->wish.channel = w->plan.channel;
	w->wish.model = arena_z(arena, w->plan.model);
	w->wish.insist = PICK_ANY;
	w->overloaded = w->unexplained = 0;
	w->asked_again = false;
	w->queue_until.v = 0;
	w->session.channel = w->plan.channel;
	w->session.ours = false;
	w->session.found = (struct pick_session){.bound = false};
}

void
walk_begin(struct walk *w, const struct pool *pool, const struct route *route, unsigned wires,
    struct arena *arena)
{
	plan_begin(&w->plan, pool->conf, route, wires);
	w->answers = arena_alloc(arena, (pool->conf->nchannels + 1) * sizeof *w->answers);
	w->max_attempts = pool->conf->channels[route->channel].policy.upstream.max_attempts;
	w->wish.pool = pool;
	if (!plan_next(&w->plan, w->answers))
		die("a route leads to no channel");
	use_channel(w, arena);
}

void
walk_aim(struct walk *w)
{
	w->wish.no_probe = !w->last_chance && plan_more(&w->plan, w->answers);
	w->wish.last_resort = w->last_chance;
	w->wish.fallback =
	    plan_has_fallback(w->plan.conf, w->plan.channel, w->plan.wires, w->answers);
}

bool
walk_next_channel(struct walk *w, struct arena *arena)
{
	if (w->attempts >= w->max_attempts || w->last_chance)
		return false;
	if (plan_next(&w->plan, w->answers)) {
		use_channel(w, arena);
		return true;
	}
	if (w->plan.visited <= 1)
		return false;
	w->last_chance = true;
	plan_back(&w->plan);
	use_channel(w, arena);
	return true;
}

void
walk_tried(struct walk *w, const struct pick_lease *lease)
{
	if (w->wish.ntried < PICK_TRIED_MAX) {
		w->wish.tried[w->wish.ntried].channel = lease->channel;
		w->wish.tried[w->wish.ntried].account = lease->account;
		w->wish.ntried++;
	}
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
