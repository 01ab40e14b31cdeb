#include "probe.h"

#include "base/emit.h"

/* What a provider asks for at least: SPEC.md section 10 wants one token; the responses API takes no less than 16. */
#define CHAT_TOKENS 1
#define RESPONSES_TOKENS 16

const char *
probe_result_name(unsigned result)
{
	static const char *const names[] = {[PROBE_HEALTHY] = "healthy",
	    [PROBE_RATE_LIMITED] = "rate_limited",
	    [PROBE_FAILED] = "failed"};

	return result < NELEM(names) ? names[result] : NULL;
}

enum probe_result
probe_result_of(enum verdict verdict)
{
	if (verdict == VERDICT_OK)
		return PROBE_HEALTHY;
	return verdict == VERDICT_SOFT_RATE || verdict == VERDICT_MODEL_RATE ? PROBE_RATE_LIMITED
	                                                                     : PROBE_FAILED;
}

/* When a rest began is not kept: it was not before the account's last error. */
static bool
half_is_over(const struct account_row *row, const struct account_stat *stat, struct wall_ms now)
{
	int64_t until = health_until_ms(row, now);

	return now.v - stat->last_error_ms >= until - now.v;
}

/* Disabled by disable_after, and by nobody else. */
static bool
is_by_failures(const struct account_row *row)
{
	return (row->flags & (ACCOUNT_BY_FAILURES | ACCOUNT_BY_OPERATOR)) == ACCOUNT_BY_FAILURES;
}

/* A chat may end it: a guessed rate limit, or a breaker where nothing stated or unpaid stands behind. */
static bool
wants_chat(const struct account_row *row, struct wall_ms now)
{
	if (row->cool_until_ms <= now.v)
		return row->breaker_until_ms > now.v;
	return (row->flags & ACCOUNT_GUESSED) &&
	       (row->cool_kind == VERDICT_SOFT_RATE || row->breaker_until_ms > now.v);
}

enum probe_way
probe_recovery(
    const struct account_row *row, const struct account_stat *stat, bool chat, struct wall_ms now)
{
	if (row->flags & ACCOUNT_DISABLED)
		return is_by_failures(row) ? PROBE_MODELS : PROBE_NOT;
	if (row->breaker_until_ms > now.v && (row->flags & ACCOUNT_BREAKER_NET))
		return PROBE_MODELS;
	return chat && wants_chat(row, now) && half_is_over(row, stat, now) ? PROBE_CHAT
	                                                                    : PROBE_NOT;
}

/* Of the targets that `models` has on this channel. */
static struct span
target_model(
    const struct conf *conf, const struct conf_channel *channel, const struct conf_account *account)
{
	for (size_t m = 0; m < conf->nmodels; m++)
		for (size_t t = 0; t < conf->models[m].ntargets; t++) {
			const struct conf_target *target = &conf->models[m].targets[t];

			if (target->channel == channel->index &&
			    conf_serves(&account->models, target->model))
				return target->model;
		}
	return SPAN("");
}

struct span
probe_model(
    const struct conf *conf, const struct conf_channel *channel, const struct conf_account *account)
{
	struct span model;

	for (size_t i = 0; i < account->models.n; i++)
		if (conf_is_name(account->models.at[i]))
			return account->models.at[i];
	model = target_model(conf, channel, account);
	for (size_t i = 0; i < channel->models.n && model.n == 0; i++)
		if (conf_is_name(channel->models.at[i]) &&
		    conf_serves(&account->models, channel->models.at[i]))
			model = channel->models.at[i];
	return model;
}

static const struct {
	const char *path, *member;
} wires[] = {
    [WIRE_CHAT] = {"/chat/completions", "choices"},
    [WIRE_MESSAGES] = {"/messages", "content"},
    [WIRE_RESPONSES] = {"/responses", "output"},
};

const char *
probe_chat_path(const struct conf_channel *channel)
{
	return wires[channel->wire].path;
}

