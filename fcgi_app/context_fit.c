#include "context.h"

#include "context_note.h"
#include "dialect/trim.h"
#include "serve_job.h"
#include "store/target.h"
#include "tokenizer.h"

#define ANSWER_TOKENS 4096 /* left for the answer where nobody knows how long it may be ... */
#define ANSWER_SHARE 4     /* ... but no more than this part of the window */
#define ANSWER_MOST 2      /* what nobody asked for has at most this part of it */

/* What is known of the walk's present target. */
struct place {
	int64_t window, max_output; /* 0 = unknown */
	uint32_t ratio_ppm;         /* real by counted tokens */
};

struct ratio_look {
	struct target_ref ref;
	uint32_t ppm;
};

static enum store_rc
read_ratio(struct txn *txn, void *arg)
{
	struct ratio_look *look = arg;
	struct target_row row;
	enum store_rc rc = target_get(txn, look->ref, &row);

	look->ppm = (uint32_t)target_correct(&row, TARGET_RATIO_ONE);
	return rc == STORE_NONE ? STORE_OK : rc;
}

static struct place
place_of(struct serve_job *j)
{
	const struct plan *plan = &j->walk.plan;
	struct conf_target known = plan_target(plan);
	struct ratio_look look = {
	    pool_target(j->s->pool, plan->channel, plan->model), TARGET_RATIO_ONE};

	if (env_view(j->s->env, read_ratio, &look) != STORE_OK)
		look.ppm = TARGET_RATIO_ONE;
	return (struct place){known.context_window, known.max_output, look.ppm};
}

/* What is left free for the answer; `limit` is the client's own, -1 = none. */
static int64_t
reserve(const struct place *place, int64_t limit)
{
	int64_t most = place->max_output;

	if (limit >= 0)
		return most > 0 && most < limit ? most : limit;
	if (most == 0)
		return place->window / ANSWER_SHARE < ANSWER_TOKENS ? place->window / ANSWER_SHARE
		                                                    : ANSWER_TOKENS;
	return most < place->window / ANSWER_MOST ? most : place->window / ANSWER_MOST;
}

/* As many tokens as may be sent, as we count them; 0 = any number. */
static int64_t
budget_of(const struct serve_job *j, const struct place *place)
{
	const struct conf *conf = j->s->conf;
	int64_t most = conf->context.max_tokens, fits;

	if (place->window > 0) {
		fits = place->window - reserve(place, dialect_answer_limit(&j->rq.read)) -
		       (int64_t)((double)place->window * conf->context.margin);
		if (fits < 1)
			fits = 1;
		if (most == 0 || fits < most)
			most = fits;
	}
	if (most > 0) {
		most = most * TARGET_RATIO_ONE / place->ratio_ppm;
		most = most > 0 ? most : 1;
	}
	if (j->context.most > 0 && (most == 0 || j->context.most < most))
		most = j->context.most;
	return most;
}

/* ---- what is said ---- */

static bool
is_ours(const struct serve_job *j)
{
	return j->context.wish.n > 0;
}

/* Of recall the body is another one for each of the channels that speak its API. */
static void
look_at_body(struct serve_job *j)
{
	struct span body = j->rq.read.body;

	if (j->recall.found && body.p != j->context.read_from.p)
		j->convert.state = CONVERT_UNREAD;
	j->context.read_from = body;
}

/* NULL: it is not ours, or what is in it is not known here. */
static const struct form *
whole_of(struct serve_job *j)
{
	struct why why;

	if (is_ours(j))
		return &j->context.whole;
	return j->recall.found && convert_read(&j->convert, &why) == ERR_OK ? &j->convert.form
	                                                                    : NULL;
}

static void
forget(struct context *c)
{
	c->counted = c->before = 0;
	c->trimmed = 0;
	c->unfit = false;
	c->told = (struct span){"", 0};
}

static void
tell(struct serve_job *j)
{
	struct context *c = &j->context;
	int64_t saved = c->before > c->counted ? c->before - c->counted : 0;

	if (c->trimmed > 0)
		c->told =
		    text_span(arena_print(j->s->arena, "%zu,%lld", c->trimmed, (long long)saved));
}

