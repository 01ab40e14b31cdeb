#include "dialect/messages_answer.h"

#include "dialect/seal.h"

#include <string.h>

#define BYTES_MAX ((size_t)1 << 31)

struct span
messages_answer_id(const struct flow_job *job, struct span id)
{
	if (text_starts(id, "msg_"))
		return id;
	id = form_id(job->arena, FORM_MESSAGES, id.n > 0 ? id : job->id);
	return text_span(arena_join(job->arena, (const struct span[]){SPAN("msg_"), id}, 2));
}

struct span
messages_answer_tool(const struct flow_job *job, struct span name)
{
	for (size_t i = 0; job->loss != NULL && i < job->loss->nnames; i++)
		if (text_equal(job->loss->names[i].sent, name))
			return job->loss->names[i].original;
	return name;
}

struct span
messages_answer_seal(struct span seal)
{
	struct seal open = seal_open(seal);

	return open.marked && open.wire == FORM_MESSAGES ? open.payload : seal;
}

const char *
messages_answer_reason(enum flow_finish finish, bool calls, bool refused)
{
	switch (finish) {
	case FLOW_LENGTH: return "max_tokens";
	case FLOW_FILTERED: return "refusal";
	case FLOW_PAUSED: return "pause_turn";
	case FLOW_STOP_TEXT:
		if (!calls)
			return "stop_sequence";
		break;
	case FLOW_STOP:
	case FLOW_CALLS: break;
	}
	if (calls)
		return "tool_use";
	return refused ? "refusal" : "end_turn";
}

static int64_t
positive(int64_t n)
{
	return n > 0 ? n : 0;
}

void
messages_answer_usage(struct emit *e, const struct dialect_usage *usage)
{
	int64_t cached = positive(usage->cached), written = positive(usage->cache_write);

	emit_object(e, "usage");
	emit_i64(e, "input_tokens", positive(usage->prompt - cached - written));
	emit_i64(e, "cache_creation_input_tokens", written);
	emit_i64(e, "cache_read_input_tokens", cached);
	emit_i64(e, "output_tokens", positive(usage->completion));
	if (usage->reasoning > 0) {
		emit_object(e, "output_tokens_details");
		emit_i64(e, "thinking_tokens", usage->reasoning);
		emit_end(e);
	}
	emit_end(e);
}

static bool
is_object(struct span json)
{
	return text_starts(json, "{") && scan_pick(json, NULL, NULL, 0, NULL) == ERR_OK;
}

/* What is open at the end of a text that was cut. */
struct cut {
	char closers[SCAN_DEPTH_MAX];
	size_t depth;
	bool in_string, escape, deep;
};

static void
follow_string(struct cut *cut, char c)
{
	cut->in_string = cut->escape || c != '"';
	cut->escape = !cut->escape && c == '\\';
}

static void
follow(struct cut *cut, char c)
{
	switch (c) {
	case '"': cut->in_string = true; break;
	case '{':
	case '[':
		if (cut->depth == sizeof cut->closers)
			cut->deep = true;
		else
			cut->closers[cut->depth++] = c == '{' ? '}' : ']';
		break;
	case '}':
	case ']': cut->depth -= cut->depth > 0; break;
	}
}

/* A text that was cut in a value, closed; empty if that does not make an object of it. */
static struct span
closed(struct arena *arena, struct span text)
{
	struct cut cut = {.depth = 0};
	struct buf *out;

	for (size_t i = 0; i < text.n; i++)
		if (cut.in_string)
			follow_string(&cut, text.p[i]);
		else
			follow(&cut, text.p[i]);
	if (cut.deep || cut.escape || !text_starts(text, "{"))
		return (struct span){"", 0};
	out = arena_buf(arena, BYTES_MAX);
	buf_span(out, text);
	if (cut.in_string)
		buf_char(out, '"');
	while (cut.depth > 0)
		buf_char(out, cut.closers[--cut.depth]);
	return is_object(buf_text(out)) ? buf_text(out) : (struct span){"", 0};
}

static struct span
wrapped(struct arena *arena, const char *name, struct span text)
{
	struct buf *out = arena_buf(arena, BYTES_MAX);
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_text(&e, name, text);
	emit_end(&e);
	return buf_text(out);
}

struct span
messages_answer_input(struct arena *arena, struct span arguments, bool custom)
{
	struct span text = text_trim(arguments), whole;

	if (custom)
		return wrapped(arena, "input", arguments);
	if (text.n == 0 || text_is(text, "null"))
		return SPAN("{}");
	if (is_object(text))
		return text;
	whole = closed(arena, text);
	return whole.n > 0 ? whole : wrapped(arena, "_raw", arguments);
}
