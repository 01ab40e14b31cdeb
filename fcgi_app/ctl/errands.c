#include "ctl/errands.h"

#include "base/clock.h"
#include "base/emit.h"
#include "base/sandbox.h"
#include "chores.h"
#include "ctl/args.h"
#include "ctl/attach.h"
#include "probe_run.h"
#include "store/tally.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <unistd.h>

#define ARENA_MAX (32u << 20)
#define ROUNDS_MAX 10000 /* of a tick: what is left is for the next one */
#define OUTPUT_MAX (16u << 20)

/* What a worker has, as far as errands need it. */
struct shift {
	struct attach a;
	struct serve serve;
	struct watch watch;
	struct trust *trust;
};

/* attach_open() only lent us the owner's identity: what is run from here must not get root's back. */
static bool
stay_owner(struct ctl *ctl)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (getuid() == uid)
		return true;
	if (seteuid(0) == 0 && setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 &&
	    setresuid(uid, uid, uid) == 0)
		return true;
	fprintf(ctl->err, "sluicectl: cannot become user %u: %s\n", (unsigned)uid, strerror(errno));
	return false;
}

/* Warnings go to standard error where the log would, so that cron mails them. */
static struct log *
open_log(const struct conf *conf)
{
	bool here = text_is(conf->log.target, "stderr");

	return log_open(conf->log.target.p, here ? LOG_LEVEL_WARN : (enum log_level)conf->log.level,
	    !here && conf->log.format == CONF_LOG_JSON);
}

static bool
open_parts(struct ctl *ctl, struct shift *shift)
{
	struct serve *s = &shift->serve;
	struct why why;

	if (!stay_owner(ctl))
		return false;
	sandbox_harden();
	if (trust_load(shift->a.conf, &shift->trust, &why) != ERR_OK) {
		fprintf(ctl->err, "sluicectl: %s\n", why.text);
		return false;
	}
	s->log = open_log(shift->a.conf);
	if (s->log == NULL || watch_open(&shift->watch, 0) < 0) {
		fprintf(ctl->err, "sluicectl: cannot open log.target or watch for signals\n");
		return false;
	}
	s->up = upstream_new(shift->trust);
	s->arena = arena_new(ARENA_MAX);
	return true;
}

static void
shift_end(struct shift *shift)
{
	upstream_free(&shift->serve.up);
	arena_free(&shift->serve.arena);
	log_close(&shift->serve.log);
	trust_free(&shift->trust);
	if (shift->watch.signal_fd >= 0)
		close(shift->watch.signal_fd);
	attach_close(&shift->a);
}

static bool
shift_begin(struct ctl *ctl, struct shift *shift)
{
	*shift = (struct shift){.watch = {.signal_fd = -1, .client_fd = -1}};
	if (!attach_open(ctl, &shift->a, true))
		return false;
	shift->serve = (struct serve){
	    .conf = shift->a.conf,
	    .pool = shift->a.pool,
	    .env = shift->a.env,
	    .slot = shift->a.slot,
	    .watch = &shift->watch,
	    .listen_fd = -1,
	};
	if (open_parts(ctl, shift))
		return true;
	shift_end(shift);
	return false;
}

static void
print_report(struct ctl *ctl, struct emit *e, const struct conf_channel *channel,
    const struct conf_account *account, const struct probe_report *r)
{
	const char *result = r->result == PROBE_NEVER ? "unknown" : probe_result_name(r->result);
	char name[160];

	snprintf(name, sizeof name, "%.*s/%.*s", (int)channel->name.n, channel->name.p,
	    (int)account->id.n, account->id.p);
	if (ctl->json) {
		emit_object(e, NULL);
		emit_z(e, "account", name);
		emit_z(e, "result", result);
		emit_z(e, "way", r->way == PROBE_CHAT ? "chat" : "models");
		emit_z(e, "model", r->model[0] == '\0' ? NULL : r->model);
		emit_z(e, "verdict", verdict_table[r->verdict].name);
		emit_i64(e, "status", r->status);
		emit_z(e, "why", r->why);
		emit_end(e);
		return;
	}
	fprintf(ctl->out, "%-30s  %-12s  %s%s%s", name, result,
	    r->way == PROBE_CHAT ? "chat " : "GET /models", r->model,
	    r->result == PROBE_HEALTHY ? "" : "  ");
	if (r->result != PROBE_HEALTHY)
		fprintf(ctl->out, "%s (%d) %s", verdict_table[r->verdict].name, r->status, r->why);
	fputc('\n', ctl->out);
	fflush(ctl->out);
}

static void
probe_one(struct ctl *ctl, struct shift *shift, struct emit *e, bool chat, size_t c, size_t i)
{
	const struct conf_channel *channel = &shift->a.conf->channels[c];
	struct probe_report report;

	if (shift->watch.stopping || !pool_has(shift->a.pool, c, i))
		return;
	probe_run_one(&shift->serve, c, i, chat, &report);
	print_report(ctl, e, channel, &channel->accounts[i], &report);
}

static void
probe_all(struct ctl *ctl, struct shift *shift, struct emit *e, bool chat)
{
	for (size_t c = 0; c < shift->a.conf->nchannels; c++)
		for (size_t i = 0; i < shift->a.conf->channels[c].naccounts; i++)
			if (shift->a.conf->channels[c].accounts[i].enabled)
				probe_one(ctl, shift, e, chat, c, i);
}