/* `from` as it fits. */
static enum err
fit(struct serve_job *j, const struct form *from, const struct trim_policy *policy, struct why *why)
{
	struct context *c = &j->context;
	struct trim trim;
	enum err err = trim_form(j->s->arena, from, policy, &trim, why);

	c->unfit = err != ERR_OK;
	if (c->unfit)
		return err;
	if (c->before < trim.before)
		c->before = trim.before;
	c->counted = trim.after;
	c->trimmed += trim.messages;
	c->said = trim.form;
	return ERR_OK;
}

/* As the configuration says. */
static enum err
fit_all(struct serve_job *j, const struct place *place, int64_t budget, struct why *why)
{
	const struct conf *conf = j->s->conf;
	struct trim_policy policy = {.model = &j->context.model,
	    .way = TRIM_DYNAMIC,
	    .rounds = conf->context.rounds,
	    .budget = budget};
	struct context_note note = {.from = whole_of(j),
	    .model = &j->context.model,
	    .budget = budget,
	    .window = place->window > 0 ? place->window : conf->context.max_tokens};

	if (note.from == NULL)
		return ERR_BAD_INPUT;
	if (conf->context.trim == CONF_TRIM_ROUNDS)
		policy.way = TRIM_ROUNDS;
	if (conf->context.trim == CONF_TRIM_SUMMARY && budget > 0) {
		context_note(j, &note);
		j->context.before = note.before;
		j->context.trimmed = note.messages;
	}
	return fit(j, note.from, &policy, why);
}

/* Nothing would go: a token has a byte at least, and twice as many leave room for what has none. */
static bool
is_small(const struct serve_job *j, int64_t budget)
{
	uint64_t bytes = j->context.had.head.bytes + j->rq.read.body.n;

	return j->s->conf->context.trim != CONF_TRIM_ROUNDS &&
	       (budget == 0 || bytes <= (uint64_t)budget / 2);
}

/* What accounts have quotas for. */
static void
note_wish(struct serve_job *j)
{
	const struct context *c = &j->context;
	size_t own = j->rq.read.body.n;
	int64_t guess = dialect_guess_tokens(own + (size_t)c->had.head.bytes);

	j->walk.wish.tokens = c->wished - (uint64_t)dialect_guess_tokens(own) +
	                      (uint64_t)(c->counted > 0 ? c->counted : guess);
}

enum err
context_aim(struct serve_job *j, struct why *why)
{
	struct context *c = &j->context;
	struct place place;
	int64_t budget;
	enum err err = ERR_OK;

	j->convert.say = NULL;
	forget(c);
	if (!context_trims(j))
		return ERR_OK;
	look_at_body(j);
	place = place_of(j);
	budget = budget_of(j, &place);
	c->model = tokens_model(tokenizer_of(j->s), j->walk.plan.model);
	c->said = c->whole;
	if (!is_small(j, budget))
		err = fit_all(j, &place, budget, why);
	if (err != ERR_OK && is_ours(j))
		return err;
	/* a history that does not fit goes as it is: the account that keeps it may know better */
	if (err != ERR_OK)
		forget(c);
	if (is_ours(j) || c->trimmed > 0)
		j->convert.say = &c->said;
	if (is_ours(j))
		note_wish(j);
	tell(j);
	return ERR_OK;
}

bool
context_shrink(struct serve_job *j)
{
	struct context *c = &j->context;
	const struct form *form = j->convert.say != NULL ? j->convert.say : whole_of(j);
	struct trim_policy policy = {.model = &c->model, .way = TRIM_DYNAMIC};
	struct form said;
	struct why why;

	if (form == NULL || c->shrunk || j->respond.committed || j->s->watch->client_gone)
		return false;
	c->shrunk = true;
	said = *form;
	if (c->counted == 0)
		c->counted = tokens_form(&c->model, &said);
	policy.budget = c->counted * 3 / 4;
	if (policy.budget < 1 || fit(j, &said, &policy, &why) != ERR_OK)
		return false;
	c->most = policy.budget;
	j->convert.say = &c->said;
	tell(j);
	return convert_again(&j->convert, &why) == ERR_OK;
}

bool
context_trims(const struct serve_job *j)
{
	return is_ours(j) || j->recall.found;
}

const struct form *
context_whole(const struct serve_job *j)
{
	return is_ours(j) ? &j->context.whole : NULL;
}

size_t
context_bytes(const struct serve_job *j)
{
	return (size_t)j->context.had.head.bytes;
}
