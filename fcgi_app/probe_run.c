#include "probe_run.h"

#include "base/clock.h"
#include "errand.h"
#include "record.h"
#include "store/cooldown.h"
#include "store/ledger.h"

#include <stdio.h>
#include <string.h>

#define BATCH 16
#define BEGIN_MS 20000 /* no new probe of a batch begins later: well within the job's lease */
#define MODEL_MAX 256
#define USUAL_DAYS 1 /* before today, in which the usual model is looked for */

struct target {
	size_t channel, account;
	uint64_t place;
	enum probe_way way;
	bool active;
	char model[MODEL_MAX];
};

struct round {
	struct serve *s;
	enum probe_round kind;
	struct wall_ms now;
	uint64_t from, next; /* next: where the following batch begins, 0 = nothing is left */
	uint32_t taken;
	unsigned n;
	struct target at[BATCH];
};

/* The model that served most on a channel, of this account if it can be. */
struct usual {
	const struct conf_channel *channel;
	const struct conf_account *account;
	uint64_t best;
	char model[MODEL_MAX];
};

static bool
more_usual(const struct ledger_key *key, const struct ledger_sum *sum, void *arg)
{
	struct usual *u = arg;
	uint64_t served = sum->requests - sum->failed - sum->cancelled;

	if (!text_is(u->channel->name, key->channel) || strcmp(key->model, LEDGER_OTHER) == 0 ||
	    !conf_serves(&u->account->models, text_span(key->model)))
		return true;
	if (text_is(u->account->id, key->account))
		served *= 1000;
	if (served > u->best) {
		u->best = served;
		text_clean(u->model, sizeof u->model, text_span(key->model));
	}
	return true;
}

/* The configuration's word, else what is used here. */
static enum store_rc
find_model(struct txn *txn, const struct round *r, struct target *t)
{
	const struct conf_channel *channel = &r->s->conf->channels[t->channel];
	const struct conf_account *account = &channel->accounts[t->account];
	struct span named = probe_model(r->s->conf, channel, account);
	struct usual usual = {.channel = channel, .account = account};
	uint16_t today = ledger_day(r->now);
	enum store_rc rc;

	if (named.n > 0) {
		text_clean(t->model, sizeof t->model, named);
		return STORE_OK;
	}
	rc = ledger_walk(txn, (uint16_t)(today - USUAL_DAYS), today, more_usual, &usual);
	memcpy(t->model, usual.model, sizeof t->model);
	return rc;
}

/* The model to ask for; that which failed, where the account rests because of it. */
static enum store_rc
choose_model(struct txn *txn, const struct round *r, struct target *t)
{
	struct account_note note;
	enum store_rc rc =
	    account_note_get(txn, pool_ref(r->s->pool, t->channel, t->account), &note);

	t->model[0] = '\0';
	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	if (rc == STORE_OK && !t->active)
		text_clean(t->model, sizeof t->model, text_span(note.model));
	return t->model[0] == '\0' ? find_model(txn, r, t) : STORE_OK;
}

static enum store_rc
aim(struct txn *txn, const struct round *r, struct target *t)
{
	struct account_ref ref = pool_ref(r->s->pool, t->channel, t->account);
	struct account_row row;
	struct account_stat stat;
	enum store_rc rc = account_get(txn, ref, &row);

	t->way = PROBE_NOT;
	if (rc == STORE_OK)
		rc = account_stat_get(txn, ref, &stat);
	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	t->active = health_state(&row, r->now) == HEALTH_ACTIVE;
	if (r->kind == PROBE_RECOVERY)
		t->way = probe_recovery(&row, &stat, r->s->conf->probe.recover_chat, r->now);
	else if (t->active)
		t->way = PROBE_CHAT;
	if (t->way != PROBE_CHAT)
		return STORE_OK;
	rc = choose_model(txn, r, t);
	/* GET /models takes its place where it tells something: whether an active account answers at all */
	if (t->model[0] == '\0')
		t->way = r->kind == PROBE_ACTIVE ? PROBE_MODELS : PROBE_NOT;
	return rc;
}