static const char *
limit_name(const struct conf_channel *channel)
{
	if (channel->wire == WIRE_RESPONSES)
		return "max_output_tokens";
	if (channel->wire == WIRE_CHAT && channel->quirks.max_tokens.n > 0)
		return channel->quirks.max_tokens.p;
	if (channel->wire == WIRE_CHAT &&
	    (channel->provider->id == PROVIDER_OPENAI || channel->provider->id == PROVIDER_AZURE))
		return "max_completion_tokens"; /* their newer models refuse the other one */
	return "max_tokens";
}

void
probe_chat_body(
    const struct conf_channel *channel, struct span model, struct span prompt, struct buf *out)
{
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_text(&e, "model", model);
	if (channel->wire == WIRE_RESPONSES) {
		emit_text(&e, "input", prompt);
	} else {
		emit_array(&e, "messages");
		emit_object(&e, NULL);
		emit_z(&e, "role", "user");
		emit_text(&e, "content", prompt);
		emit_end(&e);
		emit_end(&e);
	}
	emit_i64(&e, limit_name(channel),
	    channel->wire == WIRE_RESPONSES ? RESPONSES_TOKENS : CHAT_TOKENS);
	if (channel->quirks.force_stream)
		emit_bool(&e, "stream", true);
	emit_end(&e);
}

struct span
probe_text(struct span body)
{
	struct span text = text_trim(body), line;
	size_t at = text_find(text, SPAN("data:"));

	if (text.n == 0 || text.p[0] == '{' || at == text.n)
		return text;
	line = text_from(text, at + 5);
	line.n = text_find(line, SPAN("\n"));
	return text_trim(line);
}

bool
probe_is_chat(struct arena *arena, enum provider_wire wire, struct span text)
{
	const struct json *doc;

	if (json_parse(arena, text, &doc, NULL) != ERR_OK)
		return false;
	/* the first event of a stream has the answer in a member, on the other wires */
	if (wire != WIRE_CHAT &&
	    json_is_object(json_at(doc, wire == WIRE_MESSAGES ? "message" : "response")))
		return true;
	return json_is_array(json_at(doc, wires[wire].member));
}

static bool
brings_back(const struct account_row *row, const struct probe_case *p)
{
	return health_after(p->time.settled, p->time.taken, row->failed_txn);
}

static void
enable(struct account_row *row)
{
	if (!is_by_failures(row))
		return;
	row->flags &= (uint8_t) ~(ACCOUNT_DISABLED | ACCOUNT_BY_FAILURES);
	row->consecutive = row->fails = 0;
}

/* The step of the back-off stays: only the chat path itself takes it back. */
static void
recover_by_models(struct account_row *row, const struct probe_case *p)
{
	if (!brings_back(row, p))
		return;
	enable(row);
	if (row->breaker_until_ms > p->time.now.v && (row->flags & ACCOUNT_BREAKER_NET)) {
		row->breaker_until_ms = 0;
		row->flags &= (uint8_t)~ACCOUNT_BREAKER_NET;
	}
}

static void
recover_by_chat(struct account_row *row, const struct probe_case *p, struct health_change *change)
{
	uint32_t success = row->success;

	if (!brings_back(row, p))
		return;
	enable(row);
	health_success(row, &p->time, change);
	row->success = success; /* it was no request */
}

/* Somebody rests and is still refused: what the provider states now may be later. */
static void
heed_stated(struct account_row *row, struct account_stat *stat, const struct probe_case *p,
    struct probe_effect *effect)
{
	const struct classify_finding *f = p->finding;
	struct rest rest;

	if (verdict_table[f->verdict].rest != REST_ACCOUNT || !f->reset.stated)
		return;
	rest =
	    rest_after(f->verdict, f->status, &f->reset, p->policy, row->soft_streak, p->time.now);
	if (!rest.rests || rest.reset_at.v == 0)
		return;
	health_rest(row,
	    &(struct health_rest){(uint8_t)f->verdict, false, rest.until.v, p->time.settled},
	    &effect->change);
	if (effect->change.cool_set) {
		stat->reset_at_ms = rest.reset_at.v;
		stat->cool_status = (uint16_t)f->status;
	}
}

