#include "dialect/chat_answer.h"

#include "dialect/chat_parts.h"
#include "dialect/seal.h"

#include <stdio.h>

struct span
chat_answer_id(const struct flow_job *job, struct span upstream)
{
	struct span id = upstream.n > 0 ? upstream : job->id;

	if (text_starts(id, "chatcmpl-"))
		return arena_copy(job->arena, id);
	return text_span(arena_join(job->arena, (const struct span[]){SPAN("chatcmpl-"), id}, 2));
}

const struct form_name *
chat_answer_name(const struct flow_job *job, struct span sent)
{
	for (size_t i = 0; job->loss != NULL && i < job->loss->nnames; i++)
		if (text_equal(job->loss->names[i].sent, sent))
			return &job->loss->names[i];
	return NULL;
}

const char *
chat_answer_finish(enum flow_finish finish)
{
	switch (finish) {
	case FLOW_LENGTH: return "length";
	case FLOW_CALLS: return "tool_calls";
	case FLOW_FILTERED: return "content_filter";
	case FLOW_STOP:
	case FLOW_PAUSED:
	case FLOW_STOP_TEXT: break;
	}
	return "stop";
}

static int64_t
at_least_0(int64_t n)
{
	return n < 0 ? 0 : n;
}

void
chat_answer_usage(struct emit *e, const char *key, const struct dialect_usage *usage)
{
	int64_t prompt = at_least_0(usage->prompt), completion = at_least_0(usage->completion);

	emit_object(e, key);
	emit_i64(e, "prompt_tokens", prompt);
	emit_i64(e, "completion_tokens", completion);
	emit_i64(e, "total_tokens", usage->total > 0 ? usage->total : prompt + completion);
	if (usage->cached >= 0 || usage->cache_write >= 0) {
		emit_object(e, "prompt_tokens_details");
		emit_i64(e, "cached_tokens", at_least_0(usage->cached));
		if (usage->cache_write >= 0)
			emit_i64(e, "cache_write_tokens", usage->cache_write);
		emit_end(e);
	}
	if (usage->reasoning >= 0) {
		emit_object(e, "completion_tokens_details");
		emit_i64(e, "reasoning_tokens", usage->reasoning);
		emit_end(e);
	}
	emit_end(e);
}

void
chat_answer_seal(struct emit *e, struct span seal, bool redacted, size_t first, size_t end)
{
	struct seal own = seal_open(seal);
	struct scan_value detail;
	struct span none;
	size_t at = 0;
	char id[64];

	/* a host of this wire made it: its details go as they came */
	if (own.marked && own.wire == FORM_CHAT &&
	    scan_pick(own.payload, NULL, NULL, 0, NULL) == ERR_OK) {
		while (scan_next(own.payload, &at, &none, &detail))
			emit_raw(e, NULL, detail.raw);
		return;
	}
	snprintf(id, sizeof id, "text-%zu-%zu", first, end);
	emit_object(e, NULL);
	emit_z(e, "type", "reasoning.encrypted");
	emit_text(e, "data", seal);
	emit_z(e, "id", redacted ? CHAT_PARTS_REDACTED : id);
	emit_end(e);
}

void
chat_answer_citation(struct emit *e, struct span raw)
{
	emit_object(e, NULL);
	emit_z(e, "type", "url_citation");
	emit_raw(e, "url_citation", raw);
	emit_end(e);
}

struct span
chat_answer_unwrap(struct arena *arena, struct span arguments)
{
	static const char *const paths[] = {"input"};
	struct scan_value v;

	if (scan_pick(arguments, paths, &v, 1, NULL) != ERR_OK || v.type != SCAN_STRING)
		return arguments;
	return scan_string(arena, v.raw);
}
