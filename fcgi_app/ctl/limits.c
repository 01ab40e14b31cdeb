#include "ctl/limits.h"

#include "base/clock.h"
#include "base/emit.h"
#include "ctl/args.h"
#include "ctl/attach.h"
#include "ctl/human.h"
#include "status_account.h"
#include "store/cooldown.h"
#include "verdict.h"

#include <stdlib.h>

#define OUTPUT_MAX (256u << 20)

struct rest {
	size_t channel, account;
	char model[COOLDOWN_MODEL_MAX + 1]; /* "" = the whole account */
	const char *kind;
	int64_t until_ms, reset_at_ms; /* 0 = nobody stated one */
	bool guessed;
	int status;
	char reason[160], rule[64];
};

struct look {
	const struct attach *attach;
	struct wall_ms now;
	struct slot_list nobody; /* who works there does not matter here */
	struct rest *rests;
	size_t n;
};

static struct rest *
add(struct look *look, size_t channel, size_t account)
{
	struct rest *rest;

	look->rests = human_grow(look->rests, look->n, sizeof *look->rests);
	rest = &look->rests[look->n++];
	*rest = (struct rest){.channel = channel, .account = account};
	return rest;
}

static void
add_account(struct look *look, size_t channel, size_t account, const struct status_view *v)
{
	struct rest *rest;

	if (v->row.cool_until_ms > look->now.v) {
		rest = add(look, channel, account);
		rest->kind = verdict_name(v->row.cool_kind);
		rest->until_ms = v->row.cool_until_ms;
		rest->reset_at_ms = v->stat.reset_at_ms;
		rest->guessed = v->row.flags & ACCOUNT_GUESSED;
		rest->status = v->stat.cool_status;
		text_clean(rest->reason, sizeof rest->reason, text_span(v->note.reason));
		text_clean(rest->rule, sizeof rest->rule, text_span(v->note.rule));
	}
	if (v->row.breaker_until_ms > look->now.v) {
		rest = add(look, channel, account);
		rest->kind = "breaker";
		rest->until_ms = v->row.breaker_until_ms;
		rest->guessed = true;
		snprintf(rest->reason, sizeof rest->reason, "failed %u times in a row",
		    (unsigned)v->row.consecutive);
	}
}

static void
add_pair(const struct cooldown_pair *pair, void *arg)
{
	struct account_ref ref = {pair->row.channel, pair->row.account};
	struct look *look = arg;
	size_t channel, account;
	struct rest *rest;

	if (pair->row.until_ms <= look->now.v ||
	    !attach_whose(look->attach, ref, &channel, &account))
		return;
	rest = add(look, channel, account);
	text_clean(rest->model, sizeof rest->model, text_span(pair->model));
	rest->kind = verdict_name(pair->row.kind);
	rest->until_ms = pair->row.until_ms;
	rest->reset_at_ms = pair->row.reset_at_ms;
	rest->guessed = pair->row.guessed;
	rest->status = pair->row.status;
	text_clean(rest->reason, sizeof rest->reason, text_span(pair->row.reason));
}

static enum store_rc
look_in(struct txn *txn, void *arg)
{
	struct look *look = arg;
	const struct conf *conf = look->attach->conf;
	struct status_frame frame = {.conf = conf, .pool = look->attach->pool, .now = look->now};

	look->n = 0;
	for (size_t c = 0; c < conf->nchannels; c++)
		for (size_t i = 0; i < conf->channels[c].naccounts; i++) {
			struct status_view view;
			enum store_rc rc = status_view(txn, &frame, &look->nobody, c, i, &view);

			if (rc != STORE_OK)
				return rc;
			add_account(look, c, i, &view);
		}
	return cooldown_walk(txn, add_pair, look);
}

