#include "status_account.h"

#include "judge.h"
#include "probe.h"
#include "store/cooldown.h"
#include "verdict.h"

#include <string.h>

static unsigned
count_leases(const struct slot_list *leases, struct account_ref ref)
{
	unsigned n = 0;

	for (unsigned i = 0; i < leases->n; i++)
		n += leases->seen[i].row.channel == ref.channel &&
		     leases->seen[i].row.account == ref.number;
	return n;
}

enum store_rc
status_view(struct txn *txn, const struct status_frame *f, const struct slot_list *leases,
    size_t channel, size_t account, struct status_view *v)
{
	enum store_rc rc;

	memset(v, 0, sizeof *v);
	v->channel = &f->conf->channels[channel];
	v->account = &v->channel->accounts[account];
	v->row.credits_micros = ACCOUNT_NO_CREDITS;
	if (pool_has(f->pool, channel, account)) {
		v->ref = pool_ref(f->pool, channel, account);
		rc = account_get(txn, v->ref, &v->row);
		if (rc == STORE_OK || rc == STORE_NONE)
			rc = account_stat_get(txn, v->ref, &v->stat);
		if (rc == STORE_OK || rc == STORE_NONE)
			rc = account_note_get(txn, v->ref, &v->note);
		if (rc == STORE_OK || rc == STORE_NONE)
			rc = quota_get(txn, v->ref, &v->quota);
		if (rc != STORE_OK && rc != STORE_NONE)
			return rc;
		v->in_flight = count_leases(leases, v->ref);
	}
	v->state = v->account->enabled ? health_state(&v->row, f->now) : HEALTH_DISABLED;
	return STORE_OK;
}

static void
put_cool(struct emit *e, const struct status_view *v, struct wall_ms now)
{
	if (v->row.cool_until_ms <= now.v) {
		emit_null(e, "cool");
		return;
	}
	emit_object(e, "cool");
	emit_z(e, "kind", verdict_name(v->row.cool_kind));
	emit_time(e, "until", (struct wall_ms){v->row.cool_until_ms});
	if (v->stat.reset_at_ms != 0 && v->stat.reset_at_ms != v->row.cool_until_ms)
		emit_time(e, "reset_at", (struct wall_ms){v->stat.reset_at_ms});
	emit_z(e, "reason", v->note.reason);
	emit_z(e, "rule", v->note.rule);
	emit_i64(e, "status", v->stat.cool_status);
	emit_end(e);
}

static void
put_health(struct emit *e, const struct status_view *v, struct wall_ms now)
{
	unsigned n = ACCOUNT_WINDOW, calls, failures;

	if (v->channel->policy.breaker.ratio_requests < n)
		n = (unsigned)v->channel->policy.breaker.ratio_requests;
	account_window(&v->stat, n, &calls, &failures);
	put_cool(e, v, now);
	emit_i64(e, "soft_streak", v->row.soft_streak);
	emit_i64(e, "fails", v->row.fails);
	emit_i64(e, "consecutive_failures", v->row.consecutive);
	emit_object(e, "window");
	emit_i64(e, "calls", calls);
	emit_i64(e, "failures", failures);
	emit_end(e);
	emit_time(e, "breaker_until",
	    (struct wall_ms){v->row.breaker_until_ms > now.v ? v->row.breaker_until_ms : 0});
	emit_i64(e, "breaker_step", v->row.breaker_step);
	emit_bool(e, "disabled", v->state == HEALTH_DISABLED);
	if (!v->account->enabled)
		emit_z(e, "disabled_reason", "enabled: false in the configuration");
	else if (v->row.flags & ACCOUNT_BY_OPERATOR)
		emit_z(e, "disabled_reason", "by the operator");
	else
		emit_z(e, "disabled_reason",
		    v->row.flags & ACCOUNT_DISABLED ? v->note.disabled_reason : NULL);
	emit_i64(e, "session_dead", v->row.session_dead);
}

static void
put_credits(struct emit *e, const struct status_view *v)
{
	bool stored = v->row.credits_micros != ACCOUNT_NO_CREDITS;
	int64_t micros = stored ? v->row.credits_micros : v->account->credits_micros;

	if (stored || v->account->has_credits)
		emit_real(e, "credits", (double)micros / 1e6, 6);
	else
		emit_null(e, "credits");
}

static void
put_amounts(struct emit *e, const char *key, const struct quota_limits *n,
    const struct quota_limits *limits)
{
	const struct {
		const char *name;
		int64_t n, limit;
	} all[] = {
	    {"rpm", n->rpm, limits->rpm},
	    {"rpd", n->rpd, limits->rpd},
	    {"tpm", n->tpm, limits->tpm},
	    {"tpd", n->tpd, limits->tpd},
	    {"total_tokens", n->total_tokens, limits->total_tokens},
	};

	emit_object(e, key);
	for (size_t i = 0; i < NELEM(all); i++)
		if (all[i].limit > 0)
			emit_i64(e, all[i].name, all[i].n);
	emit_end(e);
}

