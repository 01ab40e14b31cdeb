#include "alert.h"

#include "base/clock.h"
#include "base/emit.h"
#include "errand.h"
#include "store/tally.h"

#include <stdio.h>
#include <string.h>

#define BATCH 8
#define BEGIN_MS 20000 /* no event is told later in a run: well within the job's lease */
#define JSON_MAX 8192
#define RETRY_MS 10000 /* after the event, then four times that */
#define TRIES_SHIFT 56
#define SEQUENCE ((1ULL << TRIES_SHIFT) - 1)

bool
alert_is_wanted(const struct conf *conf)
{
	return conf->alerts.command.n > 0 || conf->alerts.url.n > 0;
}

void
alert_line(const struct journal_row *event, char *line_out, size_t cap)
{
	if (event->account[0] != '\0')
		snprintf(line_out, cap, "account [%s/%s] %s: %s", event->channel, event->account,
		    event->to, event->cause);
	else if (event->channel[0] != '\0')
		snprintf(
		    line_out, cap, "channel [%s] %s: %s", event->channel, event->to, event->cause);
	else
		snprintf(line_out, cap, "%s: %s", event->to, event->rule);
}

void
alert_json(uint64_t sequence, const struct journal_row *event, struct buf *out)
{
	static const char *const levels[] = {
	    [JOURNAL_INFO] = "info", [JOURNAL_WARN] = "warn", [JOURNAL_ALERT] = "alert"};
	char line[256];
	struct emit e;

	alert_line(event, line, sizeof line);
	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_z(&e, "service", "sluice");
	emit_i64(&e, "sequence", (int64_t)sequence);
	emit_time(&e, "at", (struct wall_ms){event->at_ms});
	emit_z(&e, "level", event->level < NELEM(levels) ? levels[event->level] : NULL);
	emit_z(&e, "text", line);
	emit_z(&e, "channel", event->channel);
	emit_z(&e, "account", event->account);
	emit_z(&e, "model", event->model[0] == '\0' ? NULL : event->model);
	emit_z(&e, "from", event->from);
	emit_z(&e, "to", event->to);
	emit_z(&e, "cause", event->cause);
	emit_z(&e, "rule", event->rule);
	emit_i64(&e, "status", event->status);
	emit_time(&e, "until", (struct wall_ms){event->new_until_ms});
	emit_end(&e);
}

enum store_rc
alert_idle(struct txn *txn, const struct serve *s, uint64_t cursor, bool *idle_out)
{
	uint64_t newest = 0;
	enum store_rc rc = tally_get(txn, TALLY_EVENTS, &newest);

	*idle_out = s->alert_pid != 0 || newest == (cursor & SEQUENCE);
	return rc;
}

/* The next event to be told; `last` is the last one that was looked at. */
struct search {
	uint64_t after, last;
	struct wall_ms now;
	bool found;
	struct journal_row event;
};

static bool
visit(uint64_t sequence, const struct journal_row *row, void *arg)
{
	struct search *search = arg;

	search->last = sequence;
	search->found = row->level == JOURNAL_ALERT && row->at_ms >= search->now.v - ALERT_OLD_MS;
	if (search->found)
		search->event = *row;
	return !search->found;
}

static enum store_rc
search_in(struct txn *txn, void *arg)
{
	struct search *search = arg;
	uint64_t newest = 0;
	enum store_rc rc = tally_get(txn, TALLY_EVENTS, &newest);

	if (search->after > newest)
		search->after = 0; /* a store that was begun anew */
	search->last = search->after;
	search->found = false;
	return rc == STORE_OK ? journal_walk(txn, search->after, visit, search) : rc;
}

/* False: it did not arrive, and may be tried again. */
static bool
post(struct serve *s, uint64_t sequence, const struct journal_row *event)
{
	struct upstream_call call = {.url = s->conf->alerts.url, .policy = &s->conf->policy};
	struct buf *json = arena_buf(s->arena, JSON_MAX);
	struct errand_answer answer;
	char why[160];

	alert_json(sequence, event, json);
	call.body = buf_text(json);
	errand_run(s, &call, &answer);
	if (answer.status >= 200 && answer.status < 300 && !answer.interrupted)
		return true;
	if (answer.interrupted)
		snprintf(why, sizeof why, "a request waited");
	else if (answer.status != 0)
		snprintf(why, sizeof why, "HTTP status %d", answer.status);
	else
		snprintf(why, sizeof why, "%s", answer.text);
	log_fields(s->log, LOG_LEVEL_WARN, clock_wall(), "an alert was not taken by alerts.url",
	    LOG_NUMBER("sequence", (int64_t)sequence), LOG_Z("why", why));
	return false;
}

static void
command(struct serve *s, uint64_t sequence, const struct journal_row *event)
{
	struct why why;

	if (!alert_begin(s, sequence, event, &why)) {
		log_fields(s->log, LOG_LEVEL_WARN, clock_wall(), "alerts.command did not start",
		    LOG_NUMBER("sequence", (int64_t)sequence), LOG_Z("why", why.text));
		return;
	}
	alert_wait(s);
}

/* The command once, at the first try; false: the URL is to be tried again. */
static bool
tell(struct serve *s, const struct search *search, uint64_t tries)
{
	bool told = true;

	if (tries == 0 && s->conf->alerts.command.n > 0)
		command(s, search->last, &search->event);
	if (s->conf->alerts.url.n > 0)
		told = post(s, search->last, &search->event);
	arena_reset(s->arena);
	return told || tries + 1 >= ALERT_TRIES;
}

bool
alert_run(struct serve *s, uint64_t *cursor)
{
	struct mono_ms began = clock_mono();

	for (unsigned i = 0; i < BATCH; i++) {
		uint64_t tries = *cursor >> TRIES_SHIFT;
		struct search search = {.after = *cursor & SEQUENCE, .now = clock_wall()};

		if (s->alert_pid != 0 || errand_must_return(s) ||
		    clock_mono().v - began.v > BEGIN_MS)
			return true;
		if (env_view(s->env, search_in, &search) != STORE_OK)
			return false;
		if (!search.found) {
			*cursor = search.last;
			return false;
		}
		if (search.event.at_ms + (int64_t)(tries * tries) * RETRY_MS > search.now.v)
			return false;
		if (!tell(s, &search, tries)) {
			*cursor = (search.last - 1) | (tries + 1) << TRIES_SHIFT;
			return false;
		}
		*cursor = search.last;
	}
	return true;
}
