#include "ctl/session_verbs.h"

#include "base/clock.h"
#include "base/emit.h"
#include "ctl/args.h"
#include "ctl/attach.h"
#include "ctl/human.h"
#include "ctl/session_hash.h"
#include "store/sticky.h"

#include <stdlib.h>
#include <string.h>

#define OUTPUT_MAX (512u << 20)

_Static_assert(STICKY_KEY_BYTES == SESSION_HASH_BYTES, "bindings have the session's hash as key");

struct bindings {
	struct wall_ms now;
	char prefix[SESSION_HASH_HEX + 1]; /* "" = all */
	bool expired;                      /* those too */
	struct sticky_row *rows;
	size_t n;
};

static bool
gather(const struct sticky_row *row, void *arg)
{
	struct bindings *b = arg;
	char hex[SESSION_HASH_HEX + 1];

	session_hash_hex(row->key, hex);
	if (strncmp(hex, b->prefix, strlen(b->prefix)) != 0 ||
	    (!b->expired && sticky_expired(row, b->now)))
		return true;
	b->rows = human_grow(b->rows, b->n, sizeof *b->rows);
	b->rows[b->n++] = *row;
	return true;
}

static enum store_rc
gather_in(struct txn *txn, void *arg)
{
	struct bindings *b = arg;

	b->n = 0;
	return sticky_walk(txn, gather, b);
}

static int
newest_first(const void *x, const void *y)
{
	const struct sticky_row *a = x, *b = y;

	if (a->last_used_ms != b->last_used_ms)
		return a->last_used_ms > b->last_used_ms ? -1 : 1;
	return memcmp(a->key, b->key, sizeof a->key);
}

/* Names of a row; "(gone)" where the configuration has none any more. */
static void
names_of(const struct attach *a, const struct sticky_row *row, const char **channel_out,
    const char **account_out)
{
	struct account_ref ref = {row->channel, row->account};
	size_t channel, account;

	*channel_out = *account_out = NULL;
	if (attach_whose(a, ref, &channel, &account)) {
		*channel_out = a->conf->channels[channel].name.p;
		*account_out = a->conf->channels[channel].accounts[account].id.p;
	}
}

static void
binding_json(
    struct emit *e, const struct attach *a, const struct bindings *b, const struct sticky_row *row)
{
	const char *channel, *account;
	char hex[SESSION_HASH_HEX + 1];

	session_hash_hex(row->key, hex);
	names_of(a, row, &channel, &account);
	emit_object(e, NULL);
	emit_text(e, "session", (struct span){hex, SESSION_HASH_BRIEF});
	emit_z(e, "channel", channel);
	emit_z(e, "account", account);
	emit_time(e, "bound_at", (struct wall_ms){row->bound_ms});
	emit_time(e, "last_used", (struct wall_ms){row->last_used_ms});
	emit_time(e, "expires_at", (struct wall_ms){row->expires_ms});
	emit_i64(e, "left_s", (row->expires_ms - b->now.v + 999) / 1000);
	emit_end(e);
}

static void
binding_line(
    struct buf *out, const struct attach *a, const struct bindings *b, const struct sticky_row *row)
{
	const char *channel, *account;
	char hex[SESSION_HASH_HEX + 1], name[160], bound[HUMAN_TIME], used[HUMAN_TIME],
	    left[HUMAN_TIME];

	session_hash_hex(row->key, hex);
	names_of(a, row, &channel, &account);
	snprintf(name, sizeof name, "%s%s%s", channel == NULL ? "(gone)" : channel,
	    channel == NULL ? "" : "/", account == NULL ? "" : account);
	human_time((struct wall_ms){row->bound_ms}, bound);
	human_left(b->now.v - row->last_used_ms, used);
	human_left(row->expires_ms - b->now.v, left);
	buf_print(out, "%-12.12s  %-24s  %-19s  %-10s %-10s\n", hex, name, bound, used, left);
}

static int
print(struct ctl *ctl, const struct attach *a, const struct bindings *b)
{
	struct buf out;
	struct emit e;
	int status;

	buf_init(&out, OUTPUT_MAX);
	emit_init(&e, &out);
	if (ctl->json)
		emit_array(&e, NULL);
	else
		buf_print(&out, "%-12s  %-24s  %-19s  %-10s %-10s\n", "SESSION", "ACCOUNT", "BOUND",
		    "LAST USED", "LEFT");
	for (size_t i = 0; i < b->n; i++)
		if (ctl->json)
			binding_json(&e, a, b, &b->rows[i]);
		else
			binding_line(&out, a, b, &b->rows[i]);
	if (ctl->json) {
		emit_end(&e);
		buf_char(&out, '\n');
	}
	status = human_print(ctl, &out);
	buf_release(&out);
	return status;
}

