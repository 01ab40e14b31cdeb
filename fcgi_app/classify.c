#include "classify.h"

#include "classify_rule.h"
#include "classify_status.h"
#include "classify_table.h"
#include "classify_words.h"
#include "locate.h"
#include "reset_head.h"

#include <string.h>

/* One answer while it is being judged. */
struct question {
	struct arena *arena;
	const struct conf_channel *channel;
	const struct classify_answer *answer;
	struct locate_error error;
	struct classify_words words;
	int status; /* 0: an error inside a 200 that names none */
	struct wall_ms now;
};

struct decision {
	enum verdict verdict; /* VERDICT__MAX: none yet */
	const char *rule;
	enum classify_implied implied;
	bool whole; /* see struct classify_row */
};

static const struct decision undecided = {.verdict = VERDICT__MAX};

static struct decision
decide(enum verdict verdict, const char *rule)
{
	return (struct decision){.verdict = verdict, .rule = rule};
}

/* ------------------------------------------------------------------ rows */

/* May the fault be in what the caller sent? */
static bool
is_fault(int status)
{
	static const int faults[] = {0, 400, 404, 405, 409, 413, 415, 422};

	for (size_t i = 0; i < NELEM(faults); i++)
		if (status == faults[i])
			return true;
	return false;
}

static bool
status_matches(int want, int status)
{
	if (want == STATUS_FAULT)
		return is_fault(status);
	if (want == STATUS_BAND)
		return status == 0;
	if (want == STATUS_REFUSED)
		return status == 401 || status == 403;
	return want == STATUS_ANY || want == status;
}

/* Verdicts that a caller must not be able to bring upon an account by what it writes. */
static bool
hurts(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_AUTH_FAILED:
	case VERDICT_SESSION_DEAD:
	case VERDICT_HARD_CREDIT:
	case VERDICT_SOFT_RATE:
	case VERDICT_MODEL_RATE: return true;
	case VERDICT_OK:
	case VERDICT_CLIENT:
	case VERDICT_CONTEXT_LENGTH:
	case VERDICT_MODEL_MISSING:
	case VERDICT_NOT_FOUND:
	case VERDICT_OVERLOAD:
	case VERDICT_SERVER:
	case VERDICT_NETWORK:
	case VERDICT_UNEXPLAINED:
	case VERDICT_CANCELLED:
	case VERDICT_NOBODY:
	case VERDICT__MAX: break;
	}
	return false;
}

static bool
has_code(const struct question *q, const char *pattern)
{
	for (size_t i = 0; i < q->error.ncodes; i++)
		if (classify_rule_code(text_span(pattern), q->error.codes[i]))
			return true;
	return false;
}

static bool
text_matches(const struct question *q, const struct classify_row *row, struct span *which_out)
{
	struct span text =
	    hurts(row->verdict) && is_fault(q->status) ? q->words.head : q->words.plain;

	if (row->unless != NULL && classify_words_match(text, row->unless, NULL))
		return false;
	return classify_words_match(text, row->text, which_out) ||
	       (row->raw_too && classify_words_match(q->error.raw, row->text, which_out));
}

static const char *
rule_name(
    const struct question *q, const char *table, const struct classify_row *row, struct span which)
{
	if (row->code != NULL)
		return arena_print(q->arena, "%s:code:%s", table, row->code);
	if (row->text != NULL)
		return arena_print(q->arena, "%s:text:%.*s", table, (int)which.n, which.p);
	return arena_print(q->arena, "%s:status:%d", table, row->status);
}

static struct decision
ask(const struct question *q, const struct classify_table *table)
{
	for (size_t i = 0; i < table->n; i++) {
		const struct classify_row *row = &table->rows[i];
		struct span which = {0};

		if (!status_matches(row->status, q->status))
			continue;
		/* a broken server is no reason to take an account away */
		if (q->status >= 500 && verdict_table[row->verdict].rest == REST_DISABLE)
			continue;
		if (row->code != NULL && !has_code(q, row->code))
			continue;
		if (row->text != NULL && !text_matches(q, row, &which))
			continue;
		return (struct decision){.verdict = row->verdict,
		    .rule = rule_name(q, table->name, row, which),
		    .implied = row->implied,
		    .whole = row->whole};
	}
	return undecided;
}

/* ------------------------------------------------------------------ steps */

/* What ended below HTTP. An error status that had come before the end still speaks. */
static struct decision
ask_transport(const struct classify_answer *answer)
{
	bool refused = answer->status >= 300;

	switch (answer->transport) {
	case TRANSPORT_OK: return undecided;
	case TRANSPORT_CONNECT: return decide(VERDICT_NETWORK, "transport:connect");
	case TRANSPORT_TLS: return decide(VERDICT_NETWORK, "transport:tls");
	case TRANSPORT_REUSED: return decide(VERDICT_NOBODY, "transport:reused");
	case TRANSPORT_TIMEOUT:
		return refused ? undecided : decide(VERDICT_NETWORK, "transport:timeout");
	case TRANSPORT_TRUNCATED:
		return refused ? undecided : decide(VERDICT_SERVER, "transport:truncated");
	case TRANSPORT_TOO_BIG:
		return refused ? undecided : decide(VERDICT_SERVER, "transport:too big");
	}
	return undecided;
}

