#include "ctl/explain_run.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/json.h"
#include "chores.h"
#include "ctl/args.h"
#include "ctl/attach.h"
#include "ctl/human.h"
#include "explain.h"
#include "session.h"

#include "store/told.h"

#include <string.h>
#include <unistd.h>

#define OUTPUT_MAX (256u << 20)
#define USUAL_TOKENS 1000 /* of a prompt of which nothing is known: for costs */

/* The request that is asked about. */
struct question {
	const char *model, *task, *session, *client, *realm;
	int64_t tokens; /* of its prompt; -1 = not said */
};

struct asked {
	struct ctl *ctl;
	const struct attach *attach;
	const struct question *q;
	struct arena *arena;
	struct span task; /* that was said, or that is known of the session; "" = none */
	struct walk walk;
	struct session_key key; /* of no kind: there is no session */
};

struct session_look {
	const struct asked *asked;
	const uint8_t *key;
	bool bound, told;
	struct told_row row;
};

static enum store_rc
look_for_session(struct txn *txn, void *arg)
{
	struct session_look *look = arg;
	const struct attach *a = look->asked->attach;
	enum store_rc told = told_get(txn, look->key, clock_wall(), &look->row);

	look->told = told == STORE_OK;
	look->bound = false;
	if (told != STORE_OK && told != STORE_NONE)
		return told;
	for (size_t c = 0; c < a->conf->nchannels && !look->bound; c++) {
		struct sticky_id id = {
		    look->key, a->pool->channels[c].number, clock_wall(), a->conf->sticky.ttl_ms};
		struct sticky_row row;
		enum store_rc rc = sticky_get(txn, &id, &row);

		if (rc != STORE_OK && rc != STORE_NONE)
			return rc;
		look->bound = rc == STORE_OK;
	}
	return STORE_OK;
}

/* Looking makes no secret: without one there are no sessions yet, and any key is as new as another. */
static bool
read_secret(struct asked *asked, struct session_secret *secret)
{
	const char *dir = asked->attach->conf->state_dir.p;
	struct why why;

	*secret = (struct session_secret){{0}};
	if (access(arena_print(asked->arena, "%s/secret", dir), F_OK) != 0)
		return true;
	if (session_secret(dir, secret, &why) == ERR_OK)
		return true;
	fprintf(asked->ctl->err, "sluicectl: %s\n", why.text);
	return false;
}

/* As the gateway recalls it: where a classifier names the task, and nobody else has. */
static void
recall_task(struct asked *asked, const struct session_look *look)
{
	const struct conf *conf = asked->attach->conf;

	if (asked->task.n == 0 && look->told && conf->routing.classifier.n > 0 &&
	    route_is_auto(conf, text_span(asked->q->model)))
		asked->task = arena_copy(asked->arena, (struct span){look->row.name, look->row.n});
}

/* A session's name may have come by a header, in the body or as a response's id: the kind that is known is meant. */
static bool
find_session(struct asked *asked)
{
	static const enum session_kind kinds[] = {SESSION_RESPONSE, SESSION_BODY, SESSION_HEADER};
	struct session_look look = {.asked = asked};
	struct session_secret secret;

	if (asked->q->session == NULL)
		return true;
	if (!read_secret(asked, &secret))
		return false;
	for (size_t i = 0; i < NELEM(kinds) && !look.bound && !look.told; i++) {
		session_name(&secret, text_span(asked->q->client), kinds[i],
		    text_span(asked->q->session), &asked->key);
		look.key = asked->key.hash;
		if (env_view(asked->attach->env, look_for_session, &look) != STORE_OK) {
			fprintf(asked->ctl->err, "sluicectl: %s\n", env_error(asked->attach->env));
			return false;
		}
	}
	explicit_bzero(&secret, sizeof secret);
	recall_task(asked, &look);
	return true;
}

