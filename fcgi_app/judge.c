#include "judge.h"

#include "store/cooldown.h"
#include "store/slot.h"
#include "store/tally.h"
#include "verdict.h"

#include <string.h>

static enum store_rc
read_leases(struct judge *j)
{
	enum store_rc rc = slot_walk(j->txn, j->slots);

	if (rc != STORE_OK)
		return rc;
	for (unsigned i = 0; i < j->slots->n; i++) {
		const struct slot_row *row = &j->slots->seen[i].row;

		if (row->channel == j->pc->number && row->account < j->pc->top)
			j->pc->in_flight[row->account]++;
	}
	return STORE_OK;
}

void
judge_close(struct judge *j)
{
	for (unsigned i = 0; i < j->slots->n; i++) {
		const struct slot_row *row = &j->slots->seen[i].row;

		if (row->channel == j->pc->number && row->account < j->pc->top)
			j->pc->in_flight[row->account] = 0;
	}
}

static bool
was_tried(const struct pick_wish *wish, size_t account)
{
	for (unsigned i = 0; i < wish->ntried; i++)
		if (wish->tried[i].channel == wish->channel && wish->tried[i].account == account)
			return true;
	return false;
}

bool
judge_note_dead(struct judge *j, uint32_t number)
{
	for (unsigned i = 0; i < j->ndead; i++)
		if (j->dead[i] == number)
			return true;
	if (j->ndead == NELEM(j->dead))
		return false;
	j->dead[j->ndead++] = number;
	return true;
}

unsigned
judge_in_flight(struct judge *j, uint32_t number)
{
	unsigned live = 0;
	bool dead = false;

	for (unsigned i = 0; i < j->slots->n; i++) {
		const struct slot_row *row = &j->slots->seen[i].row;

		if (row->channel != j->pc->number || row->account != number)
			continue;
		if (slot_lives(j->slot, j->slots->seen[i].number))
			live++;
		else
			dead = true;
	}
	if (dead)
		judge_note_dead(j, number);
	return live;
}

bool
judge_has_room(struct judge *j, const struct pool_seat *seat)
{
	uint32_t number = (uint32_t)(seat - j->pc->seats);

	if (seat->limit == 0 || j->pc->in_flight[number] < seat->limit)
		return true;
	return judge_in_flight(j, number) < seat->limit;
}

/* A deadline as far ahead as is allowed; the account is remembered for mending if it was further. */
static int64_t
clamp(struct judge *j, uint32_t number, int64_t until_ms, int64_t most_ms)
{
	int64_t clamped = cooldown_clamp_ms(until_ms, most_ms, j->now);

	if (clamped != until_ms && j->nstrange < NELEM(j->strange))
		j->strange[j->nstrange++] = number;
	return clamped;
}

/* How this model rests on the account; *until_ms and *guessed as the row says. */
static enum score_out
judge_model(struct judge *j, uint32_t number, int64_t *until_ms, bool *guessed)
{
	struct cooldown_pair pair;
	struct account_ref ref = {j->pc->number, number};

	if (cooldown_get(j->txn, ref, j->wish->model, &pair) != STORE_OK)
		return SCORE_IN;
	*until_ms = clamp(j, number, pair.row.until_ms, j->most_rest_ms);
	if (*until_ms <= j->now.v)
		return SCORE_IN;
	*guessed = pair.row.guessed;
	return pair.row.kind == VERDICT_MODEL_MISSING ? SCORE_MODEL_MISSING : SCORE_MODEL_COOLING;
}

/* What the configuration alone says. */
static enum score_out
judge_settings(const struct judge *j, const struct pool_seat *seat, const struct account_row *row)
{
	const struct conf_account *account = &j->channel->accounts[seat->index];

	if (seat->off || (row->flags & ACCOUNT_DISABLED))
		return SCORE_DISABLED;
	if (j->wish->realm.n > 0 && !text_equal(account->realm, j->wish->realm))
		return SCORE_REALM;
	if (seat->picky && j->model.n > 0 && !conf_serves(&account->models, j->model))
		return SCORE_MODEL;
	return seat->weightless && !j->pc->unweighted ? SCORE_NO_WEIGHT : SCORE_IN;
}

