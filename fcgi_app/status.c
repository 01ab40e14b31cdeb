#include "status.h"

#include "base/date.h"
#include "base/emit.h"
#include "probe.h"
#include "store/cooldown.h"

#include <stdlib.h>
#include <string.h>

#define REALMS_MAX 64

struct count {
	struct span realm;
	unsigned accounts, active, cooling, disabled;
};

/* One account with all its rows. */
struct view {
	const struct conf_channel *channel;
	const struct conf_account *account;
	struct account_ref ref;
	struct account_row row;
	struct account_stat stat;
	struct account_note note;
	unsigned in_flight;
	enum health_state state;
};

struct job {
	const struct status_frame *frame;
	struct buf *out;
	struct txn *txn;
	struct emit emit;
	struct count total, realms[REALMS_MAX];
	unsigned nrealms, in_flight;
	struct slot_list *slots;
	bool one; /* only this account */
	size_t channel, account;
};

static unsigned
count_leases(const struct job *job, struct account_ref ref)
{
	unsigned n = 0;

	for (unsigned i = 0; i < job->slots->n; i++)
		n += job->slots->seen[i].row.channel == ref.channel &&
		     job->slots->seen[i].row.account == ref.number;
	return n;
}

/* Leases of the dead do not count: drop them from the list once. */
static void
drop_dead(struct job *job)
{
	unsigned live = 0;

	for (unsigned i = 0; i < job->slots->n; i++)
		if (slot_lives(job->frame->slot, job->slots->seen[i].number))
			job->slots->seen[live++] = job->slots->seen[i];
	job->slots->n = live;
}

static enum store_rc
view_read(struct job *job, size_t channel, size_t account, struct view *v)
{
	const struct status_frame *f = job->frame;
	enum store_rc rc;

	memset(v, 0, sizeof *v);
	v->channel = &f->conf->channels[channel];
	v->account = &v->channel->accounts[account];
	v->row.credits_micros = ACCOUNT_NO_CREDITS;
	if (pool_has(f->pool, channel, account)) {
		v->ref = pool_ref(f->pool, channel, account);
		rc = account_get(job->txn, v->ref, &v->row);
		if (rc == STORE_OK || rc == STORE_NONE)
			rc = account_stat_get(job->txn, v->ref, &v->stat);
		if (rc == STORE_OK || rc == STORE_NONE)
			rc = account_note_get(job->txn, v->ref, &v->note);
		if (rc != STORE_OK && rc != STORE_NONE)
			return rc;
		v->in_flight = count_leases(job, v->ref);
	}
	v->state = v->account->enabled ? health_state(&v->row, f->now) : HEALTH_DISABLED;
	return STORE_OK;
}

static void
count_one(struct count *count, enum health_state state)
{
	count->accounts++;
	count->active += state == HEALTH_ACTIVE;
	count->cooling += state == HEALTH_COOLING;
	count->disabled += state == HEALTH_DISABLED;
}

static void
count_view(struct job *job, const struct view *v)
{
	unsigned i;

	count_one(&job->total, v->state);
	job->in_flight += v->in_flight;
	if (v->account->realm.n == 0)
		return;
	for (i = 0; i < job->nrealms && !text_equal(job->realms[i].realm, v->account->realm); i++)
		continue;
	if (i == REALMS_MAX)
		return;
	if (i == job->nrealms)
		job->realms[job->nrealms++] = (struct count){.realm = v->account->realm};
	count_one(&job->realms[i], v->state);
}

static const char *
kind_name(uint8_t kind)
{
	return kind < VERDICT__MAX ? verdict_table[kind].name : "unknown";
}

static void
put_cool(struct emit *e, const struct view *v, struct wall_ms now)
{
	if (v->row.cool_until_ms <= now.v) {
		emit_null(e, "cool");
		return;
	}
	emit_object(e, "cool");
	emit_z(e, "kind", kind_name(v->row.cool_kind));
	emit_time(e, "until", (struct wall_ms){v->row.cool_until_ms});
	if (v->stat.reset_at_ms != 0 && v->stat.reset_at_ms != v->row.cool_until_ms)
		emit_time(e, "reset_at", (struct wall_ms){v->stat.reset_at_ms});
	emit_z(e, "reason", v->note.reason);
	emit_z(e, "rule", v->note.rule);
	emit_i64(e, "status", v->stat.cool_status);
	emit_end(e);
}

