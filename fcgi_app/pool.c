#include "pool.h"

#include "store/roster.h"
#include "strategy.h"

#include <stdlib.h>
#include <string.h>

struct enrolment {
	const struct conf *conf;
	struct pool *pool;
	bool create;
	bool stale; /* something is missing in the store, or a key changed */
};

static void *
must_alloc(size_t n, size_t size)
{
	void *p = calloc(n == 0 ? 1 : n, size);

	if (p == NULL)
		die("no memory for %zu accounts", n);
	return p;
}

static enum store_rc
enrol_account(struct txn *txn, struct enrolment *e, const struct conf_channel *channel, size_t at)
{
	struct pool_channel *pc = &e->pool->channels[channel->index];
	const struct conf_account *account = &channel->accounts[at];
	char id[128];
	struct account_ref ref;
	bool rekeyed;
	enum store_rc rc;

	text_clean(id, sizeof id, account->id);
	rc = roster_account(txn, pc->number, id, account->fingerprint, e->create, &ref, &rekeyed);
	if (rc == STORE_NONE && !e->create) {
		pc->numbers[at] = UINT32_MAX;
		e->stale = true;
		return STORE_OK;
	}
	if (rc != STORE_OK)
		return rc;
	e->stale = e->stale || rekeyed;
	pc->numbers[at] = ref.number;
	if (ref.number + 1 > pc->top)
		pc->top = ref.number + 1;
	return STORE_OK;
}

static enum store_rc
enrol_channel(struct txn *txn, struct enrolment *e, const struct conf_channel *channel)
{
	struct pool_channel *pc = &e->pool->channels[channel->index];
	char name[128];
	enum store_rc rc;

	text_clean(name, sizeof name, channel->name);
	rc = roster_channel(txn, name, e->create, &pc->number);
	if (rc == STORE_NONE && !e->create) {
		pc->number = POOL_NO_CHANNEL;
		for (size_t i = 0; i < channel->naccounts; i++)
			pc->numbers[i] = UINT32_MAX;
		e->stale = e->stale || channel->naccounts > 0;
		return STORE_OK;
	}
	for (size_t i = 0; i < channel->naccounts && rc == STORE_OK; i++)
		rc = enrol_account(txn, e, channel, i);
	return rc;
}

static enum store_rc
enrol(struct txn *txn, void *arg)
{
	struct enrolment *e = arg;
	enum store_rc rc = STORE_OK;

	for (size_t i = 0; i < e->conf->nchannels && rc == STORE_OK; i++)
		rc = enrol_channel(txn, e, &e->conf->channels[i]);
	return rc;
}

static struct pool_seat
seat_of(const struct conf_channel *channel, uint32_t index)
{
	const struct conf_account *account = &channel->accounts[index];

	return (struct pool_seat){
	    .index = index,
	    .limit = account->max_in_flight > 0 && account->max_in_flight < UINT32_MAX
	                 ? (uint32_t)account->max_in_flight
	                 : 0,
	    .off = !account->enabled,
	    .id = account->id,
	    .priority = account->priority,
	    .weight = account->weight,
	    .credits_micros = account->has_credits ? account->credits_micros : ACCOUNT_NO_CREDITS,
	    .picky = account->models.n > 0,
	    .weightless = account->weight <= 0,
	    .metered = account->quota.total_tokens > 0 || account->quota.rpm > 0 ||
	               account->quota.rpd > 0 || account->quota.tpm > 0 || account->quota.tpd > 0,
	};
}

static void
seat_channel(struct pool_channel *pc, const struct conf_channel *channel)
{
	pc->seats = must_alloc(pc->top, sizeof *pc->seats);
	pc->in_flight = must_alloc(pc->top, sizeof *pc->in_flight);
	if (strategy_needs((enum conf_strategy)channel->policy.pool.strategy) & STRATEGY_SMOOTH)
		pc->smooth = must_alloc(pc->top, sizeof *pc->smooth);
	pc->bound = must_alloc(pc->top, sizeof *pc->bound);
	pc->judged = must_alloc(pc->naccounts, sizeof *pc->judged);
	for (uint32_t i = 0; i < pc->top; i++)
		pc->seats[i].index = UINT32_MAX;
	for (uint32_t i = 0; i < pc->naccounts; i++)
		if (pc->numbers[i] != UINT32_MAX)
			pc->seats[pc->numbers[i]] = seat_of(channel, i);
}