static void
put_quota(struct emit *e, const struct status_view *v, struct wall_ms now)
{
	struct quota_limits limits = judge_limits(v->account), used, left;
	struct quota_time time = judge_quota_time(v->channel, now);

	if (!quota_is_set(&limits)) {
		emit_null(e, "quota");
		return;
	}
	used = quota_used(&v->quota, time);
	left = quota_left(&v->quota, &limits, time);
	emit_object(e, "quota");
	put_amounts(e, "limits", &limits, &limits);
	put_amounts(e, "used", &used, &limits);
	put_amounts(e, "left", &left, &limits);
	emit_real(e, "ratio", 1 - quota_used_permille(&v->quota, &limits, time) / 1000.0, 3);
	emit_end(e);
}

static void
put_probe(struct emit *e, const struct account_stat *s)
{
	const char *result = probe_result_name(s->probe_result);

	if (result == NULL) {
		emit_null(e, "last_probe");
		return;
	}
	emit_object(e, "last_probe");
	emit_time(e, "at", (struct wall_ms){s->probe_at_ms});
	emit_z(e, "result", result);
	emit_end(e);
}

static void
put_counters(struct emit *e, const struct status_view *v)
{
	const struct account_stat *s = &v->stat;
	uint64_t requests = (uint64_t)v->row.success + v->row.errors;

	put_credits(e, v);
	emit_i64(e, "calls", (int64_t)s->calls);
	emit_i64(e, "success", v->row.success);
	emit_i64(e, "errors", v->row.errors);
	emit_i64(e, "rate_limited", (int64_t)s->rate_limited);
	if (requests == 0)
		emit_null(e, "success_rate");
	else
		emit_real(e, "success_rate", (double)v->row.success / (double)requests, 4);
	emit_object(e, "tokens");
	emit_i64(e, "prompt", (int64_t)s->prompt);
	emit_i64(e, "completion", (int64_t)s->completion);
	emit_i64(e, "cached", (int64_t)s->cached);
	emit_i64(e, "reasoning", (int64_t)s->reasoning);
	emit_end(e);
	emit_object(e, "latency_ms");
	emit_i64(e, "avg", s->latency_n == 0 ? 0 : (int64_t)(s->latency_total_ms / s->latency_n));
	emit_i64(e, "max", (int64_t)s->latency_max_ms);
	emit_i64(e, "total", (int64_t)s->latency_total_ms);
	emit_end(e);
	put_probe(e, s);
	emit_time(
	    e, "last_used", (struct wall_ms){v->row.flags & ACCOUNT_PICKED ? v->row.picked_ms : 0});
	if (s->last_error_ms == 0) {
		emit_null(e, "last_error");
		return;
	}
	emit_object(e, "last_error");
	emit_time(e, "at", (struct wall_ms){s->last_error_ms});
	emit_z(e, "kind", verdict_name(s->last_kind));
	emit_i64(e, "status", s->last_status);
	emit_end(e);
}

struct model_list {
	struct emit *e;
	struct account_ref ref;
	struct wall_ms now;
};

static void
put_model(const struct cooldown_pair *pair, void *arg)
{
	struct model_list *list = arg;
	struct emit *e = list->e;

	if (pair->row.channel != list->ref.channel || pair->row.account != list->ref.number ||
	    pair->row.until_ms <= list->now.v)
		return;
	emit_object(e, NULL);
	emit_z(e, "model", pair->model);
	emit_time(e, "until", (struct wall_ms){pair->row.until_ms});
	if (pair->row.reset_at_ms != 0 && pair->row.reset_at_ms != pair->row.until_ms)
		emit_time(e, "reset_at", (struct wall_ms){pair->row.reset_at_ms});
	emit_z(e, "reason",
	    pair->row.reason[0] != '\0' ? pair->row.reason : verdict_name(pair->row.kind));
	emit_z(e, "kind", verdict_name(pair->row.kind));
	emit_i64(e, "status", pair->row.status);
	emit_end(e);
}

static void
put_fingerprint(struct emit *e, const uint8_t fingerprint[8])
{
	char hex[16];

	text_hex(fingerprint, sizeof hex, hex);
	emit_text(e, "fingerprint", (struct span){hex, sizeof hex});
}

enum store_rc
status_view_put(struct emit *e, struct txn *txn, const struct status_view *v, struct wall_ms now)
{
	struct model_list list = {e, v->ref, now};
	enum store_rc rc = STORE_OK;

	emit_object(e, NULL);
	emit_text(e, "id", v->account->id);
	emit_text(e, "realm", v->account->realm);
	put_fingerprint(e, v->account->fingerprint);
	emit_z(e, "state", health_state_name(v->state));
	put_health(e, v, now);
	emit_i64(e, "in_flight", v->in_flight);
	emit_i64(e, "max_in_flight", v->account->max_in_flight);
	put_quota(e, v, now);
	put_counters(e, v);
	emit_array(e, "rate_limited_models");
	if (v->row.flags & ACCOUNT_MODELS)
		rc = cooldown_walk(txn, put_model, &list);
	emit_end(e);
	emit_end(e);
	return rc;
}
