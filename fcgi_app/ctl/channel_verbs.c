#include "ctl/channel_verbs.h"

#include "base/clock.h"
#include "base/emit.h"
#include "ctl/args.h"
#include "ctl/attach.h"
#include "ctl/human.h"
#include "store/journal.h"

#include <string.h>

#define OUTPUT_MAX (64u << 20)
#define TRIGGERS_TEXT 64

struct look {
	const struct attach *attach;
	struct wall_ms now;
	size_t channel;
	bool json;
	struct buf out;
	struct emit emit;
};

static void
triggers_text(unsigned triggers, char out[TRIGGERS_TEXT])
{
	size_t n = 0;

	out[0] = '\0';
	for (unsigned bit = 1; bit <= BREAKER_TRIGGERS; bit <<= 1)
		if (triggers & bit)
			n += (size_t)snprintf(out + n, TRIGGERS_TEXT - n, "%s%s", n > 0 ? " " : "",
			    breaker_trigger_name(bit));
	if (n == 0)
		snprintf(out, TRIGGERS_TEXT, "none");
}

static enum store_rc
count_active(const struct look *look, struct txn *txn, size_t c, unsigned *active_out)
{
	const struct conf_channel *channel = &look->attach->conf->channels[c];

	*active_out = 0;
	for (size_t i = 0; i < channel->naccounts; i++) {
		struct account_row row;
		enum store_rc rc;

		if (!pool_has(look->attach->pool, c, i))
			continue;
		rc = account_get(txn, pool_ref(look->attach->pool, c, i), &row);
		if (rc != STORE_OK && rc != STORE_NONE)
			return rc;
		*active_out +=
		    channel->accounts[i].enabled && health_state(&row, look->now) == HEALTH_ACTIVE;
	}
	return STORE_OK;
}

static void
channel_json(struct look *look, const struct conf_channel *channel, const struct breaker_row *row,
    unsigned active)
{
	struct breaker_policy policy = pick_breaker_policy(&channel->policy);
	struct breaker_sums sums;
	struct emit *e = &look->emit;

	breaker_sums(row, &policy, look->now, &sums);
	emit_object(e, NULL);
	emit_text(e, "name", channel->name);
	emit_z(e, "provider", channel->provider->name);
	emit_array(e, "fallback");
	for (size_t i = 0; i < channel->nfallback; i++)
		emit_text(e, NULL, look->attach->conf->channels[channel->fallback[i]].name);
	emit_end(e);
	emit_i64(e, "accounts", (int64_t)channel->naccounts);
	emit_i64(e, "active", active);
	status_breaker(e, row, &policy);
	emit_bool(e, "switched", row->overridden);
	emit_object(e, "window");
	emit_i64(e, "requests", (int64_t)sums.requests);
	emit_i64(e, "failures", (int64_t)sums.failures);
	if (sums.latency_n == 0)
		emit_null(e, "first_content_ms");
	else
		emit_i64(e, "first_content_ms", (int64_t)(sums.latency_sum_ms / sums.latency_n));
	emit_end(e);
	emit_end(e);
}

#define LINE "%-16s %-18s %-10s %-10s %7s  %s\n"

static void
channel_line(struct look *look, const struct conf_channel *channel, const struct breaker_row *row,
    unsigned active)
{
	struct breaker_policy policy = pick_breaker_policy(&channel->policy);
	char triggers[TRIGGERS_TEXT], left[HUMAN_TIME], accounts[32];

	triggers_text(breaker_triggers(row, &policy), triggers);
	human_left(row->until_ms - look->now.v, left);
	snprintf(accounts, sizeof accounts, "%u/%zu", active, channel->naccounts);
	buf_print(&look->out, LINE, channel->name.p, channel->provider->name,
	    breaker_state_name((enum breaker_state)row->state), left, accounts, triggers);
	if (row->overridden)
		buf_print(&look->out, "%-16s triggers switched by an operator\n", "");
	if (row->trigger != 0)
		buf_print(
		    &look->out, "%-16s opened by %s\n", "", breaker_trigger_name(row->trigger));
}

