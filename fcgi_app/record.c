#include "record.h"

#include "base/emit.h"

#include <stdio.h>

void
record_attempt(struct record *record, const struct conf_channel *channel,
    const struct pick_lease *lease, struct span model, const struct forward_outcome *outcome)
{
	if (record->n < RECORD_ATTEMPTS_MAX)
		record->attempts[record->n++] = (struct record_attempt){
		    .channel = channel->name,
		    .account = channel->accounts[lease->account].id,
		    .model = model,
		    .kind = verdict_table[outcome->finding.verdict].name,
		    .status = outcome->finding.status,
		};
	record->first_byte = outcome->first_byte;
	record->usage = outcome->tap.usage;
}

static void
attempts_json(const struct record *record, struct buf *out)
{
	struct emit e;

	emit_init(&e, out);
	emit_array(&e, NULL);
	for (unsigned i = 0; i < record->n; i++) {
		const struct record_attempt *a = &record->attempts[i];

		emit_object(&e, NULL);
		emit_text(&e, "channel", a->channel);
		emit_text(&e, "account", a->account);
		emit_text(&e, "model", a->model);
		emit_z(&e, "kind", a->kind);
		emit_i64(&e, "status", a->status);
		emit_end(&e);
	}
	emit_end(&e);
}

void
record_request(struct log *log, const struct record *record, const struct request *rq,
    const struct respond *respond, struct wall_ms wall, struct mono_ms now)
{
	int64_t first = record->first_byte.v == 0 ? -1 : record->first_byte.v - record->arrived.v;
	struct buf *attempts;

	if (!log_wants(log, LOG_LEVEL_INFO))
		return;
	attempts = arena_buf(respond->arena, 65536);
	attempts_json(record, attempts);
	const struct log_field fields[] = {LOG_TEXT("id", rq->id), LOG_TEXT("client", rq->client),
	    LOG_Z("session", record->session == NULL ? "" : record->session),
	    LOG_TEXT("method", rq->method), LOG_Z("path", rq->path),
	    LOG_NUMBER("status", respond->gone && respond->status == 0 ? 499 : respond->status),
	    LOG_Z("outcome", record->outcome == NULL ? "ok" : record->outcome),
	    LOG_TEXT("wanted_model", rq->model), LOG_TEXT("task", record->task),
	    LOG_Z("routing", record->routing == NULL ? "" : record->routing),
	    LOG_TEXT("model", respond->model), LOG_TEXT("channel", respond->channel),
	    LOG_TEXT("account", respond->account), LOG_JSON("attempts", buf_text(attempts)),
	    LOG_NUMBER("stream", rq->stream),
	    LOG_NUMBER("bytes_in", (int64_t)rq->read.body.n + rq->swallowed),
	    LOG_NUMBER("bytes_out", (int64_t)respond->bytes),
	    LOG_NUMBER("estimated_tokens", record->estimated_tokens),
	    LOG_NUMBER("prompt_tokens", record->usage.prompt),
	    LOG_NUMBER("completion_tokens", record->usage.completion),
	    LOG_NUMBER("cached_tokens", record->usage.cached),
	    LOG_NUMBER("estimated", record->usage.estimated), LOG_NUMBER("first_byte_ms", first),
	    LOG_NUMBER("ms", now.v - record->arrived.v), LOG_Z("purpose", record->purpose)};
	log_write(log, LOG_LEVEL_INFO, wall, "request", fields,
	    NELEM(fields) - (record->purpose == NULL));
}

void
record_event(struct log *log, const struct journal_row *event, struct span request_id)
{
	static const enum log_level levels[] = {[JOURNAL_INFO] = LOG_LEVEL_INFO,
	    [JOURNAL_WARN] = LOG_LEVEL_WARN,
	    [JOURNAL_ALERT] = LOG_LEVEL_ERROR};
	char message[256];

	if (event->account[0] == '\0')
		snprintf(message, sizeof message, "model [%s/%s] %s: %s", event->channel,
		    event->model, event->to, event->cause);
	else
		snprintf(message, sizeof message, "account [%s/%s] %s%s%s: %s", event->channel,
		    event->account, event->model, event->model[0] == '\0' ? "" : " ", event->to,
		    event->cause);
	log_fields(log, levels[event->level], (struct wall_ms){event->at_ms}, message,
	    LOG_TEXT("id", request_id), LOG_Z("from", event->from), LOG_Z("to", event->to),
	    LOG_Z("cause", event->cause), LOG_Z("rule", event->rule),
	    LOG_NUMBER("status", event->status), LOG_NUMBER("old_until_ms", event->old_until_ms),
	    LOG_NUMBER("until_ms", event->new_until_ms));
}