static bool
begin_walk(struct asked *asked)
{
	const struct attach *a = asked->attach;
	const struct route_wish wish = {
	    .model = text_span(asked->q->model), .task = asked->task, .wires = ROUTE_WIRES_ALL};
	struct route_list list;
	struct walk_start start = {.list = &list,
	    .task = wish.task,
	    .realm = text_span(asked->q->realm),
	    .wires = ROUTE_WIRES_ALL};

	if (!route_all(a->conf, &wish, asked->arena, &list)) {
		fprintf(asked->ctl->err, "sluicectl: no channel serves the model '%s'\n",
		    asked->q->model);
		return false;
	}
	walk_begin(&asked->walk, a->pool, &start, asked->arena);
	if (asked->key.kind != SESSION_NONE && a->conf->sticky.enabled)
		asked->walk.wish.session = asked->walk.session.key = asked->key.hash;
	return true;
}

static const char *
text_at(const struct asked *asked, const struct json *node, const char *path, const char *none)
{
	struct span s;

	return json_text(node, path, &s) ? arena_z(asked->arena, s) : none;
}

static double
real_at(const struct json *node, const char *path)
{
	double v = 0;

	return json_real(node, path, &v) ? v : 0;
}

static long long
number_at(const struct json *node, const char *path)
{
	int64_t v = 0;

	return json_i64(node, path, &v) ? v : 0;
}

/* "cooling, 4m 10s left" */
static const char *
why_out(const struct asked *asked, const struct json *account, struct wall_ms now)
{
	const char *out = text_at(asked, account, "out", "");
	struct wall_ms until;
	char left[HUMAN_TIME];

	if (!date_rfc3339(text_span(text_at(asked, account, "until", "")), &until) ||
	    until.v <= now.v)
		return out;
	human_left(until.v - now.v, left);
	return arena_print(asked->arena, "%s, %s left", out, left);
}

static void
print_account(const struct asked *asked, const struct json *account, struct wall_ms now)
{
	FILE *out = asked->ctl->out;
	const char *id = text_at(asked, account, "id", "");

	if (json_at(account, "share") == NULL) {
		fprintf(out, "  %-20s %7s %9s %33s %-10s %8lld %4lld/%-3lld  %s\n", id, "-", "-",
		    "", "", number_at(account, "priority"), number_at(account, "in_flight"),
		    number_at(account, "max_in_flight"), why_out(asked, account, now));
		return;
	}
	fprintf(out, "  %-20s %6.1f%% %9.3f %8.2f %7.2f %7.2f %8.2f %-10s %8lld %4lld/%-3lld  %s\n",
	    id, 100 * real_at(account, "share"),
	    json_at(account, "score") != NULL ? real_at(account, "score")
	                                      : real_at(account, "rank"),
	    real_at(account, "terms.credits"), real_at(account, "terms.idle"),
	    real_at(account, "terms.success"),
	    real_at(account, "weight") * real_at(account, "factor"),
	    text_at(asked, account, "cost_tier", "-"), number_at(account, "priority"),
	    number_at(account, "in_flight"), number_at(account, "max_in_flight"),
	    why_out(asked, account, now));
}

static void
print_channel(const struct asked *asked, const struct json *channel, struct wall_ms now)
{
	const struct json *accounts = json_at(channel, "accounts");
	const char *result = text_at(asked, channel, "result", "");
	FILE *out = asked->ctl->out;

	fprintf(out, "\nchannel %s  model %s  strategy %s  breaker %s%s: %s%s\n",
	    text_at(asked, channel, "channel", ""), text_at(asked, channel, "model", ""),
	    text_at(asked, channel, "strategy", ""), text_at(asked, channel, "breaker.state", ""),
	    number_at(channel, "waiting") > 0
	        ? arena_print(asked->arena, "  waiting %lld", number_at(channel, "waiting"))
	        : "",
	    strcmp(result, "taken") == 0 ? "can serve" : result,
	    json_true(channel, "last_chance") ? ", asked again at the end" : "");
	if (json_at(channel, "session") != NULL)
		fprintf(out, "  session bound to %s, trouble: %s\n",
		    text_at(asked, channel, "session.account", "an account that is gone"),
		    text_at(asked, channel, "session.trouble", ""));
	fprintf(out, "  %-20s %7s %9s %8s %7s %7s %8s %-10s %8s %8s  %s\n", "ACCOUNT", "SHARE",
	    "SCORE", "CREDITS", "IDLE", "SUCCESS", "WEIGHT", "COST", "PRIORITY", "BUSY", "OUT");
	for (size_t i = 0; i < json_count(accounts); i++)
		print_account(asked, json_item(accounts, i), now);
}

