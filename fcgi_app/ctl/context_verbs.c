#include "ctl/context_verbs.h"

#include "base/clock.h"
#include "base/emit.h"
#include "ctl/args.h"
#include "ctl/attach.h"
#include "ctl/context_show.h"
#include "ctl/human.h"
#include "ctl/session_hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUTPUT_MAX (512u << 20)
#define DROP_BATCH 16 /* in one transaction: each has many rows */

_Static_assert(
    TALK_KEY_BYTES == SESSION_HASH_BYTES, "conversations have the session's hash as key");

/* Which ones are meant: all that have not expired, of the client, that begin so, that have one of the keys. */
struct choice {
	const char *client;
	char prefix[SESSION_HASH_HEX + 1]; /* "" = any */
	struct session_key keys[SESSION_HASH_WAYS];
	size_t nkeys; /* 0 = any */
	bool expired; /* those too */
};

struct found {
	struct talk_head head;
	size_t client_n;
	char client[TALK_CLIENT_MAX];
};

/* A command at work. */
struct context_run {
	struct ctl *ctl;
	struct attach a;
	struct choice choice;
	struct talk_limits limits;
	struct found *rows;
	size_t n, from, dropped;
	struct context_texts texts;
};

static bool
fits(const struct choice *choice, const struct talk_head *head, struct env_bytes client)
{
	char hex[SESSION_HASH_HEX + 1];
	bool is_one = choice->nkeys == 0;

	for (size_t i = 0; i < choice->nkeys && !is_one; i++)
		is_one = memcmp(choice->keys[i].hash, head->key, sizeof head->key) == 0;
	session_hash_hex(head->key, hex);
	return is_one && strncmp(hex, choice->prefix, strlen(choice->prefix)) == 0 &&
	       (choice->client == NULL ||
	           text_is((struct span){client.p, client.n}, choice->client));
}

static enum store_rc
gather(const struct talk_head *head, struct env_bytes client, void *arg)
{
	struct context_run *run = arg;
	struct found *found;

	if (!fits(&run->choice, head, client))
		return STORE_OK;
	run->rows = human_grow(run->rows, run->n, sizeof *run->rows);
	found = &run->rows[run->n++];
	*found = (struct found){.head = *head, .client_n = client.n};
	memcpy(found->client, client.p, client.n);
	return STORE_OK;
}

static enum store_rc
gather_in(struct txn *book, void *arg)
{
	struct context_run *run = arg;

	run->n = run->from;
	return talk_walk(book, &run->limits, gather, run);
}

/* Add those that are meant to the rows. Without a `book` there are none. */
static bool
look(struct context_run *run)
{
	enum store_rc rc;

	run->from = run->n;
	run->limits = (struct talk_limits){.now = clock_wall(),
	    .ttl_ms = run->choice.expired ? INT64_MAX : run->a.conf->context.ttl_ms};
	rc = env_book_view(run->a.env, gather_in, run);
	if (rc == STORE_OK || rc == STORE_NONE)
		return true;
	fprintf(run->ctl->err, "sluicectl: %s\n", env_error(run->a.env));
	return false;
}

static void
end(struct context_run *run)
{
	arena_free(&run->texts.arena);
	free(run->rows);
	attach_close(&run->a);
}

/* ---- list ---- */

static void
list_json(struct emit *e, const struct found *found, const char *hex)
{
	emit_object(e, NULL);
	emit_text(e, "session", (struct span){hex, SESSION_HASH_BRIEF});
	emit_text(e, "client", (struct span){found->client, found->client_n});
	emit_i64(e, "turns", found->head.turns);
	emit_i64(e, "bytes", (int64_t)found->head.bytes);
	emit_time(e, "created_at", (struct wall_ms){found->head.created_ms});
	emit_time(e, "last_used", (struct wall_ms){found->head.used_ms});
	emit_end(e);
}

static void
list_line(struct buf *out, const struct found *found, const char *hex)
{
	char client[TALK_CLIENT_MAX + 1], created[HUMAN_TIME], used[HUMAN_TIME];

	text_clean(client, sizeof client, (struct span){found->client, found->client_n});
	human_time((struct wall_ms){found->head.created_ms}, created);
	human_time((struct wall_ms){found->head.used_ms}, used);
	buf_print(out, "%.12s  %-24s %6u %10llu  %-19s  %-19s\n", hex,
	    client[0] == '\0' ? "-" : client, found->head.turns,
	    (unsigned long long)found->head.bytes, created, used);
}

static int
print_list(const struct context_run *run)
{
	struct buf out;
	struct emit e;
	int status;

	buf_init(&out, OUTPUT_MAX);
	emit_init(&e, &out);
	if (run->ctl->json)
		emit_array(&e, NULL);
	else
		buf_print(&out, "%-12s  %-24s %6s %10s  %-19s  %-19s\n", "SESSION", "CLIENT",
		    "TURNS", "BYTES", "CREATED", "LAST USED");
	for (size_t i = run->n; i > 0; i--) { /* newest use first */
		char hex[SESSION_HASH_HEX + 1];

		session_hash_hex(run->rows[i - 1].head.key, hex);
		if (run->ctl->json)
			list_json(&e, &run->rows[i - 1], hex);
		else
			list_line(&out, &run->rows[i - 1], hex);
	}
	if (run->ctl->json) {
		emit_end(&e);
		buf_char(&out, '\n');
	}
	status = human_print(run->ctl, &out);
	buf_release(&out);
	return status;
}