static void
put_health(struct emit *e, const struct view *v, struct wall_ms now)
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
put_credits(struct emit *e, const struct view *v)
{
	bool stored = v->row.credits_micros != ACCOUNT_NO_CREDITS;
	int64_t micros = stored ? v->row.credits_micros : v->account->credits_micros;

	if (stored || v->account->has_credits)
		emit_real(e, "credits", (double)micros / 1e6, 6);
	else
		emit_null(e, "credits");
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
put_counters(struct emit *e, const struct view *v)
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
	emit_null(e, "quota");
	put_probe(e, s);
	emit_time(
	    e, "last_used", (struct wall_ms){v->row.flags & ACCOUNT_PICKED ? v->row.picked_ms : 0});
	if (s->last_error_ms == 0) {
		emit_null(e, "last_error");
		return;
	}
	emit_object(e, "last_error");
	emit_time(e, "at", (struct wall_ms){s->last_error_ms});
	emit_z(e, "kind", kind_name(s->last_kind));
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
	    pair->row.reason[0] != '\0' ? pair->row.reason : kind_name(pair->row.kind));
	emit_z(e, "kind", kind_name(pair->row.kind));
	emit_i64(e, "status", pair->row.status);
	emit_end(e);
}

static void
put_fingerprint(struct emit *e, const uint8_t fingerprint[8])
{
	char hex[17];

	for (unsigned i = 0; i < 8; i++) {
		hex[2 * i] = "0123456789abcdef"[fingerprint[i] >> 4];
		hex[2 * i + 1] = "0123456789abcdef"[fingerprint[i] & 15];
	}
	hex[16] = '\0';
	emit_z(e, "fingerprint", hex);
}

static enum store_rc
put_account(struct job *job, const struct view *v)
{
	struct emit *e = &job->emit;
	struct model_list list = {e, v->ref, job->frame->now};
	enum store_rc rc = STORE_OK;

	emit_object(e, NULL);
	emit_text(e, "id", v->account->id);
	emit_text(e, "realm", v->account->realm);
	put_fingerprint(e, v->account->fingerprint);
	emit_z(e, "state", health_state_name(v->state));
	put_health(e, v, job->frame->now);
	emit_i64(e, "in_flight", v->in_flight);
	emit_i64(e, "max_in_flight", v->account->max_in_flight);
	put_counters(e, v);
	emit_array(e, "rate_limited_models");
	if (v->row.flags & ACCOUNT_MODELS)
		rc = cooldown_walk(job->txn, put_model, &list);
	emit_end(e);
	emit_end(e);
	return rc;
}

static void
put_breaker(struct emit *e, const struct conf_channel *channel)
{
	static const char *const names[] = {
	    "pool_exhausted", "error_rate", "latency", "consecutive_fail"};

	emit_object(e, "breaker");
	emit_z(e, "state", "closed");
	emit_null(e, "until");
	emit_null(e, "trigger");
	emit_array(e, "triggers");
	for (unsigned i = 0; i < NELEM(names); i++)
		if (channel->policy.channel_breaker.triggers & 1U << i)
			emit_z(e, NULL, names[i]);
	emit_end(e);
	emit_i64(e, "probes_sent", 0);
	emit_i64(e, "probes_ok", 0);
	emit_end(e);
}

static enum store_rc
put_channel(struct job *job, const struct conf_channel *channel)
{
	struct emit *e = &job->emit;
	enum store_rc rc = STORE_OK;

	emit_object(e, NULL);
	emit_text(e, "name", channel->name);
	emit_z(e, "provider", channel->provider->name);
	emit_array(e, "fallback");
	for (size_t i = 0; i < channel->nfallback; i++)
		emit_text(e, NULL, job->frame->conf->channels[channel->fallback[i]].name);
	emit_end(e);
	put_breaker(e, channel);
	emit_array(e, "accounts");
	for (size_t i = 0; i < channel->naccounts && rc == STORE_OK; i++) {
		struct view v;

		rc = view_read(job, channel->index, i, &v);
		if (rc == STORE_OK)
			rc = put_account(job, &v);
	}
	emit_end(e);
	emit_end(e);
	return rc;
}