/* Failures that probe.on_failure may disable for: not limits and credit, and not what is nobody's fault. */
static bool
may_disable(enum verdict verdict)
{
	const struct verdict_row *row = &verdict_table[verdict];

	return row->counts && !row->rate_limited && verdict != VERDICT_HARD_CREDIT &&
	       verdict != VERDICT_AUTH_FAILED;
}

static void
count_failure(struct account_row *row, struct account_stat *stat, const struct probe_case *p,
    struct health_change *change)
{
	enum verdict verdict = p->finding->verdict;
	const struct verdict_row *v = &verdict_table[verdict];

	if (v->counts) {
		health_failure(row, &p->time, p->health,
		    verdict == VERDICT_NETWORK || verdict == VERDICT_AUTH_FAILED, change);
		account_window_add(stat, true);
	} else if (v->error) {
		row->errors++;
	}
	if (verdict == VERDICT_SESSION_DEAD)
		health_session_dead(row, p->health, change);
	if (verdict == VERDICT_AUTH_FAILED)
		health_auth_failed(row, p->health, change);
	if (verdict == VERDICT_SOFT_RATE && change->new_incident && row->soft_streak < UINT8_MAX)
		row->soft_streak++;
	if (p->disable && may_disable(verdict) && !(row->flags & ACCOUNT_DISABLED)) {
		row->flags |= ACCOUNT_DISABLED;
		change->disabled = true;
	}
}

/* As a request's failure. */
static void
fail_active(struct account_row *row, struct account_stat *stat, const struct probe_case *p,
    struct probe_effect *effect)
{
	const struct classify_finding *f = p->finding;
	const struct verdict_row *v = &verdict_table[f->verdict];
	struct rest rest;

	if (v->error || v->counts || v->channel_counts) {
		stat->last_error_ms = p->time.now.v;
		stat->last_kind = (uint8_t)f->verdict;
		stat->last_status = (uint16_t)f->status;
	}
	stat->rate_limited += v->rate_limited;
	count_failure(row, stat, p, &effect->change);
	rest =
	    rest_after(f->verdict, f->status, &f->reset, p->policy, row->soft_streak, p->time.now);
	if (rest.rests && v->rest == REST_MODEL) {
		effect->model = rest;
	} else if (rest.rests) {
		health_rest(row,
		    &(struct health_rest){
		        (uint8_t)f->verdict, rest.guessed, rest.until.v, p->time.settled},
		    &effect->change);
		if (effect->change.cool_set) {
			stat->reset_at_ms = rest.reset_at.v;
			stat->cool_status = (uint16_t)f->status;
		}
	}
}

static void
apply_chat(struct account_row *row, struct account_stat *stat, const struct probe_case *p,
    struct probe_effect *effect)
{
	bool ok = p->finding->verdict == VERDICT_OK;

	if (!p->active || effect->from != HEALTH_ACTIVE) {
		if (ok)
			recover_by_chat(row, p, &effect->change);
		else
			heed_stated(row, stat, p, effect);
		return;
	}
	stat->calls++;
	if (ok) {
		health_success(row, &p->time, &effect->change);
		account_window_add(stat, false);
	} else {
		fail_active(row, stat, p, effect);
	}
}

void
probe_apply(struct account_row *row, struct account_stat *stat, const struct probe_case *probe,
    struct probe_effect *effect_out)
{
	struct wall_ms now = probe->time.now;

	*effect_out = (struct probe_effect){
	    .from = health_state(row, now), .old_until_ms = health_until_ms(row, now)};
	stat->probe_at_ms = now.v;
	stat->probe_result = (uint8_t)probe_result_of(probe->finding->verdict);
	if (probe->way == PROBE_CHAT)
		apply_chat(row, stat, probe, effect_out);
	else if (probe->finding->verdict == VERDICT_OK)
		recover_by_models(row, probe);
	effect_out->to = health_state(row, now);
	effect_out->until_ms = health_until_ms(row, now);
	effect_out->noted = effect_out->change.cool_set || effect_out->change.disabled ||
	                    effect_out->change.breaker_opened;
}