static int
context_list(struct ctl *ctl, int argc, char **argv)
{
	struct context_run run = {.ctl = ctl};
	const struct args_option options[] = {{.name = "--client", .text = &run.choice.client}};
	int status;

	if (!args_only(ctl, argc, argv, options, NELEM(options)))
		return CTL_USAGE;
	if (!attach_open(ctl, &run.a, false))
		return CTL_FAILED;
	status = look(&run) ? print_list(&run) : CTL_FAILED;
	end(&run);
	return status;
}

/* ---- one ---- */

/* Add the one that a hash means. */
static bool
look_for_hash(struct context_run *run, const char *hash)
{
	size_t before = run->n;

	if (!session_hash_prefix(run->ctl, hash, "context list", run->choice.prefix) || !look(run))
		return false;
	if (run->n == before)
		fprintf(run->ctl->err, "sluicectl: no such conversation is kept: '%s'\n", hash);
	else if (run->n > before + 1)
		fprintf(run->ctl->err, "sluicectl: '%s' fits %zu conversations: give more digits\n",
		    hash, run->n - before);
	return run->n == before + 1;
}

/* Add what a name means: one, or one of each way in which it came. */
static bool
look_for_name(struct context_run *run, const char *id)
{
	const char *client = run->choice.client == NULL ? "" : run->choice.client;

	if (!session_hash_named(run->ctl, run->a.conf, client, id, run->choice.keys))
		return false;
	run->choice.nkeys = SESSION_HASH_WAYS;
	run->choice.client = NULL; /* it is in the keys */
	if (!look(run))
		return false;
	if (run->n == 0)
		fprintf(run->ctl->err, "sluicectl: no such conversation is kept: '%s'%s\n", id,
		    client[0] == '\0' ? ", of clients without a name: see --client" : "");
	return run->n > 0;
}

static bool
look_for_one(struct context_run *run, const char *hash, const char *id)
{
	if (id == NULL ? !look_for_hash(run, hash) : !look_for_name(run, id))
		return false;
	if (run->n == 1)
		return true;
	fprintf(run->ctl->err, "sluicectl: '%s' fits %zu conversations: name one by its hash\n", id,
	    run->n);
	return false;
}

static enum store_rc
texts_in(struct txn *book, void *arg)
{
	struct context_run *run = arg;

	return context_store_texts(book, run->rows[0].head.key, &run->limits, &run->texts);
}

static bool
print_one(struct context_run *run, struct buf *out, bool json)
{
	char hex[SESSION_HASH_HEX + 1];
	struct context_show show = {hex, {run->rows[0].client, run->rows[0].client_n}, &run->texts};
	enum store_rc rc;
	struct why why = {""};

	session_hash_hex(run->rows[0].head.key, hex);
	hex[SESSION_HASH_BRIEF] = '\0';
	run->texts.arena = arena_new(SIZE_MAX / 4);
	rc = env_book_view(run->a.env, texts_in, run);
	if (rc != STORE_OK)
		fprintf(run->ctl->err, "sluicectl: %s\n",
		    rc == STORE_NONE ? "it is gone" : env_error(run->a.env));
	else if ((json ? context_show_json : context_show_text)(&show, out, &why) != ERR_OK)
		fprintf(run->ctl->err, "sluicectl: %s\n", why.text);
	else
		return true;
	return false;
}

static const char usage_one[] = "HASH | [--client C] --id NAME";

static int
context_show(struct ctl *ctl, int argc, char **argv)
{
	struct context_run run = {.ctl = ctl};
	const char *id = NULL;
	const struct args_option options[] = {
	    {.name = "--client", .text = &run.choice.client}, {.name = "--id", .text = &id}};
	int status = CTL_FAILED;
	struct buf out;

	if (!args_read(ctl, &argc, argv, options, NELEM(options)))
		return CTL_USAGE;
	if (argc > 2 || (argc == 2) == (id != NULL)) {
		fprintf(ctl->err, "usage: sluicectl context show %s\n", usage_one);
		return CTL_USAGE;
	}
	if (!attach_open(ctl, &run.a, false))
		return CTL_FAILED;
	buf_init(&out, OUTPUT_MAX);
	if (look_for_one(&run, argv[1], id) && print_one(&run, &out, ctl->json))
		status = human_print(ctl, &out);
	buf_release(&out);
	end(&run);
	return status;
}

/* ---- export ---- */

/* Before the user changes with the store's, and never over another file. */
static int
open_copy(struct ctl *ctl, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		fprintf(ctl->err, "sluicectl: cannot make '%s': %s\n", path, strerror(errno));
	return fd;
}

