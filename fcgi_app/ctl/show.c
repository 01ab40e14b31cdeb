#include "ctl/show.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/emit.h"
#include "base/json.h"
#include "ctl/args.h"
#include "ctl/human.h"
#include "store/journal.h"

#include <stdlib.h>
#include <string.h>

#define OUTPUT_MAX (256u << 20)
#define EVENTS_DEFAULT 20

static const char *
paint(const struct ctl *ctl, const char *state)
{
	if (!ctl->color)
		return "";
	if (strcmp(state, "active") == 0)
		return "\033[32m";
	return strcmp(state, "cooling") == 0 ? "\033[33m" : "\033[31m";
}

static const char *
unpaint(const struct ctl *ctl)
{
	return ctl->color ? "\033[0m" : "";
}

static const char *
text_at(struct arena *arena, const struct json *node, const char *path)
{
	struct span s;

	return json_text(node, path, &s) ? arena_z(arena, s) : "";
}

static long long
number_at(const struct json *node, const char *path)
{
	int64_t v = 0;

	return json_i64(node, path, &v) ? v : 0;
}

/* "4m 10s" until an RFC 3339 time; "" without one. */
static const char *
time_left(struct arena *arena, const char *until, struct wall_ms now)
{
	char left[HUMAN_TIME];
	struct wall_ms t;

	if (!date_rfc3339(text_span(until), &t) || t.v <= now.v)
		return "";
	human_left(t.v - now.v, left);
	return arena_z(arena, text_span(left));
}

static void
print_account(struct ctl *ctl, struct arena *arena, const char *channel, const struct json *a,
    struct wall_ms now)
{
	const char *state = text_at(arena, a, "state");
	const char *until = text_at(arena, a, "cool.until");
	const char *breaker = text_at(arena, a, "breaker_until");
	const char *why = text_at(arena, a, "disabled_reason");
	size_t models = json_count(json_at(a, "rate_limited_models"));

	if (strcmp(breaker, until) > 0)
		until = breaker;
	if (why[0] == '\0')
		why = text_at(arena, a, "cool.kind");
	if (why[0] == '\0' && breaker[0] != '\0')
		why = "breaker";
	if (why[0] == '\0' && models > 0)
		why = arena_print(arena, "%zu model%s resting", models, models == 1 ? "" : "s");
	fprintf(ctl->out, "%-24s %s%-9s%s %-9s %3lld/%-3s %7lld %7lld %6lld %10lld  %s\n",
	    arena_print(arena, "%s/%s", channel, text_at(arena, a, "id")), paint(ctl, state), state,
	    unpaint(ctl), time_left(arena, until, now), number_at(a, "in_flight"),
	    number_at(a, "max_in_flight") == 0
	        ? "-"
	        : arena_print(arena, "%lld", number_at(a, "max_in_flight")),
	    number_at(a, "calls"), number_at(a, "success"), number_at(a, "errors"),
	    number_at(a, "tokens.prompt") + number_at(a, "tokens.completion"), why);
}

/* Only what is not as usual. */
static void
print_breaker(struct ctl *ctl, struct arena *arena, const struct json *channel, struct wall_ms now)
{
	const char *state = text_at(arena, channel, "breaker.state");
	const char *left = time_left(arena, text_at(arena, channel, "breaker.until"), now);

	if (strcmp(state, "closed") == 0)
		return;
	fprintf(ctl->out, "channel %s: %s%s%s by %s", text_at(arena, channel, "name"),
	    paint(ctl, state), state, unpaint(ctl), text_at(arena, channel, "breaker.trigger"));
	if (left[0] != '\0')
		fprintf(ctl->out, ", %s left", left);
	if (strcmp(state, "half-open") == 0)
		fprintf(ctl->out, ", probes: %lld ok of %lld sent",
		    number_at(channel, "breaker.probes_ok"),
		    number_at(channel, "breaker.probes_sent"));
	fputc('\n', ctl->out);
}