static struct decision
ask_rules(const struct question *q)
{
	struct classify_rule_view view = {
	    .status = q->answer->status,
	    .effective = q->status,
	    .body = q->answer->body,
	    .error = &q->error,
	    .headers = q->answer->headers,
	};

	for (size_t i = 0; i < q->channel->nrules; i++) {
		enum verdict verdict = verdict_named(q->channel->rules[i].kind);

		if (verdict != VERDICT__MAX && classify_rule(&q->channel->rules[i], &view))
			return (struct decision){.verdict = verdict,
			    .rule = arena_print(q->arena, "rule:%zu", i),
			    .whole = true};
	}
	return undecided;
}

/* What needs no body. */
static struct decision
ask_shape(const struct question *q)
{
	int status = q->answer->status;

	if (status >= 300 && status < 400)
		return decide(VERDICT_SERVER, arena_print(q->arena, "status:%d", status));
	if (!q->answer->judged && (status == 404 || status == 405 || status == 501))
		return decide(VERDICT_CLIENT, arena_print(q->arena, "side endpoint:%d", status));
	if (q->error.html && (status < 300 || status == 401 || status == 403))
		return decide(VERDICT_SERVER, "html");
	return undecided;
}

/* A subscription tells by headers which of its windows is used up. */
static struct decision
ask_windows(const struct question *q)
{
	unsigned windows;

	if (q->answer->status != 429 || q->answer->headers == NULL)
		return undecided;
	windows = reset_head_windows(q->answer->headers);
	if ((windows & RESET_WINDOW_ACCOUNT) != 0)
		return (struct decision){.verdict = VERDICT_SOFT_RATE,
		    .rule = "anthropic:window:account",
		    .whole = true};
	if ((windows & RESET_WINDOW_MODEL) != 0)
		return decide(VERDICT_MODEL_RATE, "anthropic:window:model");
	if (reset_head_tokens_only(q->answer->headers))
		return decide(VERDICT_MODEL_RATE, "anthropic:window:tokens");
	return undecided;
}

static struct decision
ask_tables(const struct question *q)
{
	const struct classify_table *provider = classify_table_of(
	    q->channel->provider == NULL ? PROVIDER_COMPATIBLE : q->channel->provider->id);
	struct decision d = ask(q, provider);

	if (d.verdict == VERDICT__MAX)
		d = ask_windows(q);
	if (d.verdict == VERDICT__MAX && q->error.base_resp)
		d = ask(q, &classify_table_base_resp);
	if (d.verdict == VERDICT__MAX && !q->error.base_resp)
		d = ask(q, &classify_table_codes);
	if (d.verdict == VERDICT__MAX)
		d = ask(q, &classify_table_texts);
	return d;
}

/* ------------------------------------------------------------------ the status alone */

static bool
names_model(const struct question *q)
{
	return classify_words_name(q->error.text, q->answer->model) ||
	       classify_words_match(q->words.plain, "model|deployment|模型", NULL);
}

/* 401 and 403: a model that this key may not use, a bad key, or nothing that could be told. */
static struct decision
ask_refused(const struct question *q)
{
	struct decision d;

	if (q->status == 403 && names_model(q))
		return decide(VERDICT_MODEL_MISSING, "status:403:model");
	d = ask(q, &classify_table_refused);
	if (d.verdict != VERDICT__MAX)
		return d;
	if (names_model(q))
		return decide(VERDICT_MODEL_MISSING, "status:401:model");
	return decide(VERDICT_UNEXPLAINED, q->status == 401 ? "status:401" : "status:403");
}

static struct decision
ask_status(const struct question *q)
{
	if (q->status == 0) {
		if (text_is(q->error.finish, "content_filter") ||
		    text_is(q->error.finish, "sensitive"))
			return decide(VERDICT_CLIENT, "finish:content");
		return decide(VERDICT_SERVER, q->error.found ? "in-band" : "no answer");
	}
	if (q->status == 401 || q->status == 403)
		return ask_refused(q);
	if (q->status == 404)
		return names_model(q) ? decide(VERDICT_MODEL_MISSING, "status:404:model")
		                      : decide(VERDICT_NOT_FOUND, "status:404");
	return decide(
	    classify_status_verdict(q->status), arena_print(q->arena, "status:%d", q->status));
}

/* ------------------------------------------------------------------ results */

