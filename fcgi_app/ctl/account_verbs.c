#include "ctl/account_verbs.h"

#include "base/clock.h"
#include "base/emit.h"
#include "ctl/attach.h"
#include "ctl/credits.h"
#include "ctl/show.h"
#include "store/cooldown.h"
#include "store/journal.h"

#include <stdlib.h>
#include <string.h>

/* Which accounts a change is for. */
struct targets {
	size_t n;
	struct target {
		size_t channel, account;
	} * at;
};

struct order {
	const struct attach *attach;
	struct targets targets;
	enum health_order verb;
	struct wall_ms now;
	unsigned changed;
};

static const char *const verb_names[] = {
    [HEALTH_ENABLE] = "enable",
    [HEALTH_DISABLE] = "disable",
    [HEALTH_REVIVE] = "revive",
    [HEALTH_CLEAR] = "clear",
};

static void
add_target(struct targets *targets, size_t channel, size_t account)
{
	targets->at = realloc(targets->at, (targets->n + 1) * sizeof *targets->at);
	if (targets->at == NULL)
		die("no memory");
	targets->at[targets->n++] = (struct target){channel, account};
}

/* What the options --all, --channel and --realm said. */
struct filter {
	bool given;
	const char *channel, *realm; /* "" takes any */
};

static void
add_matching(struct targets *targets, const struct conf *conf, const struct filter *filter)
{
	const char *channel = filter->channel, *realm = filter->realm;

	for (size_t c = 0; c < conf->nchannels; c++)
		for (size_t i = 0; i < conf->channels[c].naccounts; i++)
			if ((channel[0] == '\0' || text_is(conf->channels[c].name, channel)) &&
			    (realm[0] == '\0' ||
			        text_is(conf->channels[c].accounts[i].realm, realm)))
				add_target(targets, c, i);
}

static enum store_rc
write_event(struct txn *txn, const struct order *o, const struct target *t, enum health_state from,
    enum health_state to)
{
	const struct conf_channel *channel = &o->attach->conf->channels[t->channel];
	struct journal_row event = {.level = JOURNAL_INFO, .at_ms = o->now.v};

	text_clean(event.channel, sizeof event.channel, channel->name);
	text_clean(event.account, sizeof event.account, channel->accounts[t->account].id);
	snprintf(event.from, sizeof event.from, "%s", health_state_name(from));
	snprintf(event.to, sizeof event.to, "%s", health_state_name(to));
	snprintf(event.cause, sizeof event.cause, "operator");
	snprintf(event.rule, sizeof event.rule, "sluicectl account %s", verb_names[o->verb]);
	return journal_add(txn, &event);
}

static enum store_rc
change_one(struct txn *txn, struct order *o, const struct target *t)
{
	struct account_ref ref = pool_ref(o->attach->pool, t->channel, t->account);
	struct account_row row;
	enum health_state from;
	enum store_rc rc = account_get(txn, ref, &row);

	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	from = health_state(&row, o->now);
	health_order(&row, o->verb);
	rc = account_put(txn, ref, &row);
	if (rc == STORE_OK && (o->verb == HEALTH_CLEAR || o->verb == HEALTH_REVIVE))
		rc = cooldown_del_all(txn, ref);
	o->changed++;
	return rc == STORE_OK ? write_event(txn, o, t, from, health_state(&row, o->now)) : rc;
}

static enum store_rc
change_all(struct txn *txn, void *arg)
{
	struct order *o = arg;
	enum store_rc rc = STORE_OK;

	o->changed = 0;
	for (size_t i = 0; i < o->targets.n && rc == STORE_OK; i++)
		if (pool_has(o->attach->pool, o->targets.at[i].channel, o->targets.at[i].account))
			rc = change_one(txn, o, &o->targets.at[i]);
	return rc;
}

static int
change_usage(struct ctl *ctl, enum health_order verb)
{
	fprintf(ctl->err,
	    "usage: sluicectl account %s ID... | --all | --channel NAME | --realm NAME  [--json]\n",
	    verb_names[verb]);
	return CTL_USAGE;
}