/* Add the account at this place if it is to be asked; false: the batch is full. */
static bool
add(struct txn *txn, struct round *r, const struct target *seat, enum store_rc *rc)
{
	struct target t = *seat;

	if (t.place < r->from || !pool_has(r->s->pool, t.channel, t.account) ||
	    !r->s->conf->channels[t.channel].accounts[t.account].enabled)
		return true;
	*rc = aim(txn, r, &t);
	if (*rc != STORE_OK || t.way == PROBE_NOT)
		return true;
	if (r->n == BATCH) {
		r->next = t.place;
		return false;
	}
	r->at[r->n++] = t;
	return true;
}

/* Orders what is asked now with what fails meanwhile. */
static enum store_rc
take_number(struct txn *txn, void *arg)
{
	uint32_t *number = arg;

	*number = txn_number(txn);
	return STORE_OK;
}

static enum store_rc
gather(struct txn *txn, void *arg)
{
	struct round *r = arg;
	const struct conf *conf = r->s->conf;
	struct target seat = {.place = 1};
	enum store_rc rc = STORE_OK;

	r->n = 0;
	r->next = 0;
	for (size_t c = 0; c < conf->nchannels; c++)
		for (size_t a = 0; a < conf->channels[c].naccounts; a++) {
			seat.channel = c;
			seat.account = a;
			if (!add(txn, r, &seat, &rc) || rc != STORE_OK)
				return rc;
			seat.place++;
		}
	return STORE_OK;
}

/* One answer on its way into the store. */
struct verdict_job {
	struct serve *s;
	const struct target *t;
	struct account_ref ref;
	struct probe_case probe;
	struct probe_effect effect;
	uint32_t taken;
	struct journal_row event;
	bool has_event;
};

static enum store_rc
rest_model(struct txn *txn, const struct verdict_job *job)
{
	const struct classify_finding *f = job->probe.finding;
	struct cooldown_pair pair = {.row = {
	                                 .kind = (uint8_t)f->verdict,
	                                 .guessed = job->effect.model.guessed,
	                                 .status = (uint16_t)f->status,
	                                 .set_txn = job->probe.time.settled,
	                                 .until_ms = job->effect.model.until.v,
	                                 .reset_at_ms = job->effect.model.reset_at.v,
	                             }};
	struct cooldown_pair old;
	enum store_rc rc = cooldown_get(txn, job->ref, job->t->model, &old);

	if (rc == STORE_OK && old.row.until_ms >= pair.row.until_ms)
		return STORE_OK;
	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	text_clean(pair.row.reason, sizeof pair.row.reason, text_span(f->message));
	text_clean(pair.model, sizeof pair.model, text_span(job->t->model));
	return cooldown_put(txn, job->ref, &pair);
}

static enum store_rc
write_note(struct txn *txn, const struct verdict_job *job)
{
	const struct classify_finding *f = job->probe.finding;
	const char *kind = verdict_table[f->verdict].name;
	struct account_note note;
	enum store_rc rc = account_note_get(txn, job->ref, &note);

	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	snprintf(note.reason, sizeof note.reason, "%.*s", (int)sizeof note.reason - 1,
	    f->message[0] != '\0' ? f->message : kind);
	snprintf(note.rule, sizeof note.rule, "probe: %.*s", (int)sizeof note.rule - 8,
	    f->rule == NULL ? "" : f->rule);
	memset(note.model, 0, sizeof note.model);
	if (strlen(job->t->model) < sizeof note.model)
		memcpy(note.model, job->t->model, strlen(job->t->model));
	if (job->effect.change.disabled)
		snprintf(note.disabled_reason, sizeof note.disabled_reason, "probe: %s: %.*s", kind,
		    120, note.reason);
	return account_note_put(txn, job->ref, &note);
}