static bool
probe_named(struct ctl *ctl, struct shift *shift, struct emit *e, bool chat, char **names)
{
	bool ok = true;

	for (; *names != NULL; names++) {
		size_t c, at;

		if (attach_find(ctl, &shift->a, *names, &c, &at))
			probe_one(ctl, shift, e, chat, c, at);
		else
			ok = false;
	}
	return ok;
}

int
errands_probe_run(struct ctl *ctl, int argc, char **argv)
{
	bool models = false, ok = true;
	const struct args_option options[] = {{.name = "--models", .flag = &models}};
	struct shift shift;
	struct buf out;
	struct emit e;

	if (!args_read(ctl, &argc, argv, options, NELEM(options)))
		return CTL_USAGE;
	if (!shift_begin(ctl, &shift))
		return CTL_FAILED;
	buf_init(&out, OUTPUT_MAX);
	emit_init(&e, &out);
	emit_array(&e, NULL);
	if (argc == 1)
		probe_all(ctl, &shift, &e, !models);
	else
		ok = probe_named(ctl, &shift, &e, !models, argv + 1);
	emit_end(&e);
	if (ctl->json)
		fprintf(ctl->out, "%.*s\n", (int)out.n, out.p);
	buf_release(&out);
	ok = ok && !shift.watch.stopping;
	shift_end(&shift);
	return ok ? CTL_DONE : CTL_FAILED;
}

int
errands_tick_run(struct ctl *ctl, int argc, char **argv)
{
	struct shift shift;
	unsigned jobs = 0, n = 1;

	if (!args_only(ctl, argc, argv, NULL, 0))
		return CTL_USAGE;
	if (!shift_begin(ctl, &shift))
		return CTL_FAILED;
	chores_degraded(&shift.serve, clock_wall());
	for (unsigned i = 0; i < ROUNDS_MAX && n > 0 && !shift.watch.stopping; i++) {
		n = chores_run(&shift.serve, clock_wall());
		jobs += n;
	}
	fprintf(ctl->out, ctl->json ? "{\"run\":%u}\n" : "%u run\n", jobs);
	shift_end(&shift);
	return CTL_DONE;
}

static const char *const orders[] = {
    [TALLY_DEGRADE_AUTO] = "auto", [TALLY_DEGRADE_ON] = "on", [TALLY_DEGRADE_OFF] = "off"};

struct degrade {
	uint64_t order, now; /* the word, and what is so at present */
	bool set;
};

static enum store_rc
read_degrade(struct txn *txn, void *arg)
{
	struct degrade *d = arg;
	enum store_rc rc = tally_get(txn, TALLY_DEGRADE, &d->order);

	return rc == STORE_OK ? tally_get(txn, TALLY_DEGRADED, &d->now) : rc;
}

static enum store_rc
write_degrade(struct txn *txn, void *arg)
{
	const struct degrade *d = arg;

	return tally_set(txn, TALLY_DEGRADE, d->order);
}

/* The word on the command line; false: there is none such. */
static bool
read_order(const char *word, struct degrade *d)
{
	d->set = word != NULL;
	for (size_t at = 0; d->set && at < NELEM(orders); at++)
		if (strcmp(word, orders[at]) == 0) {
			d->order = at;
			return true;
		}
	return !d->set;
}

static void
print_degrade(struct ctl *ctl, const struct degrade *d)
{
	const char *order = orders[d->order % NELEM(orders)];

	if (ctl->json)
		fprintf(ctl->out, "{\"degrade\":\"%s\",\"degraded\":%s}\n", order,
		    d->now ? "true" : "false");
	else
		fprintf(ctl->out, "degrade %s%s\n", order,
		    d->set   ? ""
		    : d->now ? ": requests are refused"
		             : ": requests are served");
}

/* Write the word where there is one, and read what holds. */
static enum store_rc
degrade_apply(struct ctl *ctl, const struct attach *a, struct degrade *d)
{
	enum store_rc rc = d->set ? env_update(a->env, write_degrade, d) : STORE_OK;

	if (rc == STORE_OK && d->set)
		attach_save(ctl, a, NULL, 0);
	return rc == STORE_OK ? env_view(a->env, read_degrade, d) : rc;
}

int
errands_degrade_run(struct ctl *ctl, int argc, char **argv)
{
	struct degrade d = {.set = false};
	struct attach a;
	enum store_rc rc;

	if (!args_read(ctl, &argc, argv, NULL, 0))
		return CTL_USAGE;
	if (argc > 2 || !read_order(argv[1], &d)) {
		fprintf(ctl->err, "usage: sluicectl degrade [on | off | auto] [--json]\n");
		return CTL_USAGE;
	}
	if (!attach_open(ctl, &a, false))
		return CTL_FAILED;
	rc = degrade_apply(ctl, &a, &d);
	if (rc == STORE_OK)
		print_degrade(ctl, &d);
	else
		fprintf(ctl->err, "sluicectl: %s\n", env_error(a.env));
	attach_close(&a);
	return rc == STORE_OK ? CTL_DONE : CTL_FAILED;
}