static void
print_table(struct ctl *ctl, struct arena *arena, const struct json *doc, struct wall_ms now)
{
	const struct json *channels = json_at(doc, "channels");

	fprintf(ctl->out,
	    "sluice %s  %s   accounts %lld: %lld active, %lld cooling, %lld disabled   in flight %lld, waiting %lld   sessions %lld\n",
	    text_at(arena, doc, "version"), text_at(arena, doc, "now"),
	    number_at(doc, "totals.accounts"), number_at(doc, "totals.active"),
	    number_at(doc, "totals.cooling"), number_at(doc, "totals.disabled"),
	    number_at(doc, "totals.in_flight"), number_at(doc, "totals.waiting"),
	    number_at(doc, "sessions.bound"));
	for (size_t c = 0; c < json_count(channels); c++)
		print_breaker(ctl, arena, json_item(channels, c), now);
	fputc('\n', ctl->out);
	fprintf(ctl->out, "%-24s %-9s %-9s %-7s %7s %7s %6s %10s  %s\n", "ACCOUNT", "STATE",
	    "BACK IN", "BUSY", "CALLS", "OK", "ERRORS", "TOKENS", "WHY");
	for (size_t c = 0; c < json_count(channels); c++) {
		const struct json *channel = json_item(channels, c);
		const struct json *accounts = json_at(channel, "accounts");

		for (size_t i = 0; i < json_count(accounts); i++)
			print_account(ctl, arena, text_at(arena, channel, "name"),
			    json_item(accounts, i), now);
	}
}

static int
print_status(struct ctl *ctl, const struct attach *a)
{
	struct wall_ms now = clock_wall();
	struct status_frame frame = attach_frame(a, now);
	struct arena *arena = arena_new(OUTPUT_MAX);
	struct buf out;
	struct why why;
	const struct json *doc;
	int status = CTL_DONE;

	buf_init(&out, OUTPUT_MAX);
	if (status_json(&frame, &out, &why) != ERR_OK) {
		fprintf(ctl->err, "sluicectl: %s\n", why.text);
		status = CTL_FAILED;
	} else if (ctl->json) {
		fprintf(ctl->out, "%.*s\n", (int)out.n, out.p);
	} else if (json_parse(arena, buf_text(&out), &doc, &why) == ERR_OK) {
		print_table(ctl, arena, doc, now);
	}
	buf_release(&out);
	arena_free(&arena);
	return status;
}

int
show_status_run(struct ctl *ctl, int argc, char **argv)
{
	struct attach a;
	int status;

	if (!args_only(ctl, argc, argv, NULL, 0))
		return CTL_USAGE;
	if (!attach_open(ctl, &a, false))
		return CTL_FAILED;
	status = print_status(ctl, &a);
	attach_close(&a);
	return status;
}

int
show_account_list(struct ctl *ctl, int argc, char **argv)
{
	return show_status_run(ctl, argc, argv);
}

int
show_account_one(struct ctl *ctl, int argc, char **argv)
{
	struct attach a;
	struct status_frame frame;
	struct buf out;
	struct why why;
	size_t channel, account;
	int status = CTL_FAILED;

	if (!args_read(ctl, &argc, argv, NULL, 0) || argc != 2) {
		fprintf(ctl->err, "usage: sluicectl account show ID [--json]\n");
		return CTL_USAGE;
	}
	if (!attach_open(ctl, &a, false))
		return CTL_FAILED;
	frame = attach_frame(&a, clock_wall());
	buf_init(&out, OUTPUT_MAX);
	if (attach_find(ctl, &a, argv[1], &channel, &account)) {
		if (status_account(&frame, channel, account, &out, &why) == ERR_OK) {
			fprintf(ctl->out, "%.*s\n", (int)out.n, out.p);
			status = CTL_DONE;
		} else {
			fprintf(ctl->err, "sluicectl: %s\n", why.text);
		}
	}
	buf_release(&out);
	attach_close(&a);
	return status;
}

/* The newest `keep` events, gathered oldest first. */
struct event_list {
	struct journal_row *rows;
	uint64_t *numbers;
	size_t n, keep;
};

static bool
gather(uint64_t sequence, const struct journal_row *row, void *arg)
{
	struct event_list *list = arg;
	size_t at = list->n++ % list->keep;

	list->rows[at] = *row;
	list->numbers[at] = sequence;
	return true;
}

static enum store_rc
gather_in(struct txn *txn, void *arg)
{
	struct event_list *list = arg;

	list->n = 0;
	return journal_walk(txn, 0, gather, list);
}