/* Of a change of state or deadline; nothing else is news. */
static void
make_event(struct verdict_job *job)
{
	const struct conf_channel *channel = &job->s->conf->channels[job->t->channel];
	const struct classify_finding *f = job->probe.finding;
	struct journal_row *event = &job->event;
	bool model = job->effect.model.rests;

	job->has_event = job->effect.from != job->effect.to ||
	                 job->effect.old_until_ms != job->effect.until_ms || model;
	if (!job->has_event)
		return;
	*event = (struct journal_row){
	    .level = job->effect.change.disabled ? JOURNAL_ALERT : JOURNAL_INFO,
	    .status = (uint16_t)f->status,
	    .at_ms = job->probe.time.now.v,
	    .old_until_ms = model ? 0 : job->effect.old_until_ms,
	    .new_until_ms = model ? job->effect.model.until.v : job->effect.until_ms,
	};
	text_clean(event->channel, sizeof event->channel, channel->name);
	text_clean(event->account, sizeof event->account, channel->accounts[job->t->account].id);
	if (model)
		text_clean(event->model, sizeof event->model, text_span(job->t->model));
	snprintf(event->from, sizeof event->from, "%s", health_state_name(job->effect.from));
	snprintf(event->to, sizeof event->to, "%s",
	    model ? "cooling" : health_state_name(job->effect.to));
	snprintf(event->cause, sizeof event->cause, "%s",
	    f->verdict == VERDICT_OK ? "probe" : verdict_table[f->verdict].name);
	snprintf(event->rule, sizeof event->rule, "probe: %s",
	    job->t->way == PROBE_MODELS ? "GET /models" : "chat");
}

static enum store_rc
write_answer(struct txn *txn, void *arg)
{
	struct verdict_job *job = arg;
	struct account_row row;
	struct account_stat stat;
	enum store_rc rc = account_get(txn, job->ref, &row);

	job->has_event = false;
	if (rc == STORE_OK)
		rc = account_stat_get(txn, job->ref, &stat);
	if (rc != STORE_OK)
		return rc;
	job->probe.time = (struct health_time){job->taken, txn_number(txn), clock_wall()};
	probe_apply(&row, &stat, &job->probe, &job->effect);
	if (job->effect.model.rests && job->t->model[0] != '\0') {
		row.flags |= ACCOUNT_MODELS;
		rc = rest_model(txn, job);
	}
	if (rc == STORE_OK && job->effect.noted)
		rc = write_note(txn, job);
	if (rc == STORE_OK)
		rc = account_put(txn, job->ref, &row);
	if (rc == STORE_OK)
		rc = account_stat_put(txn, job->ref, &stat);
	make_event(job);
	return rc == STORE_OK && job->has_event ? journal_add(txn, &job->event) : rc;
}

/* False: the store failed, which is logged. */
static bool
settle(struct serve *s, const struct target *t, uint32_t taken, const struct classify_finding *f)
{
	const struct conf_channel *channel = &s->conf->channels[t->channel];
	struct verdict_job job = {
	    .s = s,
	    .t = t,
	    .taken = taken,
	    .ref = pool_ref(s->pool, t->channel, t->account),
	    .probe =
	        {
	            .way = t->way,
	            .active = t->active,
	            .disable = s->conf->probe.on_failure == CONF_PROBE_DISABLE,
	            .finding = f,
	            .policy = &channel->policy,
	            .health = &s->pool->channels[t->channel].health,
	        },
	};

	if (env_update(s->env, write_answer, &job) != STORE_OK) {
		log_fields(s->log, LOG_LEVEL_WARN, clock_wall(), "a probe was not written",
		    LOG_TEXT("channel", channel->name), LOG_Z("why", env_error(s->env)));
		return false;
	}
	if (job.has_event)
		record_event(s->log, &job.event, SPAN(""));
	s->hard_facts =
	    s->hard_facts || job.effect.from != job.effect.to || job.effect.change.breaker_opened;
	return true;
}

