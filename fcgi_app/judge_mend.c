#include "judge.h"

#include "store/cooldown.h"
#include "store/journal.h"

#include <stdio.h>

void
judge_allow(struct judge *j)
{
	const struct conf_policy *policy = &j->channel->policy;

	j->most_rest_ms = 25 * 3600 * 1000; /* hard_credit_until on the longest day */
	if (policy->cooldown.stated_max_ms > j->most_rest_ms)
		j->most_rest_ms = policy->cooldown.stated_max_ms;
	if (policy->cooldown.soft_rate_max_ms > j->most_rest_ms)
		j->most_rest_ms = policy->cooldown.soft_rate_max_ms;
	j->most_backoff_ms = 0;
	for (size_t i = 0; i < policy->breaker.backoff_ms.n; i++)
		if (policy->breaker.backoff_ms.at[i] > j->most_backoff_ms)
			j->most_backoff_ms = policy->breaker.backoff_ms.at[i];
}

static enum store_rc
report(struct judge *j, uint32_t number, const char *model, int64_t old_ms, int64_t new_ms)
{
	struct journal_row event = {.level = JOURNAL_WARN,
	    .at_ms = j->now.v,
	    .old_until_ms = old_ms,
	    .new_until_ms = new_ms,
	    .from = "cooling",
	    .to = "cooling",
	    .cause = "clock",
	    .rule = "further ahead than allowed"};

	text_clean(event.channel, sizeof event.channel, j->channel->name);
	text_clean(event.account, sizeof event.account,
	    j->channel->accounts[j->pc->seats[number].index].id);
	text_clean(event.model, sizeof event.model, text_span(model));
	return journal_add(j->txn, &event);
}

static enum store_rc
mend_account(struct judge *j, uint32_t number)
{
	struct account_ref ref = {j->pc->number, number};
	struct account_row row;
	int64_t cool, broken, before;
	enum store_rc rc = account_get(j->txn, ref, &row);

	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	cool = cooldown_clamp_ms(row.cool_until_ms, j->most_rest_ms, j->now);
	broken = cooldown_clamp_ms(row.breaker_until_ms, j->most_backoff_ms, j->now);
	if (cool == row.cool_until_ms && broken == row.breaker_until_ms)
		return STORE_OK;
	before = health_until_ms(&row, j->now);
	row.cool_until_ms = cool;
	row.breaker_until_ms = broken;
	rc = account_put(j->txn, ref, &row);
	return rc == STORE_OK ? report(j, number, "", before, health_until_ms(&row, j->now)) : rc;
}

/* Of the model that is wished for. */
static enum store_rc
mend_model(struct judge *j, uint32_t number)
{
	struct account_ref ref = {j->pc->number, number};
	struct cooldown_pair pair;
	int64_t until, before;
	enum store_rc rc = cooldown_get(j->txn, ref, j->wish->model, &pair);

	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	before = pair.row.until_ms;
	until = cooldown_clamp_ms(before, j->most_rest_ms, j->now);
	if (until == before)
		return STORE_OK;
	pair.row.until_ms = until;
	rc = cooldown_put(j->txn, ref, &pair);
	return rc == STORE_OK ? report(j, number, j->wish->model, before, until) : rc;
}

enum store_rc
judge_mend(struct judge *j)
{
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < j->nstrange && rc == STORE_OK; i++) {
		rc = mend_account(j, j->strange[i]);
		if (rc == STORE_OK)
			rc = mend_model(j, j->strange[i]);
	}
	return rc;
}