static int
write_copy(struct ctl *ctl, int fd, const char *path, const struct buf *text)
{
	for (size_t at = 0; at < text->n;) {
		ssize_t n = write(fd, text->p + at, text->n - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			fprintf(ctl->err, "sluicectl: cannot write '%s': %s\n", path,
			    strerror(n < 0 ? errno : ENOSPC));
			return CTL_FAILED;
		}
		at += (size_t)n;
	}
	return CTL_DONE;
}

static int
copy_to(struct ctl *ctl, int fd, const char *path, const struct buf *text)
{
	return fd < 0 || text->over ? human_print(ctl, text) : write_copy(ctl, fd, path, text);
}

static int
context_export(struct ctl *ctl, int argc, char **argv)
{
	struct context_run run = {.ctl = ctl};
	const char *id = NULL, *path = NULL;
	const struct args_option options[] = {{.name = "--client", .text = &run.choice.client},
	    {.name = "--id", .text = &id}, {.name = "-o", .text = &path}};
	int status = CTL_FAILED, fd = -1;
	struct buf out;

	if (!args_read(ctl, &argc, argv, options, NELEM(options)))
		return CTL_USAGE;
	if (argc > 2 || (argc == 2) == (id != NULL)) {
		fprintf(ctl->err, "usage: sluicectl context export %s [-o FILE]\n", usage_one);
		return CTL_USAGE;
	}
	if (path != NULL && (fd = open_copy(ctl, path)) < 0)
		return CTL_FAILED;
	buf_init(&out, OUTPUT_MAX);
	if (attach_open(ctl, &run.a, false)) {
		if (look_for_one(&run, argv[1], id) && print_one(&run, &out, true))
			status = copy_to(ctl, fd, path, &out);
		end(&run);
	}
	buf_release(&out);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && status != CTL_DONE)
		unlink(path);
	return status;
}

/* ---- drop ---- */

static enum store_rc
drop_in(struct txn *book, void *arg)
{
	struct context_run *run = arg;
	enum store_rc rc = STORE_OK;

	run->dropped = 0;
	for (size_t i = run->from; i < run->n && i < run->from + DROP_BATCH; i++) {
		rc = talk_drop(book, run->rows[i].head.key, &run->limits);
		run->dropped += rc == STORE_OK;
		if (rc != STORE_OK && rc != STORE_NONE)
			return rc;
	}
	return STORE_OK;
}

static int
drop_all(struct context_run *run)
{
	size_t dropped = 0;
	enum store_rc rc = STORE_OK;

	for (run->from = 0; run->from < run->n && rc == STORE_OK; run->from += DROP_BATCH) {
		rc = env_book_update(run->a.env, drop_in, run);
		dropped += rc == STORE_OK ? run->dropped : 0;
	}
	if (rc != STORE_OK)
		fprintf(run->ctl->err, "sluicectl: %s\n", env_error(run->a.env));
	if (run->ctl->json)
		fprintf(run->ctl->out, "{\"dropped\":%zu}\n", dropped);
	else
		fprintf(run->ctl->out, "%zu dropped\n", dropped);
	return rc == STORE_OK ? CTL_DONE : CTL_FAILED;
}

/* All of the words, or none. */
static bool
look_words(struct context_run *run, int argc, char **argv, const char *id)
{
	bool found = true;

	if (id != NULL)
		return look_for_name(run, id);
	if (argc == 1)
		return look(run);
	for (int i = 1; i < argc && found; i++)
		found = look_for_hash(run, argv[i]);
	return found;
}

static int
context_drop(struct ctl *ctl, int argc, char **argv)
{
	struct context_run run = {.ctl = ctl, .choice = {.expired = true}};
	bool all = false, yes = false;
	const char *id = NULL;
	const struct args_option options[] = {{.name = "--client", .text = &run.choice.client},
	    {.name = "--id", .text = &id}, {.name = "--all", .flag = &all},
	    {.name = "--yes", .flag = &yes}};
	int status = CTL_FAILED;

	if (!args_read(ctl, &argc, argv, options, NELEM(options)))
		return CTL_USAGE;
	if ((argc > 1) + (id != NULL) + all + (id == NULL && run.choice.client != NULL) != 1) {
		fprintf(ctl->err,
		    "usage: sluicectl context drop HASH... | [--client C] --id NAME | --client C | --all [--yes]\n");
		return CTL_USAGE;
	}
	if (all && !yes && isatty(STDIN_FILENO) == 1) {
		fprintf(ctl->err, "sluicectl: --all ends every conversation: add --yes\n");
		return CTL_USAGE;
	}
	if (!attach_open(ctl, &run.a, false))
		return CTL_FAILED;
	if (look_words(&run, argc, argv, id))
		status = drop_all(&run);
	end(&run);
	return status;
}

int
context_verbs_run(struct ctl *ctl, int argc, char **argv)
{
	static const struct args_verb verbs[] = {
	    {"list", context_list, "[--client C] [--json]"},
	    {"show", context_show, "HASH | [--client C] --id NAME  [--json]"},
	    {"drop", context_drop,
	        "HASH... | [--client C] --id NAME | --client C | --all [--yes]  [--json]"},
	    {"export", context_export, "HASH | [--client C] --id NAME  [-o FILE]"},
	};

	return args_verb_run(ctl, argc, argv, verbs, NELEM(verbs));
}