static bool
may_probe(const struct judge *j, size_t at, enum judge_probing probing)
{
	int all_cooling = j->channel->policy.pool.all_cooling;

	return probing != JUDGE_NEVER && all_cooling != CONF_COOLING_OFF &&
	       (probing == JUDGE_GUESSED || all_cooling == CONF_COOLING_ANY) &&
	       !was_tried(j->wish, at);
}

/* The account that comes back first, of those that a probe may try before their time. */
static void
note_rest(
    struct judge *j, const struct pool_seat *seat, int64_t until_ms, enum judge_probing probing)
{
	j->until_ms = until_ms;
	if (j->reason.earliest.v == 0 || until_ms < j->reason.earliest.v)
		j->reason.earliest.v = until_ms;
	if (!may_probe(j, seat->index, probing) ||
	    (j->has_probe && until_ms >= j->probe_until_ms) || !judge_has_room(j, seat))
		return;
	j->has_probe = true;
	j->probe = seat->index;
	j->probe_until_ms = until_ms;
}

/* When everything that holds this account back is over, and whether a probe may come before. */
struct resting {
	enum score_out out;
	int64_t until_ms;
	enum judge_probing probing;
};

static enum judge_probing
probing_of(const struct account_row *row, bool cools, bool model_guessed)
{
	if (cools && row->cool_kind == VERDICT_HARD_CREDIT)
		return JUDGE_NEVER;
	return (!cools || (row->flags & ACCOUNT_GUESSED)) && model_guessed ? JUDGE_GUESSED
	                                                                   : JUDGE_STATED;
}

static struct resting
rest_of(struct judge *j, uint32_t number, const struct account_row *row)
{
	int64_t cool = clamp(j, number, row->cool_until_ms, j->most_rest_ms);
	int64_t broken = clamp(j, number, row->breaker_until_ms, j->most_backoff_ms),
	        model_until = 0;
	bool cools = cool > j->now.v, model_guessed = true;
	struct resting rest = {SCORE_IN, cool > broken ? cool : broken, JUDGE_STATED};

	if (row->flags & ACCOUNT_MODELS)
		rest.out = judge_model(j, number, &model_until, &model_guessed);
	if (rest.out == SCORE_MODEL_MISSING)
		return rest;
	if (rest.until_ms > j->now.v)
		rest.out = cools ? SCORE_COOLING : SCORE_BREAKER;
	if (model_until > rest.until_ms)
		rest.until_ms = model_until;
	rest.probing = probing_of(row, cools, model_guessed);
	return rest;
}

static enum score_out
judge_rest(
    struct judge *j, const struct pool_seat *seat, uint32_t number, const struct account_row *row)
{
	struct resting rest;

	if (row->cool_until_ms <= j->now.v && row->breaker_until_ms <= j->now.v &&
	    (row->flags & ACCOUNT_MODELS) == 0)
		return SCORE_IN; /* the common case of a long scan */
	rest = rest_of(j, number, row);
	if (rest.out != SCORE_IN && rest.out != SCORE_MODEL_MISSING)
		note_rest(j, seat, rest.until_ms, rest.probing);
	return rest.out;
}

/* When room comes back, a spent quota is a rest like any other; a probe never helps. */
static bool
is_spent(struct judge *j, const struct pool_seat *seat, uint32_t number)
{
	struct quota_time time = judge_quota_time(j->channel, j->now);
	struct quota_fit fit = judge_quota_fit(j, seat, number);

	if (fit.hit == QUOTA_FITS)
		return false;
	if (fit.frees == QUOTA_NEXT_MINUTE)
		note_rest(j, seat, ((int64_t)time.minute + 1) * 60000, JUDGE_NEVER);
	else if (fit.frees == QUOTA_NEXT_DAY)
		note_rest(j, seat, pool_next_day(j->channel, j->now).v, JUDGE_NEVER);
	return true;
}

/* What the channel's breaker asks of its accounts, whatever this request wants. */
static void
note_facts(struct judge *j, const struct pool_seat *seat, const struct account_row *row)
{
	if (row->consecutive > j->consecutive)
		j->consecutive = row->consecutive;
	if (!j->active && !seat->off && health_state(row, j->now) == HEALTH_ACTIVE)
		j->active = true;
}