int
session_verbs_list(struct ctl *ctl, int argc, char **argv)
{
	struct bindings b = {.now = clock_wall()};
	struct attach a;
	int status = CTL_FAILED;

	if (!args_only(ctl, argc, argv, NULL, 0))
		return CTL_USAGE;
	if (!attach_open(ctl, &a, false))
		return CTL_FAILED;
	if (env_view(a.env, gather_in, &b) == STORE_OK) {
		if (b.n > 0)
			qsort(b.rows, b.n, sizeof *b.rows, newest_first);
		status = print(ctl, &a, &b);
	} else {
		fprintf(ctl->err, "sluicectl: %s\n", env_error(a.env));
	}
	free(b.rows);
	attach_close(&a);
	return status;
}

struct drop {
	const struct attach *attach;
	const char *hash; /* NULL: by name */
	const char *client, *id;
	struct bindings found;
	unsigned sessions; /* different ones that the prefix fits */
	unsigned dropped;
};

static void
count_sessions(struct drop *d)
{
	d->sessions = 0;
	for (size_t i = 0; i < d->found.n; i++) {
		size_t before = 0;

		while (before < i && memcmp(d->found.rows[before].key, d->found.rows[i].key,
		                         STICKY_KEY_BYTES) != 0)
			before++;
		d->sessions += before == i;
	}
}

static enum store_rc
delete_in(struct txn *txn, void *arg)
{
	struct drop *d = arg;
	enum store_rc rc = STORE_OK;

	for (size_t i = 0; i < d->found.n && rc == STORE_OK; i++) {
		const struct sticky_row *row = &d->found.rows[i];
		struct sticky_id id = {
		    row->key, row->channel, d->found.now, d->attach->conf->sticky.ttl_ms};

		rc = sticky_del(txn, &id);
	}
	return rc;
}

/* Found without the writer's lock, which no walk over all sessions may hold. */
static enum store_rc
drop_found(struct ctl *ctl, struct drop *d)
{
	enum store_rc rc = env_view(d->attach->env, gather_in, &d->found);

	if (rc == STORE_OK)
		count_sessions(d);
	if (rc == STORE_OK && d->sessions == 1)
		rc = env_update(d->attach->env, delete_in, d);
	if (rc != STORE_OK)
		fprintf(ctl->err, "sluicectl: %s\n", env_error(d->attach->env));
	else if (d->sessions == 1)
		d->dropped += (unsigned)d->found.n;
	return rc;
}

static enum store_rc
drop_named(struct ctl *ctl, struct drop *d)
{
	struct session_key keys[SESSION_HASH_WAYS];
	enum store_rc rc = STORE_OK;

	if (!session_hash_named(ctl, d->attach->conf, d->client, d->id, keys))
		return STORE_IO;
	for (size_t i = 0; i < NELEM(keys) && rc == STORE_OK; i++) {
		session_hash_hex(keys[i].hash, d->found.prefix);
		rc = drop_found(ctl, d);
	}
	return rc;
}

static int
report(struct ctl *ctl, const struct drop *d)
{
	if (d->sessions > 1 && d->hash != NULL) {
		fprintf(ctl->err, "sluicectl: '%s' fits %u sessions: give more digits\n", d->hash,
		    d->sessions);
		return CTL_FAILED;
	}
	if (ctl->json)
		fprintf(ctl->out, "{\"dropped\":%u}\n", d->dropped);
	else if (d->dropped > 0)
		fprintf(ctl->out, "%u dropped\n", d->dropped);
	if (d->dropped > 0)
		return CTL_DONE;
	fprintf(ctl->err, "sluicectl: no such session is bound\n");
	return CTL_FAILED;
}

static int
session_drop(struct ctl *ctl, int argc, char **argv)
{
	struct attach a;
	struct drop d = {.attach = &a, .client = ""};
	const struct args_option options[] = {
	    {.name = "--client", .text = &d.client}, {.name = "--id", .text = &d.id}};
	enum store_rc rc;
	int status;

	if (!args_read(ctl, &argc, argv, options, NELEM(options)))
		return CTL_USAGE;
	if (argc > 2 || (argc == 2) == (d.id != NULL)) {
		fprintf(ctl->err, "usage: sluicectl session drop HASH | [--client C] --id NAME\n");
		return CTL_USAGE;
	}
	d.hash = argv[1];
	d.found.now = clock_wall();
	d.found.expired = true;
	if (d.hash != NULL && !session_hash_prefix(ctl, d.hash, "session list", d.found.prefix))
		return CTL_USAGE;
	if (!attach_open(ctl, &a, false))
		return CTL_FAILED;
	rc = d.hash != NULL ? drop_found(ctl, &d) : drop_named(ctl, &d);
	status = rc == STORE_OK ? report(ctl, &d) : CTL_FAILED;
	free(d.found.rows);
	attach_close(&a);
	return status;
}

int
session_verbs_run(struct ctl *ctl, int argc, char **argv)
{
	static const struct args_verb verbs[] = {
	    {"list", session_verbs_list, "[--json]"},
	    {"drop", session_drop, "HASH | [--client C] --id NAME [--json]"},
	};

	return args_verb_run(ctl, argc, argv, verbs, NELEM(verbs));
}