static enum store_rc
list_in(struct txn *txn, void *arg)
{
	struct look *look = arg;
	const struct conf *conf = look->attach->conf;

	buf_clear(&look->out);
	emit_init(&look->emit, &look->out);
	if (look->json)
		emit_array(&look->emit, NULL);
	else
		buf_print(&look->out, LINE, "CHANNEL", "PROVIDER", "BREAKER", "LEFT", "ACTIVE",
		    "TRIGGERS");
	for (size_t c = 0; c < conf->nchannels; c++) {
		struct breaker_row row;
		unsigned active;
		enum store_rc rc = breaker_get(txn, look->attach->pool->channels[c].number, &row);

		if (rc == STORE_OK || rc == STORE_NONE)
			rc = count_active(look, txn, c, &active);
		if (rc != STORE_OK)
			return rc;
		if (look->json)
			channel_json(look, &conf->channels[c], &row, active);
		else
			channel_line(look, &conf->channels[c], &row, active);
	}
	if (look->json) {
		emit_end(&look->emit);
		buf_char(&look->out, '\n');
	}
	return STORE_OK;
}

static int
channel_list(struct ctl *ctl, int argc, char **argv)
{
	struct attach a;
	struct look look = {.attach = &a, .now = clock_wall()};
	int status = CTL_FAILED;

	if (!args_only(ctl, argc, argv, NULL, 0))
		return CTL_USAGE;
	if (!attach_open(ctl, &a, false))
		return CTL_FAILED;
	look.json = ctl->json;
	buf_init(&look.out, OUTPUT_MAX);
	if (env_view(a.env, list_in, &look) == STORE_OK)
		status = human_print(ctl, &look.out);
	else
		fprintf(ctl->err, "sluicectl: %s\n", env_error(a.env));
	buf_release(&look.out);
	attach_close(&a);
	return status;
}

enum order { ORDER_LOOK, ORDER_SWITCH, ORDER_FOLLOW };

struct change {
	const struct attach *attach;
	struct wall_ms now;
	size_t channel;
	enum order order;
	unsigned triggers; /* in: wanted; out: in force */
	unsigned in_force;
	bool switched;
};

static enum store_rc
write_event(struct txn *txn, const struct change *c, const struct breaker_row *row)
{
	struct journal_row event = {.level = JOURNAL_INFO, .at_ms = c->now.v};
	const char *state = breaker_state_name((enum breaker_state)row->state);

	text_clean(event.channel, sizeof event.channel, c->attach->conf->channels[c->channel].name);
	snprintf(event.from, sizeof event.from, "%s", state);
	snprintf(event.to, sizeof event.to, "%s", state);
	snprintf(event.cause, sizeof event.cause, "operator");
	if (c->switched)
		triggers_text(c->in_force, event.rule);
	else
		snprintf(event.rule, sizeof event.rule, "triggers as configured");
	return journal_add(txn, &event);
}

static enum store_rc
change_in(struct txn *txn, void *arg)
{
	struct change *c = arg;
	struct breaker_policy policy =
	    pick_breaker_policy(&c->attach->conf->channels[c->channel].policy);
	uint16_t number = c->attach->pool->channels[c->channel].number;
	struct breaker_row row;
	enum store_rc rc = breaker_get(txn, number, &row);

	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	if (c->order == ORDER_SWITCH)
		breaker_override(&row, c->triggers);
	else if (c->order == ORDER_FOLLOW)
		breaker_follow(&row);
	c->in_force = breaker_triggers(&row, &policy);
	c->switched = row.overridden;
	if (c->order == ORDER_LOOK)
		return STORE_OK;
	rc = breaker_put(txn, number, &row);
	return rc == STORE_OK ? write_event(txn, c, &row) : rc;
}

static const char *
trigger_word(size_t i, const void *arg)
{
	static const char *const more[] = {"none", "default"};

	(void)arg;
	if (i < 4)
		return breaker_trigger_name(1U << i);
	return i < 4 + NELEM(more) ? more[i - 4] : NULL;
}