enum score_out
judge_account(struct judge *j, const struct pool_seat *seat, const struct account_row *row)
{
	uint32_t number = (uint32_t)(seat - j->pc->seats);
	enum score_out out;

	j->until_ms = 0;
	note_facts(j, seat, row);
	out = judge_settings(j, seat, row);
	if (out == SCORE_IN)
		out = judge_rest(j, seat, number, row);
	if (out == SCORE_IN && j->wish->ntried > 0 && was_tried(j->wish, seat->index))
		out = SCORE_TRIED;
	if (out == SCORE_IN && !judge_has_room(j, seat))
		out = SCORE_FULL;
	if (out == SCORE_IN && seat->metered && is_spent(j, seat, number))
		out = SCORE_QUOTA;
	return out;
}

/* A lease that is not settled yet was not written into the account's row: the newest of them is the last pick. */
static void
running_pick(const struct judge *j, uint32_t number, struct score_candidate *c)
{
	for (unsigned i = 0; i < j->slots->n; i++) {
		const struct slot_row *row = &j->slots->seen[i].row;

		if (row->channel != j->pc->number || row->account != number ||
		    (c->picked.v != 0 &&
		        !health_after(txn_number(j->txn), row->taken_txn, c->picked_txn)))
			continue;
		c->picked.v = row->started_ms;
		c->picked_txn = row->taken_txn;
	}
}

/* Nearly used up: half the weight. */
static double
quota_factor(struct judge *j, const struct pool_seat *seat, uint32_t number)
{
	struct quota_limits limits = judge_limits(&j->channel->accounts[seat->index]);
	struct quota_row row;

	quota_at(&j->quotas, number, &row);
	return quota_used_permille(&row, &limits, judge_quota_time(j->channel, j->now)) >=
	               QUOTA_HIGH_PERMILLE
	           ? 0.5
	           : 1;
}

void
judge_standing(struct judge *j, const struct pool_seat *seat, const struct account_row *row,
    struct score_candidate *c)
{
	uint32_t number = (uint32_t)(seat - j->pc->seats);

	c->priority = seat->priority;
	c->cost_tier = j->tiers ? (uint8_t)price_tier(&j->prices, number) : 0;
	c->bound = j->count_bound && j->pc->bound[number] > 0;
	c->credits_micros =
	    row->credits_micros != ACCOUNT_NO_CREDITS ? row->credits_micros : seat->credits_micros;
	c->has_credits = c->credits_micros != ACCOUNT_NO_CREDITS;
}

void
judge_candidate(struct judge *j, const struct pool_seat *seat, const struct account_row *row,
    struct score_candidate *c)
{
	uint32_t number = (uint32_t)(seat - j->pc->seats);

	judge_standing(j, seat, row, c);
	c->account = seat->index;
	c->id = seat->id;
	c->weight = seat->weight;
	c->factor = seat->metered ? quota_factor(j, seat, number) : 1;
	c->rank = 0;
	c->picked.v = row->flags & ACCOUNT_PICKED ? row->picked_ms : 0;
	c->picked_txn = row->picked_txn;
	if (j->pc->in_flight[number] > 0)
		running_pick(j, number, c);
	c->success = row->success;
	c->errors = row->errors;
}

/* At most one probe of a resting account at a time on a channel, over all processes. */
bool
judge_probe_runs(const struct judge *j)
{
	for (unsigned i = 0; i < j->slots->n; i++) {
		const struct slot_row *row = &j->slots->seen[i].row;

		if (row->channel == j->pc->number && row->kind == SLOT_PROBE &&
		    slot_lives(j->slot, j->slots->seen[i].number))
			return true;
	}
	return false;
}

enum store_rc
judge_free_dead(struct judge *j)
{
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < j->ndead && rc == STORE_OK; i++) {
		struct account_ref ref = {j->pc->number, j->dead[i]};
		unsigned freed = 0;

		rc = judge_return_quotas(j, ref.number);
		if (rc == STORE_OK)
			rc = slot_reap(j->txn, j->slot, ref, &freed);
		j->reason.freed += freed;
	}
	if (rc == STORE_OK && j->reason.freed > 0)
		rc = tally_add(j->txn, TALLY_DEAD_LEASES, j->reason.freed);
	return rc;
}