static enum store_rc
count_all(struct job *job)
{
	const struct conf *conf = job->frame->conf;

	for (size_t c = 0; c < conf->nchannels; c++)
		for (size_t a = 0; a < conf->channels[c].naccounts; a++) {
			struct view v;
			enum store_rc rc = view_read(job, c, a, &v);

			if (rc != STORE_OK)
				return rc;
			count_view(job, &v);
		}
	return STORE_OK;
}

static void
put_count(struct emit *e, const struct count *count)
{
	emit_i64(e, "accounts", count->accounts);
	emit_i64(e, "active", count->active);
	emit_i64(e, "cooling", count->cooling);
	emit_i64(e, "disabled", count->disabled);
}

static void
put_head(struct job *job)
{
	const struct status_frame *f = job->frame;
	struct emit *e = &job->emit;

	emit_z(e, "service", "sluice");
	emit_z(e, "version", SLUICE_VERSION);
	emit_time(e, "now", f->now);
	emit_object(e, "config");
	emit_i64(e, "generation", (int64_t)f->generation);
	emit_time(e, "loaded_at", f->loaded_at);
	emit_z(e, "error", f->conf_error);
	emit_end(e);
	emit_object(e, "totals");
	put_count(e, &job->total);
	emit_i64(e, "in_flight", job->in_flight);
	emit_i64(e, "waiting", 0);
	emit_end(e);
	emit_object(e, "realm_totals");
	for (unsigned i = 0; i < job->nrealms; i++) {
		char realm[128];

		text_clean(realm, sizeof realm, job->realms[i].realm);
		emit_object(e, realm);
		put_count(e, &job->realms[i]);
		emit_end(e);
	}
	emit_end(e);
}

static enum store_rc
put_all(struct job *job)
{
	const struct conf *conf = job->frame->conf;
	enum store_rc rc = count_all(job);

	if (rc != STORE_OK)
		return rc;
	emit_object(&job->emit, NULL);
	put_head(job);
	emit_array(&job->emit, "channels");
	for (size_t i = 0; i < conf->nchannels && rc == STORE_OK; i++)
		rc = put_channel(job, &conf->channels[i]);
	emit_end(&job->emit);
	emit_object(&job->emit, "sessions");
	emit_i64(&job->emit, "bound", 0);
	emit_end(&job->emit);
	emit_end(&job->emit);
	return rc;
}

static enum store_rc
read_in(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct view v;
	enum store_rc rc;

	job->txn = txn;
	job->total = (struct count){.accounts = 0};
	job->nrealms = job->in_flight = 0;
	buf_clear(job->out);
	emit_init(&job->emit, job->out);
	rc = slot_walk(txn, job->slots);
	if (rc != STORE_OK)
		return rc;
	drop_dead(job);
	if (!job->one)
		return put_all(job);
	rc = view_read(job, job->channel, job->account, &v);
	return rc == STORE_OK ? put_account(job, &v) : rc;
}

static enum err
run(struct job *job, struct why *why)
{
	enum store_rc rc;

	job->slots = malloc(sizeof *job->slots);
	if (job->slots == NULL)
		die("no memory");
	rc = env_view(job->frame->env, read_in, job);
	free(job->slots);
	if (rc == STORE_OK)
		return ERR_OK;
	err_why(why, "store: %s", env_error(job->frame->env));
	return ERR_STORE;
}

enum err
status_json(const struct status_frame *frame, struct buf *out, struct why *why)
{
	struct job job = {.frame = frame, .out = out};

	return run(&job, why);
}

enum err
status_account(const struct status_frame *frame, size_t channel, size_t account, struct buf *out,
    struct why *why)
{
	struct job job = {
	    .frame = frame, .out = out, .one = true, .channel = channel, .account = account};

	return run(&job, why);
}
