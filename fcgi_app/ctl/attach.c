#include "ctl/attach.h"

#include "base/clock.h"
#include "base/log.h"
#include "ctl/args.h"
#include "store/book.h"
#include "store/tally.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
attach_owner(struct ctl *ctl, const struct conf *conf)
{
	struct stat st;

	if (geteuid() != 0)
		return true;
	if (stat(conf->state_dir.p, &st) != 0) {
		fprintf(ctl->err,
		    "sluicectl: '%s' does not exist yet: start the gateway first (it creates it as its own user)\n",
		    conf->state_dir.p);
		return false;
	}
	if (st.st_uid == 0)
		return true;
	if (setegid(st.st_gid) == 0 && seteuid(st.st_uid) == 0)
		return true;
	fprintf(ctl->err, "sluicectl: cannot act as the owner of '%s': %s\n", conf->state_dir.p,
	    strerror(errno));
	return false;
}

bool
attach_conf(struct ctl *ctl, struct attach *a)
{
	struct conf_report report = {.n = 0};
	struct why why;
	char path[PATH_MAX];
	bool ok = false;

	if (conf_find(ctl->conf_given, path, sizeof path, &why) != ERR_OK) {
		fprintf(ctl->err, "sluicectl: %s\n", why.text);
		return false;
	}
	ok = conf_load(path, &a->conf, &report, &why) == ERR_OK;
	if (!ok)
		fprintf(ctl->err, "sluicectl: %s\n", why.text);
	conf_report_release(&report);
	return ok;
}

bool
attach_store(struct ctl *ctl, struct attach *a, bool enrol)
{
	struct store_why store_why;
	struct why why;

	if (env_open(a->conf->state_dir.p, (uint64_t)a->conf->store.max_size_bytes, geteuid() != 0,
	        &a->env, &store_why) != STORE_OK ||
	    slot_watch(a->env, &a->slot, &store_why) != STORE_OK) {
		fprintf(ctl->err, "sluicectl: %s\n", store_why.text);
	} else if (pool_open(a->env, a->conf, enrol, &a->pool, &why) != ERR_OK) {
		fprintf(ctl->err, "sluicectl: %s\n", why.text);
	} else {
		return true;
	}
	attach_leave(a);
	return false;
}

bool
attach_open(struct ctl *ctl, struct attach *a, bool enrol)
{
	*a = (struct attach){.conf = NULL};
	if (attach_conf(ctl, a) && attach_owner(ctl, a->conf) && attach_store(ctl, a, enrol))
		return true;
	attach_close(a);
	return false;
}

void
attach_leave(struct attach *a)
{
	pool_free(&a->pool);
	slot_close(&a->slot);
	env_close(&a->env);
}

void
attach_close(struct attach *a)
{
	attach_leave(a);
	conf_free(&a->conf);
}

void
attach_save(struct ctl *ctl, const struct attach *a, const struct account_ref *refs, size_t n)
{
	struct book_report report;

	if (book_save_now(a->env, refs, n, &report) != STORE_OK)
		fprintf(ctl->err,
		    "sluicectl: done, but a power cut may undo it (tried again every 5 s): %s\n",
		    env_error(a->env));
}

static enum store_rc
read_generation(struct txn *txn, void *arg)
{
	uint64_t *values = arg;
	enum store_rc rc = tally_get(txn, TALLY_GENERATION, &values[0]);

	return rc == STORE_OK ? tally_get(txn, TALLY_LOADED_MS, &values[1]) : rc;
}

struct status_frame
attach_frame(const struct attach *a, struct wall_ms now)
{
	uint64_t loaded[2] = {0, 0}; /* generation, when */

	if (env_view(a->env, read_generation, loaded) != STORE_OK)
		loaded[0] = loaded[1] = 0;
	return (struct status_frame){
	    .conf = a->conf,
	    .pool = a->pool,
	    .env = a->env,
	    .slot = a->slot,
	    .generation = loaded[0],
	    .loaded_at = {(int64_t)loaded[1]},
	    .now = now,
	};
}

static void
say_nearest(struct ctl *ctl, const struct attach *a, const char *name)
{
	size_t best = 4;
	struct span nearest = {"", 0};

	for (size_t c = 0; c < a->conf->nchannels; c++)
		for (size_t i = 0; i < a->conf->channels[c].naccounts; i++) {
			struct span id = a->conf->channels[c].accounts[i].id;
			size_t distance = text_distance(id, text_span(name), 3);

			if (distance < best) {
				best = distance;
				nearest = id;
			}
		}
	fprintf(ctl->err, "sluicectl: no account '%s'", name);
	if (nearest.n > 0)
		fprintf(ctl->err, "; did you mean '%.*s'?", (int)nearest.n, nearest.p);
	fputc('\n', ctl->err);
}

bool
attach_find(struct ctl *ctl, const struct attach *a, const char *name, size_t *channel_out,
    size_t *account_out)
{
	struct span whole = text_span(name), only = {"", 0}, id = whole;
	size_t slash = text_find(whole, SPAN("/"));
	unsigned hits = 0;

	if (slash < whole.n) {
		only = (struct span){name, slash};
		id = text_from(whole, slash + 1);
	}
	for (size_t c = 0; c < a->conf->nchannels; c++) {
		const struct conf_channel *channel = &a->conf->channels[c];
		const struct conf_account *account = conf_account(channel, id);

		if (account == NULL || (only.n > 0 && !text_equal(channel->name, only)))
			continue;
		*channel_out = c;
		*account_out = (size_t)(account - channel->accounts);
		hits++;
	}
	if (hits == 1)
		return true;
	if (hits == 0)
		say_nearest(ctl, a, name);
	else
		fprintf(ctl->err,
		    "sluicectl: several channels have an account '%s': say CHANNEL/%s\n", name,
		    name);
	return false;
}

static const char *
channel_name(size_t i, const void *arg)
{
	const struct attach *a = arg;

	return i < a->conf->nchannels ? a->conf->channels[i].name.p : NULL;
}

bool
attach_find_channel(struct ctl *ctl, const struct attach *a, const char *name, size_t *channel_out)
{
	const struct conf_channel *channel = conf_channel(a->conf, text_span(name));
	struct args_guess guess = {"channel", name, channel_name, a};

	if (channel == NULL) {
		args_guess(ctl, &guess);
		return false;
	}
	*channel_out = channel->index;
	return true;
}

bool
attach_whose(
    const struct attach *a, struct account_ref ref, size_t *channel_out, size_t *account_out)
{
	for (size_t c = 0; c < a->conf->nchannels; c++) {
		const struct pool_channel *pc = &a->pool->channels[c];

		if (pc->number != ref.channel || ref.number >= pc->top ||
		    pc->seats[ref.number].index == UINT32_MAX)
			continue;
		*channel_out = c;
		*account_out = pc->seats[ref.number].index;
		return true;
	}
	return false;
}
