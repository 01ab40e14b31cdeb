#include "pick_view.h"

#include "store/cooldown.h"
#include "verdict.h"

static bool
was_tried(const struct pick_wish *wish, size_t account)
{
	for (unsigned i = 0; i < wish->ntried; i++)
		if (wish->tried[i].channel == wish->channel && wish->tried[i].account == account)
			return true;
	return false;
}

/* Leases of an account whose worker lives; those of the dead are remembered for freeing. */
static unsigned
live_leases(struct pick_view *v, uint32_t number)
{
	unsigned live = 0;
	bool dead = false;

	for (unsigned i = 0; i < v->slots->n; i++) {
		const struct slot_row *row = &v->slots->seen[i].row;

		if (row->channel != v->pc->number || row->account != number)
			continue;
		if (slot_lives(v->slot, v->slots->seen[i].number))
			live++;
		else
			dead = true;
	}
	if (dead && v->ndead < NELEM(v->dead))
		v->dead[v->ndead++] = number;
	return live;
}

bool
pick_has_room(struct pick_view *v, const struct pool_seat *seat, uint32_t number)
{
	if (seat->limit == 0 || v->pc->in_flight[number] < seat->limit)
		return true;
	return live_leases(v, number) < seat->limit;
}

/* A deadline as far ahead as is allowed; the account is remembered for mending if it was further. */
static int64_t
clamp(struct pick_view *v, uint32_t number, int64_t until_ms, int64_t most_ms)
{
	int64_t clamped = cooldown_clamp_ms(until_ms, most_ms, v->now);

	if (clamped != until_ms && v->nstrange < NELEM(v->strange))
		v->strange[v->nstrange++] = number;
	return clamped;
}

/* How this model rests on the account; *until_ms and *guessed as the row says. */
static enum score_out
judge_model(struct pick_view *v, uint32_t number, int64_t *until_ms, bool *guessed)
{
	struct cooldown_pair pair;
	struct account_ref ref = {v->pc->number, number};

	if (cooldown_get(v->txn, ref, v->wish->model, &pair) != STORE_OK)
		return SCORE_IN;
	*until_ms = clamp(v, number, pair.row.until_ms, v->most_rest_ms);
	if (*until_ms <= v->now.v)
		return SCORE_IN;
	*guessed = pair.row.guessed;
	return pair.row.kind == VERDICT_MODEL_MISSING ? SCORE_MODEL_MISSING : SCORE_MODEL_COOLING;
}

/* What the configuration alone says. */
static enum score_out
judge_settings(
    const struct pick_view *v, const struct pool_seat *seat, const struct account_row *row)
{
	const struct conf_account *account = &v->channel->accounts[seat->index];

	if (seat->off || (row->flags & ACCOUNT_DISABLED))
		return SCORE_DISABLED;
	if (v->wish->realm.n > 0 && !text_equal(account->realm, v->wish->realm))
		return SCORE_REALM;
	if (seat->picky && v->model.n > 0 && !conf_serves(&account->models, v->model))
		return SCORE_MODEL;
	return seat->weightless && !v->pc->unweighted ? SCORE_NO_WEIGHT : SCORE_IN;
}

/* May a probe try a resting account before its time? */
enum probing {
	PROBE_GUESSED, /* nobody said how long it would rest */
	PROBE_STATED,  /* only with all_cooling: any */
	PROBE_NEVER,   /* out of credit */
};

static bool
may_probe(const struct pick_view *v, size_t at, enum probing probing)
{
	int all_cooling = v->channel->policy.pool.all_cooling;

	return probing != PROBE_NEVER && all_cooling != CONF_COOLING_OFF &&
	       (probing == PROBE_GUESSED || all_cooling == CONF_COOLING_ANY) &&
	       !was_tried(v->wish, at);
}

/* The account that comes back first, of those that a probe may try before their time. */
static void
note_rest(struct pick_view *v, const struct pool_seat *seat, uint32_t number, int64_t until_ms,
    enum probing probing)
{
	if (v->reason.earliest.v == 0 || until_ms < v->reason.earliest.v)
		v->reason.earliest.v = until_ms;
	if (!may_probe(v, seat->index, probing) ||
	    (v->has_probe && until_ms >= v->probe_until_ms) || !pick_has_room(v, seat, number))
		return;
	v->has_probe = true;
	v->probe = seat->index;
	v->probe_until_ms = until_ms;
}

static enum probing
probing_of(const struct account_row *row, bool cools, bool model_guessed)
{
	if (cools && row->cool_kind == VERDICT_HARD_CREDIT)
		return PROBE_NEVER;
	if (cools && (row->flags & ACCOUNT_GUESSED) == 0)
		return PROBE_STATED;
	return model_guessed ? PROBE_GUESSED : PROBE_STATED;
}

/* Rest and breaker of the account, and of this model on it, in one. */
static enum score_out
judge_rest(struct pick_view *v, const struct pool_seat *seat, uint32_t number,
    const struct account_row *row)
{
	int64_t cool = clamp(v, number, row->cool_until_ms, v->most_rest_ms);
	int64_t until = clamp(v, number, row->breaker_until_ms, v->most_backoff_ms);
	int64_t model_until = 0;
	bool cools = cool > v->now.v, model_guessed = true;
	enum score_out out = SCORE_IN;

	if (cool > until)
		until = cool;
	if (row->flags & ACCOUNT_MODELS)
		out = judge_model(v, number, &model_until, &model_guessed);
	if (out == SCORE_MODEL_MISSING)
		return out;
	if (until > v->now.v)
		out = cools ? SCORE_COOLING : SCORE_BREAKER;
	if (out != SCORE_IN)
		note_rest(v, seat, number, until > model_until ? until : model_until,
		    probing_of(row, cools, model_guessed));
	return out;
}

/* The common case of a long scan: nothing rests. */
static bool
may_rest(const struct pick_view *v, const struct account_row *row)
{
	return row->cool_until_ms > v->now.v || row->breaker_until_ms > v->now.v ||
	       (row->flags & ACCOUNT_MODELS) != 0;
}

enum score_out
pick_judge(struct pick_view *v, const struct pool_seat *seat, uint32_t number,
    const struct account_row *row)
{
	enum score_out out = judge_settings(v, seat, row);

	if (out == SCORE_IN && may_rest(v, row))
		out = judge_rest(v, seat, number, row);
	if (out == SCORE_IN && v->wish->ntried > 0 && was_tried(v->wish, seat->index))
		out = SCORE_TRIED;
	if (out == SCORE_IN && !pick_has_room(v, seat, number))
		out = SCORE_FULL;
	return out;
}