static void
stat_facts(struct judge *j, uint32_t number, struct strategy_facts *facts)
{
	struct account_stat stat;

	if (account_stat_get(j->txn, (struct account_ref){j->pc->number, number}, &stat) !=
	    STORE_OK)
		return;
	if (stat.today == pool_day(j->channel, j->now)) {
		facts->tokens_today = (double)stat.today_tokens;
		facts->requests_today = stat.today_requests;
	}
	if (stat.latency_n > 0)
		facts->latency_ms = (double)stat.latency_total_ms / (double)stat.latency_n;
}

static double
least_left(const struct quota_limits *left)
{
	const int64_t all[] = {left->tpm, left->tpd, left->total_tokens};
	double least = -1;

	for (size_t i = 0; i < NELEM(all); i++)
		if (all[i] >= 0 && (least < 0 || (double)all[i] < least))
			least = (double)all[i];
	if (least < 0) /* only requests are limited */
		least = (double)(left->rpm >= 0 && (left->rpd < 0 || left->rpm < left->rpd)
		                     ? left->rpm
		                     : left->rpd);
	return least;
}

void
judge_facts(
    struct judge *j, const struct pool_seat *seat, unsigned needs, struct strategy_facts *facts)
{
	uint32_t number = (uint32_t)(seat - j->pc->seats);

	if (needs & STRATEGY_SMOOTH)
		facts->smooth = j->pc->smooth[number] / 1000.0;
	if (needs & STRATEGY_STAT)
		stat_facts(j, number, facts);
	if ((needs & STRATEGY_QUOTA) && seat->metered) {
		struct quota_limits limits = judge_limits(&j->channel->accounts[seat->index]), left;
		struct quota_row row;

		quota_at(&j->quotas, number, &row);
		left = quota_left(&row, &limits, judge_quota_time(j->channel, j->now));
		facts->quota_left = least_left(&left);
	}
}

unsigned
judge_permits(const struct judge *j, uint32_t round)
{
	unsigned n = 0;

	for (unsigned i = 0; i < j->slots->n; i++) {
		const struct slot_row *row = &j->slots->seen[i].row;

		n += row->channel == j->pc->number && row->kind == SLOT_PERMIT &&
		     row->round == round && slot_lives(j->slot, j->slots->seen[i].number);
	}
	return n;
}

/* The session's account, or, where it has none, how many sessions each account has. */
static enum store_rc
read_session(struct judge *j)
{
	struct sticky_row row;
	struct sticky_id id = {
	    j->wish->session, j->pc->number, j->now, j->wish->pool->conf->sticky.ttl_ms};
	enum store_rc rc = sticky_get(j->txn, &id, &row);

	if (rc == STORE_OK) {
		j->reason.session.bound = true;
		j->reason.session.account = row.account;
		/* until it is judged: an account that is not configured any more is gone for good */
		j->reason.session.trouble = STICKY_LASTING;
		return rc;
	}
	if (rc != STORE_NONE)
		return rc;
	j->count_bound = true;
	return sticky_bound(j->txn, j->pc->number, j->pc->top, j->pc->bound);
}

enum store_rc
judge_open(struct judge *j, struct txn *txn, const struct slot *slot, const struct pick_wish *wish,
    struct wall_ms now)
{
	enum store_rc rc;

	j->txn = txn;
	j->slot = slot;
	j->wish = wish;
	j->channel = &wish->pool->conf->channels[wish->channel];
	j->pc = &wish->pool->channels[wish->channel];
	j->now = now;
	j->model = text_span(wish->model);
	judge_allow(j);
	j->reason = (struct pick_reason){.result = PICK_NOBODY};
	j->tiers = j->channel->policy.pool.cost_tiers && j->model.n > 0;
	j->count_bound = j->active = j->has_probe = false;
	j->consecutive = 0;
	j->ndead = j->nstrange = 0;
	j->slots = wish->pool->slots;
	j->slots->n = 0;
	quota_open(txn, j->pc->number, &j->quotas);
	rc = read_leases(j);
	if (rc == STORE_OK && j->tiers)
		rc = price_open(txn, j->pc->number, wish->model,
		    j->channel->policy.pool.cost_ttl_ms, now, &j->prices);
	return rc == STORE_OK && wish->session != NULL ? read_session(j) : rc;
}
