#include "charge.h"

#include "conf/known.h"
#include "judge.h"

#include "store/price.h"

static int64_t
positive(int64_t v)
{
	return v > 0 ? v : 0;
}

/* In millionths; -1 = unknown. */
static int64_t
cost_of(const struct dialect_usage *usage, const struct conf_cost *price)
{
	int64_t cached = positive(usage->cached), prompt = positive(usage->prompt);
	__int128 cost;

	if (usage->has_credit)
		return positive(usage->credit_micros);
	if (price == NULL || !price->given)
		return -1;
	if (cached > prompt)
		cached = prompt;
	cost = ((__int128)(prompt - cached) * price->input_micros +
	           (__int128)cached * price->cached_micros +
	           (__int128)positive(usage->completion) * price->output_micros) /
	       1000;
	return cost > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)cost;
}

static enum store_rc
observe_price(struct txn *txn, const struct charge *c)
{
	const struct conf_policy *policy = &c->conf->channels[c->lease->channel].policy;
	struct price_rule rule = {
	    (uint32_t)(policy->pool.cost_alpha * 1e6 + 0.5), policy->pool.cost_ttl_ms};
	uint64_t tokens =
	    (uint64_t)positive(c->usage->prompt) + (uint64_t)positive(c->usage->completion);

	if (c->verdict != VERDICT_OK || c->cost_micros < 0 || c->model[0] == '\0')
		return STORE_OK;
	return price_observe(
	    txn, c->lease->ref, c->model, price_unit(c->cost_micros, tokens), &rule, c->now);
}

static enum store_rc
book(struct txn *txn, const struct charge *c)
{
	const struct conf_channel *channel = &c->conf->channels[c->lease->channel];
	struct ledger_key key = {
	    .day = ledger_day(c->now),
	    .client = c->client,
	    .channel = channel->name.p,
	    .account = channel->accounts[c->lease->account].id.p,
	    .model = c->model,
	};
	struct ledger_sum sum = {
	    .requests = 1,
	    .failed = c->verdict != VERDICT_OK && c->verdict != VERDICT_CANCELLED,
	    .cancelled = c->verdict == VERDICT_CANCELLED,
	    .prompt = (uint64_t)positive(c->usage->prompt),
	    .completion = (uint64_t)positive(c->usage->completion),
	    .cached = (uint64_t)positive(c->usage->cached),
	    .cache_write = (uint64_t)positive(c->usage->cache_write),
	    .reasoning = (uint64_t)positive(c->usage->reasoning),
	    .estimated = c->usage->estimated,
	    .priced = c->cost_micros >= 0,
	    .cost_micros = c->cost_micros >= 0 ? c->cost_micros : 0,
	};

	return ledger_add(txn, &key, &sum);
}

static enum store_rc
settle_quota(struct txn *txn, const struct charge *c, unsigned *crossed_out)
{
	const struct conf_channel *channel = &c->conf->channels[c->lease->channel];
	struct quota_limits limits = judge_limits(&channel->accounts[c->lease->account]);
	struct quota_time time = judge_quota_time(channel, c->now);
	struct quota_row row;
	enum store_rc rc;

	*crossed_out = 0;
	if (!c->lease->has_quota)
		return STORE_OK;
	rc = quota_get(txn, c->lease->ref, &row);
	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	quota_settle(&row, &c->lease->hold,
	    (uint64_t)positive(c->usage->prompt) + (uint64_t)positive(c->usage->completion),
	    c->sent, time);
	*crossed_out = quota_crossed(&row, &limits, time);
	return quota_put(txn, c->lease->ref, &row);
}

int64_t
charge_cost(const struct charge *c)
{
	struct span model = text_span(c->model);

	return c->verdict == VERDICT_OK || c->usage->seen
	           ? cost_of(c->usage, known_price(c->conf, c->lease->channel, model))
	           : -1;
}

enum store_rc
charge_apply(struct txn *txn, const struct charge *c, unsigned *crossed_out)
{
	enum store_rc rc = observe_price(txn, c);

	if (rc == STORE_OK)
		rc = book(txn, c);
	return rc == STORE_OK ? settle_quota(txn, c, crossed_out) : rc;
}

enum store_rc
charge_nothing(struct txn *txn, const struct charge *c)
{
	unsigned crossed;

	return settle_quota(txn, c, &crossed);
}