static void
print_head(const struct asked *asked, const struct json *doc)
{
	const struct json *chain = json_at(doc, "chain");
	FILE *out = asked->ctl->out;

	fprintf(out, "model %s  session %s  client %s  realm %s\n",
	    text_at(asked, doc, "model", ""), text_at(asked, doc, "session", "-"),
	    asked->q->client[0] == '\0' ? "-" : asked->q->client,
	    text_at(asked, doc, "realm", "")[0] == '\0' ? "-" : text_at(asked, doc, "realm", ""));
	for (size_t i = 0; i < json_count(chain); i++) {
		const struct json *step = json_item(chain, i);
		const char *passed = text_at(asked, step, "passed_over", NULL);

		fprintf(out, "%s %s%s%s\n", i == 0 ? "route   " : "fallback",
		    text_at(asked, step, "channel", ""), passed == NULL ? "" : ": ",
		    passed == NULL ? "" : passed);
	}
}

static void
print_target(const struct asked *asked, const struct json *target, struct wall_ms now)
{
	const char *no = "-";

	fprintf(asked->ctl->out, "  %-32s %6.1f%% %8.2f %7lld %7.1f%% %8s %12s %9s  %s%s\n",
	    arena_print(asked->arena, "%s/%s", text_at(asked, target, "channel", ""),
	        text_at(asked, target, "model", "")),
	    100 * real_at(target, "share"), real_at(target, "weight"), number_at(target, "calls"),
	    100 * real_at(target, "success_rate"),
	    json_at(target, "first_ms") == NULL
	        ? no
	        : arena_print(asked->arena, "%lldms", number_at(target, "first_ms")),
	    json_at(target, "cost") == NULL
	        ? no
	        : arena_print(asked->arena, "%.6f", real_at(target, "cost")),
	    json_at(target, "context_window") == NULL
	        ? no
	        : arena_print(asked->arena, "%lld", number_at(target, "context_window")),
	    why_out(asked, target, now),
	    strcmp(text_at(asked, target, "state", ""), "trial") == 0 ? "one request tries it"
	                                                              : "");
}

static void
print_targets(const struct asked *asked, const struct json *doc, struct wall_ms now)
{
	const struct json *targets = json_at(doc, "targets");
	FILE *out = asked->ctl->out;

	if (json_count(targets) == 0)
		return;
	fprintf(out, "\ntargets  by %s  task %s\n", text_at(asked, doc, "routing", ""),
	    text_at(asked, doc, "task", "-"));
	fprintf(out, "  %-32s %7s %8s %7s %8s %8s %12s %9s  %s\n", "TARGET", "SHARE", "WEIGHT",
	    "CALLS", "SUCCESS", "FIRST", "COST", "WINDOW", "OUT");
	for (size_t i = 0; i < json_count(targets); i++)
		print_target(asked, json_item(targets, i), now);
}

