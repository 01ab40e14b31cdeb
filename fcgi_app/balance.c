#include "balance.h"

#include "base/clock.h"
#include "base/json.h"
#include "conf/quantity.h"
#include "errand.h"
#include "record.h"
#include "store/cooldown.h"

#include <stdio.h>

#define BATCH 16
#define BEGIN_MS 20000 /* nobody is asked later in a run: well within the job's lease */

bool
balance_is_wanted(const struct conf *conf)
{
	for (size_t c = 0; c < conf->nchannels; c++)
		if (conf->channels[c].balance.url.n > 0 &&
		    conf->channels[c].balance.at_minute.n > 0)
			return true;
	return false;
}

struct wall_ms
balance_due(
    const struct conf_channel *channel, const struct account_stat *stat, struct wall_ms first_run)
{
	int64_t since = stat->balance_at_ms > first_run.v ? stat->balance_at_ms : first_run.v;
	int64_t due = INT64_MAX;

	if (channel->balance.url.n == 0)
		return (struct wall_ms){INT64_MAX};
	for (size_t i = 0; i < channel->balance.at_minute.n; i++) {
		int minute = (int)channel->balance.at_minute.at[i];
		struct wall_ms next = zone_next(channel->policy.cooldown.zone,
		    (struct wall_ms){since}, minute / 60, minute % 60);

		if (next.v < due)
			due = next.v;
	}
	return (struct wall_ms){
	    due == INT64_MAX ? due : due + stat->balance_tries * BALANCE_RETRY_MS};
}

bool
balance_read(struct arena *arena, struct span body, struct span pointer, int64_t *micros_out)
{
	const struct json *doc;
	double credits;

	if (json_parse(arena, body, &doc, NULL) != ERR_OK ||
	    !json_real(json_pointer(doc, pointer), "", &credits) || credits > BALANCE_MOST)
		return false;
	*micros_out = credits > 0 ? (int64_t)(credits * 1e6 + 0.5) : 0;
	return true;
}

bool
balance_apply(struct account_row *row, struct account_stat *stat, const struct balance_news *news)
{
	bool cools = row->cool_until_ms > news->now.v;
	bool unpaid = cools && row->cool_kind == VERDICT_HARD_CREDIT;
	bool rose = news->had && news->micros > news->before;

	row->credits_micros = news->micros;
	stat->balance_at_ms = news->now.v;
	stat->balance_tries = 0;
	if (news->micros <= 0 || !(unpaid || rose) || !(cools || (row->flags & ACCOUNT_MODELS)))
		return false;
	health_order(row, HEALTH_CLEAR);
	stat->reset_at_ms = 0;
	stat->cool_status = 0;
	return true;
}

static void
make_event(
    struct balance_word *word, const struct account_row *before, const struct account_row *after)
{
	const struct conf_channel *channel = &word->pool->conf->channels[word->channel];
	struct journal_row *event = &word->event;
	char credits[QUANTITY_TEXT];

	*event = (struct journal_row){
	    .level = JOURNAL_INFO,
	    .at_ms = word->now.v,
	    .old_until_ms = health_until_ms(before, word->now),
	    .new_until_ms = health_until_ms(after, word->now),
	    .cause = "balance",
	};
	quantity_print_micros(word->micros, credits);
	text_clean(event->channel, sizeof event->channel, channel->name);
	text_clean(event->account, sizeof event->account, channel->accounts[word->account].id);
	snprintf(event->from, sizeof event->from, "%s",
	    health_state_name(health_state(before, word->now)));
	snprintf(
	    event->to, sizeof event->to, "%s", health_state_name(health_state(after, word->now)));
	snprintf(event->rule, sizeof event->rule, "%.22s: credits %s", word->who, credits);
}

static enum store_rc
clear_note(struct txn *txn, struct account_ref ref)
{
	struct account_note note;
	enum store_rc rc = account_note_get(txn, ref, &note);

	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	note.reason[0] = note.rule[0] = '\0';
	return account_note_put(txn, ref, &note);
}

enum store_rc
balance_write(struct txn *txn, struct balance_word *word)
{
	const struct conf_account *account =
	    &word->pool->conf->channels[word->channel].accounts[word->account];
	struct account_ref ref = pool_ref(word->pool, word->channel, word->account);
	struct balance_news news = {.micros = word->micros, .now = word->now};
	struct account_row row, before;
	struct account_stat stat;
	enum store_rc rc = account_get(txn, ref, &row);

	if (rc == STORE_OK)
		rc = account_stat_get(txn, ref, &stat);
	if (rc != STORE_OK)
		return rc;
	before = row;
	news.had = row.credits_micros != ACCOUNT_NO_CREDITS || account->has_credits;
	news.before =
	    row.credits_micros != ACCOUNT_NO_CREDITS ? row.credits_micros : account->credits_micros;
	word->thawed = balance_apply(&row, &stat, &news);
	rc = account_put(txn, ref, &row);
	if (rc == STORE_OK)
		rc = account_stat_put(txn, ref, &stat);
	if (rc != STORE_OK || !word->thawed)
		return rc;
	make_event(word, &before, &row);
	rc = cooldown_del_all(txn, ref);
	if (rc == STORE_OK)
		rc = clear_note(txn, ref);
	return rc == STORE_OK ? journal_add(txn, &word->event) : rc;
}

