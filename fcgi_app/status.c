#include "status.h"

#include "status_account.h"
#include "store/tally.h"

#include <stdlib.h>
#include <string.h>

#define REALMS_MAX 64
#define SESSIONS_EXACT \
	100000 /* of more, those that expired since the last sweep are counted, too */

struct count {
	struct span realm;
	unsigned accounts, active, cooling, disabled;
};

struct job {
	const struct status_frame *frame;
	struct buf *out;
	struct txn *txn;
	struct emit emit;
	struct count total, realms[REALMS_MAX];
	unsigned nrealms, in_flight, waiting;
	uint64_t bound;
	struct slot_list *slots;
	bool one; /* only this account */
	size_t channel, account;
};

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

static void
count_one(struct count *count, enum health_state state)
{
	count->accounts++;
	count->active += state == HEALTH_ACTIVE;
	count->cooling += state == HEALTH_COOLING;
	count->disabled += state == HEALTH_DISABLED;
}

static void
count_view(struct job *job, const struct status_view *v)
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

void
status_breaker(struct emit *e, const struct breaker_row *row, const struct breaker_policy *policy)
{
	const char *trigger = breaker_trigger_name(row->trigger);
	unsigned triggers = breaker_triggers(row, policy);

	emit_object(e, "breaker");
	emit_z(e, "state", breaker_state_name((enum breaker_state)row->state));
	emit_time(e, "until", (struct wall_ms){row->until_ms});
	emit_z(e, "trigger", trigger[0] == '\0' ? NULL : trigger);
	emit_array(e, "triggers");
	for (unsigned bit = 1; bit <= BREAKER_TRIGGERS; bit <<= 1)
		if (triggers & bit)
			emit_z(e, NULL, breaker_trigger_name(bit));
	emit_end(e);
	/* those of a round that is over mean nothing any more */
	emit_i64(e, "probes_sent", row->state == BREAKER_HALF_OPEN ? row->sent : 0);
	emit_i64(e, "probes_ok", row->state == BREAKER_HALF_OPEN ? row->ok : 0);
	emit_end(e);
}

/* A dead worker's probe is no probe: what was sent is counted as a pick does. */
static enum store_rc
put_breaker(struct job *job, const struct conf_channel *channel)
{
	struct breaker_policy policy = pick_breaker_policy(&channel->policy);
	uint16_t number = job->frame->pool->channels[channel->index].number;
	struct breaker_row row;
	uint32_t permits = 0;
	enum store_rc rc = breaker_get(job->txn, number, &row);

	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	for (unsigned i = 0; i < job->slots->n; i++) {
		const struct slot_row *slot = &job->slots->seen[i].row;

		permits += slot->channel == number && slot->kind == SLOT_PERMIT &&
		           slot->round == row.round;
	}
	if (row.state == BREAKER_HALF_OPEN)
		row.sent = row.ok + row.failed + permits;
	status_breaker(&job->emit, &row, &policy);
	return STORE_OK;
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
	rc = put_breaker(job, channel);
	emit_array(e, "accounts");
	for (size_t i = 0; i < channel->naccounts && rc == STORE_OK; i++) {
		struct status_view v;

		rc = status_view(job->txn, job->frame, job->slots, channel->index, i, &v);
		if (rc == STORE_OK)
			rc = status_view_put(&job->emit, job->txn, &v, job->frame->now);
	}
	emit_end(e);
	emit_end(e);
	return rc;
}

static bool
count_session(const struct sticky_row *row, void *arg)
{
	struct job *job = arg;

	job->bound += !sticky_expired(row, job->frame->now);
	return true;
}

/* A session counts once for each channel. */
static enum store_rc
count_sessions(struct job *job)
{
	enum store_rc rc = tally_get(job->txn, TALLY_SESSIONS, &job->bound);

	if (rc != STORE_OK || job->bound > SESSIONS_EXACT)
		return rc;
	job->bound = 0;
	return sticky_walk(job->txn, count_session, job);
}

static enum store_rc
count_waiting(struct job *job)
{
	const struct status_frame *f = job->frame;

	for (size_t c = 0; c < f->conf->nchannels; c++) {
		struct queue_who who = {f->slot, f->pool->channels[c].number, 0};
		unsigned n = 0;
		enum store_rc rc = queue_count(job->txn, &who, &n);

		if (rc != STORE_OK)
			return rc;
		job->waiting += n;
	}
	return STORE_OK;
}

static enum store_rc
count_all(struct job *job)
{
	const struct conf *conf = job->frame->conf;
	enum store_rc done = count_sessions(job);

	if (done == STORE_OK)
		done = count_waiting(job);
	if (done != STORE_OK)
		return done;
	for (size_t c = 0; c < conf->nchannels; c++)
		for (size_t a = 0; a < conf->channels[c].naccounts; a++) {
			struct status_view v;
			enum store_rc rc = status_view(job->txn, job->frame, job->slots, c, a, &v);

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
	emit_i64(e, "waiting", job->waiting);
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
	emit_i64(&job->emit, "bound", (int64_t)job->bound);
	emit_end(&job->emit);
	emit_end(&job->emit);
	return rc;
}

static enum store_rc
read_in(struct txn *txn, void *arg)
{
	struct job *job = arg;
	struct status_view v;
	enum store_rc rc;

	job->txn = txn;
	job->total = (struct count){.accounts = 0};
	job->nrealms = job->in_flight = job->waiting = 0;
	job->bound = 0;
	buf_clear(job->out);
	emit_init(&job->emit, job->out);
	rc = slot_walk(txn, job->slots);
	if (rc != STORE_OK)
		return rc;
	drop_dead(job);
	if (!job->one)
		return put_all(job);
	rc = status_view(txn, job->frame, job->slots, job->channel, job->account, &v);
	return rc == STORE_OK ? status_view_put(&job->emit, job->txn, &v, job->frame->now) : rc;
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