static void
print_end(const struct asked *asked, const struct json *doc)
{
	FILE *out = asked->ctl->out;

	if (json_at(doc, "would") != NULL)
		fprintf(out, "\nwould take %s/%s by %s (%.0f%%)\n",
		    text_at(asked, doc, "would.channel", ""),
		    text_at(asked, doc, "would.account", "(whoever comes free)"),
		    text_at(asked, doc, "would.by", ""), 100 * real_at(doc, "would.share"));
	else
		fprintf(out, "\nwould refuse: %lld %s: %s\n", number_at(doc, "refusal.status"),
		    text_at(asked, doc, "refusal.code", ""),
		    text_at(asked, doc, "refusal.message", ""));
}

static void
print_tables(const struct asked *asked, const struct json *doc, struct wall_ms now)
{
	const struct json *channels = json_at(doc, "channels");

	print_head(asked, doc);
	print_targets(asked, doc, now);
	for (size_t i = 0; i < json_count(channels); i++)
		print_channel(asked, json_item(channels, i), now);
	print_end(asked, doc);
}

/* The prompt is as large for every model as was said. */
static struct walk_size
size_of(const struct asked *asked)
{
	const size_t n = asked->walk.plan.ntargets;
	int64_t *prompts = arena_alloc(asked->arena, (n + 1) * sizeof *prompts);

	for (size_t i = 0; i < n; i++)
		prompts[i] = asked->q->tokens;
	return (struct walk_size){
	    .prompts = asked->q->tokens < 0 ? NULL : prompts, .guess = USUAL_TOKENS};
}

static int
answer(struct asked *asked)
{
	struct serve serve = {
	    .conf = asked->attach->conf, .pool = asked->attach->pool, .env = asked->attach->env};
	struct wall_ms now = clock_wall();
	struct explain explain = {
	    .walk = &asked->walk,
	    .env = asked->attach->env,
	    .slot = asked->attach->slot,
	    .arena = asked->arena,
	    .now = now,
	    .size = size_of(asked),
	    .model = text_span(asked->q->model),
	    .task = asked->task,
	    .client = text_span(asked->q->client),
	    .session = asked->walk.session.key != NULL ? asked->key.brief : NULL,
	    .degraded = chores_degraded(&serve, now),
	};
	struct buf *out = arena_buf(asked->arena, OUTPUT_MAX);
	const struct json *doc;
	struct why why;

	if (explain_json(&explain, out, &why) != ERR_OK) {
		fprintf(asked->ctl->err, "sluicectl: %s\n", why.text);
		return CTL_FAILED;
	}
	if (!asked->ctl->json && json_parse(asked->arena, buf_text(out), &doc, &why) == ERR_OK) {
		print_tables(asked, doc, explain.now);
		return CTL_DONE;
	}
	buf_char(out, '\n');
	return human_print(asked->ctl, out);
}

int
explain_run(struct ctl *ctl, int argc, char **argv)
{
	struct question q = {.client = "", .tokens = -1};
	const struct args_option options[] = {
	    {.name = "--model", .text = &q.model},
	    {.name = "--task", .text = &q.task},
	    {.name = "--tokens", .number = &q.tokens, .min = 0, .max = INT32_MAX},
	    {.name = "--session", .text = &q.session},
	    {.name = "--client", .text = &q.client},
	    {.name = "--realm", .text = &q.realm},
	};
	struct attach a;
	struct asked asked = {.ctl = ctl, .attach = &a, .q = &q};
	int status = CTL_FAILED;

	if (!args_only(ctl, argc, argv, options, NELEM(options)))
		return CTL_USAGE;
	if (q.model == NULL && q.task != NULL)
		q.model = CONF_AUTO;
	if (q.model == NULL) {
		fprintf(ctl->err, "sluicectl: explain wants --model; see --help\n");
		return CTL_USAGE;
	}
	if (!attach_open(ctl, &a, false))
		return CTL_FAILED;
	asked.arena = arena_new(2 * (size_t)OUTPUT_MAX);
	asked.task = text_span(q.task);
	if (find_session(&asked) && begin_walk(&asked))
		status = answer(&asked);
	arena_free(&asked.arena);
	attach_close(&a);
	return status;
}