static void
event_json(struct emit *e, uint64_t sequence, const struct journal_row *row)
{
	static const char *const levels[] = {"", "info", "warn", "alert"};

	emit_object(e, NULL);
	emit_i64(e, "sequence", (int64_t)sequence);
	emit_time(e, "at", (struct wall_ms){row->at_ms});
	emit_z(e, "level", levels[row->level & 3]);
	emit_z(e, "channel", row->channel);
	emit_z(e, "account", row->account);
	emit_z(e, "model", row->model[0] == '\0' ? NULL : row->model);
	emit_z(e, "from", row->from);
	emit_z(e, "to", row->to);
	emit_z(e, "cause", row->cause);
	emit_z(e, "rule", row->rule);
	emit_i64(e, "status", row->status);
	emit_time(e, "old_until", (struct wall_ms){row->old_until_ms});
	emit_time(e, "until", (struct wall_ms){row->new_until_ms});
	emit_end(e);
}

/* What it happened to: an account, a channel, or all. */
static void
print_subject(FILE *out, const struct journal_row *row)
{
	const char *channel = row->channel[0] == '\0' ? "-" : row->channel;

	fprintf(out, "  %s%s%s", channel, row->account[0] == '\0' ? "" : "/", row->account);
	if (row->model[0] != '\0')
		fprintf(out, " %s", row->model);
}

static void
event_line(struct ctl *ctl, const struct journal_row *row)
{
	char text[DATE_TEXT];

	date_print((struct wall_ms){row->at_ms}, text);
	fputs(text, ctl->out);
	print_subject(ctl->out, row);
	fprintf(ctl->out, "  %s -> %s%s%s", row->from, paint(ctl, row->to), row->to, unpaint(ctl));
	if (row->new_until_ms != 0) {
		date_print((struct wall_ms){row->new_until_ms}, text);
		fprintf(ctl->out, " until %s", text);
	}
	fprintf(ctl->out, "  %s", row->cause);
	if (row->status != 0)
		fprintf(ctl->out, "  (%u, %s)", row->status, row->rule);
	else if (row->rule[0] != '\0')
		fprintf(ctl->out, "  (%s)", row->rule);
	fputc('\n', ctl->out);
}

static void
print_events(struct ctl *ctl, const struct event_list *list)
{
	size_t first = list->n > list->keep ? list->n - list->keep : 0;
	struct buf out;
	struct emit e;

	buf_init(&out, OUTPUT_MAX);
	emit_init(&e, &out);
	emit_array(&e, NULL);
	for (size_t i = first; i < list->n; i++) {
		const struct journal_row *row = &list->rows[i % list->keep];

		if (ctl->json)
			event_json(&e, list->numbers[i % list->keep], row);
		else
			event_line(ctl, row);
	}
	emit_end(&e);
	if (ctl->json)
		fprintf(ctl->out, "%.*s\n", (int)out.n, out.p);
	buf_release(&out);
}

int
show_events_run(struct ctl *ctl, int argc, char **argv)
{
	struct event_list list = {.n = 0};
	struct attach a;
	int64_t keep = EVENTS_DEFAULT;
	const struct args_option options[] = {
	    {.name = "-n", .number = &keep, .min = 1, .max = JOURNAL_KEEP}};
	enum store_rc rc;

	if (!args_only(ctl, argc, argv, options, NELEM(options)))
		return CTL_USAGE;
	if (!attach_open(ctl, &a, false))
		return CTL_FAILED;
	list.keep = (size_t)keep;
	list.rows = calloc(list.keep, sizeof *list.rows);
	list.numbers = calloc(list.keep, sizeof *list.numbers);
	if (list.rows == NULL || list.numbers == NULL)
		die("no memory");
	rc = env_view(a.env, gather_in, &list);
	if (rc == STORE_OK)
		print_events(ctl, &list);
	else
		fprintf(ctl->err, "sluicectl: %s\n", env_error(a.env));
	free(list.rows);
	free(list.numbers);
	attach_close(&a);
	return rc == STORE_OK ? CTL_DONE : CTL_FAILED;
}

int
show_version_run(struct ctl *ctl, int argc, char **argv)
{
	if (!args_only(ctl, argc, argv, NULL, 0))
		return CTL_USAGE;
	fprintf(ctl->out, ctl->json ? "{\"version\":\"%s\"}\n" : "sluicectl %s\n", SLUICE_VERSION);
	return CTL_DONE;
}