static struct wall_ms
implied_end(struct question *q, enum classify_implied implied)
{
	const struct zone *zone = NULL;
	struct date_civil c;
	enum err err = ERR_BAD_INPUT;

	switch (implied) {
	case IMPLIED_NOTHING: break;
	case IMPLIED_PACIFIC_DAY:
		err = zone_posix(q->arena, SPAN("PST8PDT,M3.2.0,M11.1.0"), &zone, NULL);
		break;
	case IMPLIED_CHINA_DAY: err = zone_posix(q->arena, SPAN("CST-8"), &zone, NULL); break;
	case IMPLIED_MONTH:
		date_split(q->now.v / 1000, &c);
		c = (struct date_civil){
		    .year = c.year + c.month / 12, .month = c.month % 12 + 1, .day = 1};
		return (struct wall_ms){date_seconds(&c) * 1000};
	}
	return err == ERR_OK ? zone_next(zone, q->now, 0, 0) : (struct wall_ms){0};
}

/* Does the upstream name a point in time, against which an implied one is only a guess? */
static bool
is_exact(const struct reset_time *reset)
{
	return reset->stated && (text_starts(text_span(reset->source), "text:reset at") ||
	                            text_starts(text_span(reset->source), "field:reset"));
}

static struct reset_time
reset_of(struct question *q, const struct decision *d, int status)
{
	enum reset_kind kind = d->verdict == VERDICT_HARD_CREDIT ? RESET_CREDIT : RESET_RATE;
	const struct zone *zone = q->channel->policy.cooldown.zone;
	struct reset_time found, outer;
	struct wall_ms implied;

	if (!hurts(d->verdict) && d->verdict != VERDICT_OVERLOAD &&
	    !(d->verdict == VERDICT_SERVER && status >= 500))
		return (struct reset_time){0};
	found = reset_find(kind, q->error.object, q->words.plain, NULL, zone, q->now);
	outer = reset_find(kind, q->error.root, (struct span){0}, q->answer->headers, zone, q->now);
	if (!found.stated)
		found = outer;
	implied = implied_end(q, d->implied);
	if (!is_exact(&found) && reset_sensible(implied, q->now))
		return (struct reset_time){true, implied, "implied"};
	return found;
}

/* The most telling code: not one that only repeats the status. */
static struct span
code_of(const struct question *q)
{
	static const char *const weak[] = {"invalid_request_error", "unknown_error", "api_error",
	    "error", "BadRequestError", "INVALID_ARGUMENT", "InvalidParameter"};

	for (size_t i = 0; i < q->error.ncodes; i++) {
		bool tells = !text_is(q->error.codes[i], arena_print(q->arena, "%d", q->status));

		for (size_t j = 0; j < NELEM(weak); j++)
			tells = tells && !text_is(q->error.codes[i], weak[j]);
		if (tells)
			return q->error.codes[i];
	}
	return q->error.ncodes > 0 ? q->error.codes[0] : (struct span){0};
}

/* Where limits are a model's, a limit of which nothing else is known is one, too. */
static void
narrow(const struct question *q, struct decision *d)
{
	const struct provider *provider = q->channel->provider;

	if (d->verdict == VERDICT_SOFT_RATE && !d->whole && provider != NULL &&
	    provider->limits_per_model && q->answer->model.n > 0)
		d->verdict = VERDICT_MODEL_RATE;
}

static struct decision
judge(struct question *q)
{
	struct decision d = ask_rules(q);

	if (d.verdict == VERDICT__MAX)
		d = ask_shape(q);
	if (d.verdict == VERDICT__MAX)
		d = ask_tables(q);
	if (d.verdict == VERDICT__MAX)
		d = ask_status(q);
	narrow(q, &d);
	return d;
}

static void
read_error(struct question *q)
{
	const struct classify_answer *answer = q->answer;

	locate_error(q->arena, answer->body, answer->content_type, &q->error);
	q->words = classify_words(q->arena, q->error.text, answer->model);
	q->status = answer->status;
	if (answer->status < 300) {
		q->status = q->error.status;
		if (q->status == 0)
			q->status = classify_status_of_type(&q->error);
	}
}

void
classify_answer(struct arena *arena, const struct conf_channel *channel,
    const struct classify_answer *answer, struct wall_ms now, struct classify_finding *finding_out)
{
	struct question q = {.arena = arena, .channel = channel, .answer = answer, .now = now};
	struct decision d = ask_transport(answer);

	*finding_out = (struct classify_finding){
	    .verdict = d.verdict, .status = answer->status, .rule = d.rule};
	if (d.verdict != VERDICT__MAX)
		return;
	if (answer->status >= 200 && answer->status < 300 && !answer->in_band) {
		finding_out->verdict = VERDICT_OK;
		finding_out->rule = "ok";
		return;
	}
	read_error(&q);
	d = judge(&q);
	finding_out->verdict = d.verdict;
	finding_out->rule = d.rule;
	if (answer->status < 300)
		finding_out->status =
		    q.status != 0 ? q.status : classify_status_of_verdict(d.verdict);
	finding_out->reset = reset_of(&q, &d, finding_out->status);
	text_clean(finding_out->message, sizeof finding_out->message, q.error.message);
	text_clean(finding_out->code, sizeof finding_out->code, code_of(&q));
}