static struct health_policy
health_policy(const struct conf_policy *policy)
{
	return (struct health_policy){
	    .threshold = policy->breaker.threshold,
	    .backoff_ms = policy->breaker.backoff_ms.at,
	    .nbackoff = policy->breaker.backoff_ms.n,
	    .disable_after = policy->pool.disable_after,
	    .session_dead_after = policy->cooldown.session_dead_after,
	    .auth_failed_after = policy->cooldown.auth_failed_after,
	};
}

enum err
pool_open(
    struct env *env, const struct conf *conf, bool create, struct pool **pool_out, struct why *why)
{
	struct pool *pool = must_alloc(1, sizeof *pool);
	struct enrolment e = {.conf = conf, .pool = pool};
	enum store_rc rc;

	pool->conf = conf;
	pool->channels = must_alloc(conf->nchannels, sizeof *pool->channels);
	pool->slots = malloc(sizeof *pool->slots); /* not cleared: only what is used gets touched */
	if (pool->slots == NULL)
		die("no memory for %zu slots", NELEM(pool->slots->seen));
	for (size_t i = 0; i < conf->nchannels; i++) {
		struct pool_channel *pc = &pool->channels[i];

		pc->naccounts = (uint32_t)conf->channels[i].naccounts;
		pc->numbers = must_alloc(pc->naccounts, sizeof *pc->numbers);
		pc->health = health_policy(&conf->channels[i].policy);
		pc->unweighted = true;
		for (size_t a = 0; a < conf->channels[i].naccounts; a++) {
			pc->unweighted =
			    pc->unweighted && conf->channels[i].accounts[a].weight <= 0;
			pc->picky = pc->picky || conf->channels[i].accounts[a].models.n > 0;
		}
	}
	rc = env_view(env, enrol, &e);
	if (rc == STORE_OK && create && e.stale) {
		e.create = true;
		rc = env_update(env, enrol, &e);
	}
	if (rc != STORE_OK) {
		err_why(why, "store: %s", env_error(env));
		pool_free(&pool);
		return ERR_STORE;
	}
	for (size_t i = 0; i < conf->nchannels; i++)
		seat_channel(&pool->channels[i], &conf->channels[i]);
	*pool_out = pool;
	return ERR_OK;
}

void
pool_free(struct pool **pool)
{
	if (*pool == NULL)
		return;
	for (size_t i = 0; i < (*pool)->conf->nchannels; i++) {
		free((*pool)->channels[i].numbers);
		free((*pool)->channels[i].seats);
		free((*pool)->channels[i].in_flight);
		free((*pool)->channels[i].smooth);
		free((*pool)->channels[i].bound);
		free((*pool)->channels[i].judged);
	}
	free((*pool)->slots);
	free((*pool)->channels);
	free(*pool);
	*pool = NULL;
}

struct account_ref
pool_ref(const struct pool *pool, size_t channel, size_t account)
{
	const struct pool_channel *pc = &pool->channels[channel];

	return (struct account_ref){pc->number, pc->numbers[account]};
}

bool
pool_has(const struct pool *pool, size_t channel, size_t account)
{
	return pool->channels[channel].numbers[account] != UINT32_MAX;
}

struct target_policy
pool_target_policy(const struct conf *conf)
{
	return (struct target_policy){
	    .window_ms = conf->routing.window_ms,
	    .fail_after = (uint32_t)conf->routing.model_fail_after,
	    .cooldown_ms = conf->routing.model_cooldown_ms,
	};
}

struct target_ref
pool_target(const struct pool *pool, size_t channel, struct span model)
{
	return (struct target_ref){pool->channels[channel].number, {model.p, model.n}};
}

uint32_t
pool_day(const struct conf_channel *channel, struct wall_ms now)
{
	const struct zone *zone = channel->policy.cooldown.zone;
	int64_t offset_ms = zone == NULL ? 0 : (int64_t)zone_offset(zone, now) * 1000;

	return (uint32_t)((now.v + offset_ms) / 86400000);
}

struct wall_ms
pool_next_day(const struct conf_channel *channel, struct wall_ms now)
{
	const struct zone *zone = channel->policy.cooldown.zone;

	if (zone == NULL)
		return (struct wall_ms){(now.v / 86400000 + 1) * 86400000};
	return zone_next(zone, now, 0, 0);
}