struct batch {
	struct serve *s;
	struct wall_ms now, first_run;
	unsigned n;
	bool more;
	struct {
		size_t channel, account;
	} at[BATCH];
};

/* Who is disabled is not asked: its key may be refused, and credits bring nobody back. */
static enum store_rc
look(struct txn *txn, struct batch *b, size_t channel, size_t account)
{
	struct account_ref ref = pool_ref(b->s->pool, channel, account);
	const struct conf_channel *ch = &b->s->conf->channels[channel];
	struct account_row row;
	struct account_stat stat;
	enum store_rc rc = account_get(txn, ref, &row);

	if (rc == STORE_OK)
		rc = account_stat_get(txn, ref, &stat);
	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	if (!ch->accounts[account].enabled || (row.flags & ACCOUNT_DISABLED) ||
	    balance_due(ch, &stat, b->first_run).v > b->now.v)
		return STORE_OK;
	b->more = b->n == BATCH;
	if (!b->more) {
		b->at[b->n].channel = channel;
		b->at[b->n++].account = account;
	}
	return STORE_OK;
}

static enum store_rc
gather(struct txn *txn, void *arg)
{
	struct batch *b = arg;
	const struct conf *conf = b->s->conf;
	enum store_rc rc = STORE_OK;

	b->n = 0;
	b->more = false;
	for (size_t c = 0; c < conf->nchannels; c++) {
		if (conf->channels[c].balance.url.n == 0)
			continue;
		for (size_t a = 0; a < conf->channels[c].naccounts && !b->more; a++) {
			if (pool_has(b->s->pool, c, a))
				rc = look(txn, b, c, a);
			if (rc != STORE_OK)
				return rc;
		}
	}
	return STORE_OK;
}

static enum store_rc
write_word(struct txn *txn, void *arg)
{
	return balance_write(txn, arg);
}

/* Asked in vain once more; after the last time it is as if it had been told nothing new. */
static enum store_rc
write_failure(struct txn *txn, void *arg)
{
	const struct balance_word *word = arg;
	struct account_ref ref = pool_ref(word->pool, word->channel, word->account);
	struct account_stat stat;
	enum store_rc rc = account_stat_get(txn, ref, &stat);

	if (rc != STORE_OK)
		return rc;
	if (++stat.balance_tries >= BALANCE_TRIES) {
		stat.balance_tries = 0;
		stat.balance_at_ms = word->now.v;
	}
	return account_stat_put(txn, ref, &stat);
}

static void
ask(struct serve *s, size_t channel, size_t account)
{
	const struct conf_channel *ch = &s->conf->channels[channel];
	struct upstream_call call = {
	    .channel = ch,
	    .account = &ch->accounts[account],
	    .url = ch->balance.url,
	    .get = text_is(ch->balance.method, "GET"),
	    .body = SPAN("{}"),
	};
	struct balance_word word = {
	    .pool = s->pool, .channel = channel, .account = account, .who = "balance.url"};
	struct errand_answer answer;
	bool told;

	errand_run(s, &call, &answer);
	/* one that was given up counts as a try, too: the others must have their turn */
	told = !answer.interrupted && answer.transport == TRANSPORT_OK && !answer.cut &&
	       answer.status >= 200 && answer.status < 300 &&
	       balance_read(s->arena, answer.body, ch->balance.credits, &word.micros);
	word.now = clock_wall();
	if (env_update(s->env, told ? write_word : write_failure, &word) != STORE_OK)
		log_fields(s->log, LOG_LEVEL_WARN, word.now, "a balance was not written",
		    LOG_TEXT("channel", ch->name), LOG_Z("why", env_error(s->env)));
	else if (!told)
		log_fields(s->log, LOG_LEVEL_WARN, word.now, "upstream told no balance",
		    LOG_TEXT("channel", ch->name), LOG_TEXT("account", call.account->id),
		    LOG_NUMBER("status", answer.status),
		    LOG_Z("why",
		        answer.text[0] != '\0' ? answer.text : "no number at balance.credits"));
	if (told && word.thawed) {
		record_event(s->log, &word.event, SPAN(""));
		s->hard_facts = true;
	}
}

bool
balance_run(struct serve *s, uint64_t *cursor)
{
	struct batch b = {.s = s, .now = clock_wall()};
	struct mono_ms began = clock_mono();

	if (*cursor == 0 || *cursor > (uint64_t)b.now.v)
		*cursor = (uint64_t)b.now.v; /* the first time, or the clock was wrong then */
	b.first_run.v = (int64_t)*cursor;
	if (env_view(s->env, gather, &b) != STORE_OK) {
		log_fields(s->log, LOG_LEVEL_WARN, b.now, "balances could not be looked at",
		    LOG_Z("why", env_error(s->env)));
		return false;
	}
	for (unsigned i = 0; i < b.n; i++) {
		if (errand_must_return(s) || clock_mono().v - began.v > BEGIN_MS)
			return true;
		ask(s, b.at[i].channel, b.at[i].account);
		arena_reset(s->arena);
	}
	return b.more;
}