static bool
read_trigger(struct ctl *ctl, const char *word, unsigned *triggers)
{
	struct args_guess guess = {"trigger", word, trigger_word, NULL};

	for (unsigned bit = 1; bit <= BREAKER_TRIGGERS; bit <<= 1)
		if (strcmp(word, breaker_trigger_name(bit)) == 0) {
			*triggers |= bit;
			return true;
		}
	args_guess(ctl, &guess);
	return false;
}

/* TRIGGER..., or one of `none` and `default`, or nothing: to look. */
static bool
read_order(struct ctl *ctl, int argc, char **argv, struct change *c)
{
	c->order = argc == 0 ? ORDER_LOOK : ORDER_SWITCH;
	if (argc == 1 && strcmp(argv[0], "none") == 0)
		return true;
	if (argc == 1 && strcmp(argv[0], "default") == 0) {
		c->order = ORDER_FOLLOW;
		return true;
	}
	for (int i = 0; i < argc; i++)
		if (!read_trigger(ctl, argv[i], &c->triggers))
			return false;
	return true;
}

static void
report(struct ctl *ctl, const struct change *c)
{
	const struct conf_channel *channel = &c->attach->conf->channels[c->channel];
	char triggers[TRIGGERS_TEXT];
	struct buf out;
	struct emit e;

	buf_init(&out, OUTPUT_MAX);
	emit_init(&e, &out);
	triggers_text(c->in_force, triggers);
	if (ctl->json) {
		emit_object(&e, NULL);
		emit_text(&e, "channel", channel->name);
		emit_array(&e, "triggers");
		for (unsigned bit = 1; bit <= BREAKER_TRIGGERS; bit <<= 1)
			if (c->in_force & bit)
				emit_z(&e, NULL, breaker_trigger_name(bit));
		emit_end(&e);
		emit_bool(&e, "switched", c->switched);
		emit_end(&e);
		buf_char(&out, '\n');
	} else {
		buf_print(&out, "%s: %s%s\n", channel->name.p, triggers,
		    c->switched ? " (switched by an operator)" : " (as configured)");
	}
	fwrite(out.p, 1, out.n, ctl->out);
	buf_release(&out);
}

static int
channel_triggers(struct ctl *ctl, int argc, char **argv)
{
	struct attach a;
	struct change c = {.attach = &a, .now = clock_wall()};
	int status = CTL_FAILED;
	enum store_rc rc;

	if (!args_read(ctl, &argc, argv, NULL, 0))
		return CTL_USAGE;
	if (argc < 2) {
		fprintf(ctl->err,
		    "usage: sluicectl channel triggers NAME [TRIGGER...|none|default] [--json]\n");
		return CTL_USAGE;
	}
	if (!read_order(ctl, argc - 2, argv + 2, &c))
		return CTL_USAGE;
	if (!attach_open(ctl, &a, c.order != ORDER_LOOK))
		return CTL_FAILED;
	if (attach_find_channel(ctl, &a, argv[1], &c.channel)) {
		rc = c.order == ORDER_LOOK ? env_view(a.env, change_in, &c)
		                           : env_update(a.env, change_in, &c);
		if (rc == STORE_OK && c.order != ORDER_LOOK)
			attach_save(ctl, &a, NULL, 0);
		if (rc == STORE_OK)
			report(ctl, &c);
		else
			fprintf(ctl->err, "sluicectl: %s\n", env_error(a.env));
		status = rc == STORE_OK ? CTL_DONE : CTL_FAILED;
	}
	attach_close(&a);
	return status;
}

int
channel_verbs_run(struct ctl *ctl, int argc, char **argv)
{
	static const struct args_verb verbs[] = {
	    {"list", channel_list, "[--json]"},
	    {"triggers", channel_triggers, "NAME [TRIGGER...|none|default] [--json]"},
	};

	return args_verb_run(ctl, argc, argv, verbs, NELEM(verbs));
}
