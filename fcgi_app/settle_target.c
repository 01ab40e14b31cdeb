#include "settle_job.h"

#include <string.h>

static uint64_t
positive(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

static struct target_outcome
outcome_of(const struct settle_job *job)
{
	const struct dialect_usage *usage = job->charge.usage;
	bool told = usage->seen && !usage->estimated;

	return (struct target_outcome){
	    .failed = job->outcome->finding->verdict != VERDICT_OK,
	    .named =
	        conf_names(job->pool->conf, settle_channel(job), text_span(job->outcome->model)),
	    .first_content_ms = job->outcome->first_content_ms,
	    .estimated = job->outcome->estimated,
	    .reported = told ? positive(usage->prompt) : 0,
	    .output_tokens = told ? positive(usage->completion) : 0,
	    .cost_micros = job->charge.cost_micros,
	    .tokens = positive(usage->prompt) + positive(usage->completion),
	};
}

/* It is nobody's of the accounts. */
static void
target_event(struct settle_job *job, const struct target_change *change)
{
	const char *kind = verdict_table[job->outcome->finding->verdict].name;
	struct journal_row *event = NULL;

	if (change->rests)
		event = settle_event(job, JOURNAL_WARN, kind);
	else if (change->back)
		event = settle_event(job, JOURNAL_INFO, "success");
	if (event == NULL)
		return;
	settle_event_states(event, change->rests ? "active" : "cooling",
	    change->rests ? "cooling" : "active", change->old_until_ms, change->until_ms);
	event->account[0] = '\0';
	text_clean(event->model, sizeof event->model, text_span(job->outcome->model));
	if (change->back)
		event->status = 0;
}

enum store_rc
settle_target(struct txn *txn, struct settle_job *job)
{
	enum verdict verdict = job->outcome->finding->verdict;
	struct target_ref ref = {
	    job->lease->ref.channel, {job->outcome->model, strlen(job->outcome->model)}};
	struct target_outcome outcome = outcome_of(job);
	struct target_policy policy = pool_target_policy(job->pool->conf);
	struct target_change change;
	enum store_rc rc;

	job->alone = false;
	if (!job->outcome->target ||
	    (verdict != VERDICT_OK && !verdict_table[verdict].target_counts))
		return STORE_OK;
	rc = target_feed(txn, ref, &outcome, &policy, job->now, &change);
	if (rc == STORE_OK) {
		job->alone = change.alone;
		target_event(job, &change);
	}
	return rc;
}