static int
sooner(const void *x, const void *y)
{
	const struct rest *a = x, *b = y;

	if (a->until_ms != b->until_ms)
		return a->until_ms < b->until_ms ? -1 : 1;
	if (a->channel != b->channel)
		return a->channel < b->channel ? -1 : 1;
	return (a->account > b->account) - (a->account < b->account);
}

static void
rest_json(struct emit *e, const struct look *look, const struct rest *rest)
{
	const struct conf_channel *channel = &look->attach->conf->channels[rest->channel];

	emit_object(e, NULL);
	emit_text(e, "channel", channel->name);
	emit_text(e, "account", channel->accounts[rest->account].id);
	emit_some(e, "model", text_span(rest->model));
	emit_z(e, "kind", rest->kind);
	emit_time(e, "until", (struct wall_ms){rest->until_ms});
	emit_i64(e, "left_s", (rest->until_ms - look->now.v + 999) / 1000);
	emit_time(e, "reset_at", (struct wall_ms){rest->reset_at_ms});
	emit_bool(e, "guessed", rest->guessed);
	emit_some(e, "reason", text_span(rest->reason));
	emit_some(e, "rule", text_span(rest->rule));
	emit_known(e, "status", rest->status, rest->status != 0);
	emit_end(e);
}

static void
rest_line(struct buf *out, const struct look *look, const struct rest *rest)
{
	const struct conf_channel *channel = &look->attach->conf->channels[rest->channel];
	char until[HUMAN_TIME], left[HUMAN_TIME], stated[HUMAN_TIME], name[160];

	human_time((struct wall_ms){rest->until_ms}, until);
	human_time((struct wall_ms){rest->reset_at_ms}, stated);
	human_left(rest->until_ms - look->now.v, left);
	snprintf(
	    name, sizeof name, "%s/%s", channel->name.p, channel->accounts[rest->account].id.p);
	buf_print(out, "%-24s %-20s %-13s %-8s %-19s  %-19s %3.0d  %s%s%s\n", name,
	    rest->model[0] == '\0' ? "-" : rest->model, rest->kind, left, until,
	    rest->reset_at_ms == 0 && rest->guessed ? "(guessed)" : stated, rest->status,
	    rest->rule, rest->rule[0] == '\0' ? "" : ": ", rest->reason);
}

static int
print(struct ctl *ctl, const struct look *look)
{
	struct buf out;
	struct emit e;
	int status;

	buf_init(&out, OUTPUT_MAX);
	emit_init(&e, &out);
	if (ctl->json)
		emit_array(&e, NULL);
	else
		buf_print(&out, "%-24s %-20s %-13s %-8s %-19s  %-19s %3s  %s\n", "ACCOUNT", "MODEL",
		    "KIND", "LEFT", "UNTIL", "STATED", "", "WHY");
	for (size_t i = 0; i < look->n; i++)
		if (ctl->json)
			rest_json(&e, look, &look->rests[i]);
		else
			rest_line(&out, look, &look->rests[i]);
	if (ctl->json) {
		emit_end(&e);
		buf_char(&out, '\n');
	}
	status = human_print(ctl, &out);
	buf_release(&out);
	return status;
}

int
limits_run(struct ctl *ctl, int argc, char **argv)
{
	struct look *look;
	struct attach a;
	int status = CTL_FAILED;

	if (!args_only(ctl, argc, argv, NULL, 0))
		return CTL_USAGE;
	if (!attach_open(ctl, &a, false))
		return CTL_FAILED;
	look = calloc(1, sizeof *look);
	if (look == NULL)
		die("no memory");
	look->attach = &a;
	look->now = clock_wall();
	if (env_view(a.env, look_in, look) != STORE_OK) {
		fprintf(ctl->err, "sluicectl: %s\n", env_error(a.env));
	} else {
		if (look->n > 0)
			qsort(look->rests, look->n, sizeof *look->rests, sooner);
		status = print(ctl, look);
	}
	free(look->rests);
	free(look);
	attach_close(&a);
	return status;
}