/* Ask; false: given up. */
static bool
ask(struct serve *s, const struct target *t, struct classify_finding *finding)
{
	const struct conf_channel *channel = &s->conf->channels[t->channel];
	static const struct upstream_header version[] = {{"anthropic-version", SPAN("2023-06-01")}};
	struct buf *body = arena_buf(s->arena, 65536);
	struct upstream_call call = {
	    .channel = channel,
	    .account = &channel->accounts[t->account],
	    .path = t->way == PROBE_CHAT ? probe_chat_path(channel) : "/models",
	    .model = text_span(t->model),
	    .get = t->way != PROBE_CHAT,
	    .stream = t->way == PROBE_CHAT && channel->quirks.force_stream,
	    .headers = version,
	    .nheaders = channel->wire == WIRE_MESSAGES,
	};
	struct errand_answer answer;
	bool shaped;

	if (t->way == PROBE_CHAT)
		probe_chat_body(channel, text_span(t->model), s->conf->probe.active_prompt, body);
	call.body = buf_text(body);
	errand_run(s, &call, &answer);
	answer.body = probe_text(answer.body);
	shaped = t->way == PROBE_CHAT
	             ? probe_is_chat(s->arena, channel->wire, answer.body)
	             : text_starts(answer.body, "{") || text_starts(answer.body, "[");
	*finding = (struct classify_finding){.verdict = VERDICT_OK, .status = answer.status};
	if (answer.transport != TRANSPORT_OK || answer.status < 200 || answer.status > 299 ||
	    !shaped)
		errand_classify(s, &call, &answer, text_span(t->model), finding);
	return !answer.interrupted;
}

static enum probe_result
ask_and_settle(struct serve *s, const struct target *t, uint32_t taken, struct classify_finding *f)
{
	enum probe_result result = PROBE_NEVER;

	if (ask(s, t, f) && settle(s, t, taken, f))
		result = probe_result_of(f->verdict);
	arena_reset(s->arena);
	return result;
}

bool
probe_run(struct serve *s, enum probe_round round, uint64_t *cursor)
{
	struct round r = {.s = s, .kind = round, .now = clock_wall(), .from = *cursor};
	struct mono_ms began = clock_mono();
	struct classify_finding finding;

	if (env_update(s->env, take_number, &r.taken) != STORE_OK ||
	    env_view(s->env, gather, &r) != STORE_OK) {
		log_fields(s->log, LOG_LEVEL_WARN, r.now, "accounts could not be probed",
		    LOG_Z("why", env_error(s->env)));
		return false;
	}
	*cursor = r.next;
	for (unsigned i = 0; i < r.n; i++) {
		if (errand_must_return(s) || clock_mono().v - began.v > BEGIN_MS) {
			*cursor = r.at[i].place;
			break;
		}
		ask_and_settle(s, &r.at[i], r.taken, &finding);
	}
	return *cursor != 0;
}

static enum store_rc
aim_one(struct txn *txn, void *arg)
{
	struct round *r = arg;
	enum store_rc rc = aim(txn, r, &r->at[0]);

	return rc == STORE_OK ? choose_model(txn, r, &r->at[0]) : rc;
}

void
probe_run_one(
    struct serve *s, size_t channel, size_t account, bool chat, struct probe_report *report_out)
{
	struct round r = {.s = s, .kind = PROBE_ACTIVE, .now = clock_wall()};
	struct target *t = &r.at[0];
	struct classify_finding f = {.verdict = VERDICT_NOBODY};

	*report_out = (struct probe_report){.way = PROBE_NOT, .verdict = VERDICT_NOBODY};
	t->channel = channel;
	t->account = account;
	if (env_update(s->env, take_number, &r.taken) != STORE_OK ||
	    env_view(s->env, aim_one, &r) != STORE_OK) {
		snprintf(report_out->why, sizeof report_out->why, "%s", env_error(s->env));
		return;
	}
	t->way = chat && t->model[0] != '\0' ? PROBE_CHAT : PROBE_MODELS;
	report_out->way = t->way;
	report_out->result = ask_and_settle(s, t, r.taken, &f);
	report_out->verdict = f.verdict;
	report_out->status = f.status;
	if (t->way == PROBE_CHAT)
		memcpy(report_out->model, t->model, sizeof report_out->model);
	memcpy(report_out->why, f.message, sizeof report_out->why);
}