/* Take an option, and its value if it has one, off the words. False: it is none that we know. */
static bool
read_option(struct ctl *ctl, char ***words, struct filter *filter)
{
	const char *word = **words, *value = (*words)[1];
	bool json = strcmp(word, "--json") == 0;
	const char **into = strcmp(word, "--channel") == 0 ? &filter->channel
	                    : strcmp(word, "--realm") == 0 ? &filter->realm
	                                                   : NULL;

	ctl->json = ctl->json || json;
	filter->given = filter->given || !json;
	if (into == NULL)
		return json || strcmp(word, "--all") == 0;
	if (value == NULL || value[0] == '\0')
		return false;
	*into = value;
	++*words;
	return true;
}

/* Fill targets from the command line: CTL_DONE, or the exit status. */
static int
read_targets(struct ctl *ctl, const struct attach *a, enum health_order verb, char **words,
    struct targets *targets)
{
	struct filter filter = {false, "", ""};

	for (; *words != NULL; words++) {
		struct target t;

		if (**words == '-') {
			if (!read_option(ctl, &words, &filter))
				return change_usage(ctl, verb);
		} else if (attach_find(ctl, a, *words, &t.channel, &t.account)) {
			add_target(targets, t.channel, t.account);
		} else {
			return CTL_FAILED;
		}
	}
	if (filter.given)
		add_matching(targets, a->conf, &filter);
	return CTL_DONE;
}

static void
save_targets(struct ctl *ctl, const struct order *o)
{
	struct account_ref *refs = calloc(o->targets.n, sizeof *refs);
	size_t n = 0;

	if (refs == NULL)
		die("no memory");
	for (size_t i = 0; i < o->targets.n; i++)
		if (pool_has(o->attach->pool, o->targets.at[i].channel, o->targets.at[i].account))
			refs[n++] = pool_ref(
			    o->attach->pool, o->targets.at[i].channel, o->targets.at[i].account);
	attach_save(ctl, o->attach, refs, n);
	free(refs);
}

static int
change(struct ctl *ctl, enum health_order verb, char **words)
{
	struct attach a;
	struct order o = {.attach = &a, .verb = verb, .now = clock_wall()};
	int status;

	if (!attach_open(ctl, &a, true))
		return CTL_FAILED;
	status = read_targets(ctl, &a, verb, words, &o.targets);
	if (status == CTL_DONE && o.targets.n == 0) {
		status = change_usage(ctl, verb);
	} else if (status == CTL_DONE && env_update(a.env, change_all, &o) != STORE_OK) {
		fprintf(ctl->err, "sluicectl: %s\n", env_error(a.env));
		status = CTL_FAILED;
	} else if (status == CTL_DONE) {
		save_targets(ctl, &o);
		fprintf(ctl->out, ctl->json ? "{\"changed\":%u}\n" : "%u changed\n", o.changed);
	}
	free(o.targets.at);
	attach_close(&a);
	return status;
}

static int
enable(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	return change(ctl, HEALTH_ENABLE, argv + 1);
}

static int
disable(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	return change(ctl, HEALTH_DISABLE, argv + 1);
}

static int
revive(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	return change(ctl, HEALTH_REVIVE, argv + 1);
}

static int
clear(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	return change(ctl, HEALTH_CLEAR, argv + 1);
}

static const struct {
	const char *verb;
	int (*run)(struct ctl *ctl, int argc, char **argv);
} table[] = {{"list", show_account_list}, {"show", show_account_one}, {"enable", enable},
    {"disable", disable}, {"revive", revive}, {"clear", clear}, {"credits", credits_run}};

int
account_verbs_run(struct ctl *ctl, int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < NELEM(table); i++)
		if (strcmp(argv[1], table[i].verb) == 0)
			return table[i].run(ctl, argc - 1, argv + 1);
	fprintf(ctl->err,
	    "usage: sluicectl account list|show|enable|disable|revive|clear|credits ...\n");
	return CTL_USAGE;
}
