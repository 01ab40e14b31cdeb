#include "dialect/flow.h"

#include "base/emit.h"
#include "dialect/chat_calls.h"
#include "dialect/openai.h"
#include "dialect/seal.h"

#define TEXT_MAX ((size_t)1 << 31)

enum { ID, MODEL, INDEX, DELTA, MESSAGE, FINISH, USAGE, USAGE_GROQ, USAGE_CHOICE, PATH__MAX };

static const char *const paths[PATH__MAX] = {
    [ID] = "id",
    [MODEL] = "model",
    [INDEX] = "choices.0.index",
    [DELTA] = "choices.0.delta",
    [MESSAGE] = "choices.0.message",
    [FINISH] = "choices.0.finish_reason",
    [USAGE] = "usage",
    [USAGE_GROQ] = "x_groq.usage",
    [USAGE_CHOICE] = "choices.0.usage",
};

enum {
	THOUGHT,
	THOUGHT_OPENROUTER,
	THOUGHT_TEXT,
	DETAILS,
	CONTENT,
	REFUSAL,
	CALLS,
	OLD_CALL,
	ANNOTATIONS,
	MEMBER__MAX
};

static const char *const members[MEMBER__MAX] = {
    [THOUGHT] = "reasoning_content",
    [THOUGHT_OPENROUTER] = "reasoning",
    [THOUGHT_TEXT] = "reasoning_text",
    [DETAILS] = "reasoning_details",
    [CONTENT] = "content",
    [REFUSAL] = "refusal",
    [CALLS] = "tool_calls",
    [OLD_CALL] = "function_call",
    [ANNOTATIONS] = "annotations",
};

static const struct {
	const char *word;
	enum flow_finish finish;
} finishes[] = {
    {"length", FLOW_LENGTH},
    {"max_tokens", FLOW_LENGTH},
    {"model_context_window_exceeded", FLOW_LENGTH},
    {"insufficient_system_resource", FLOW_LENGTH}, /* DeepSeek: cut for want of machines */
    {"tool_calls", FLOW_CALLS},
    {"function_call", FLOW_CALLS},
    {"content_filter", FLOW_FILTERED},
    {"sensitive", FLOW_FILTERED},
};

struct flow_reader {
	struct arena *arena;
	struct span channel;
	struct span id, model;
	struct chat_calls *calls;
	struct buf *scratch, *note;
	struct buf *details; /* encrypted reasoning that was not given out yet */
	struct dialect_tap tap;
	bool started, ended, content;
	enum flow_finish finish;
	flow_sink_fn *sink; /* of the current call */
	void *arg;
};

static struct flow_reader *
begin(struct arena *arena, struct span channel)
{
	struct flow_reader *r = arena_alloc(arena, sizeof *r);

	r->arena = arena;
	r->channel = channel;
	r->calls = chat_calls_new(arena);
	r->scratch = arena_buf(arena, TEXT_MAX);
	r->note = arena_buf(arena, TEXT_MAX);
	r->details = arena_buf(arena, TEXT_MAX);
	dialect_tap_init(&r->tap);
	return r;
}

static void
start(struct flow_reader *r)
{
	if (r->started)
		return;
	r->started = true;
	r->sink(r->arg, &(struct flow){.kind = FLOW_START, .id = r->id, .model = r->model});
}

static void
give(struct flow_reader *r, enum flow_kind kind, struct span text)
{
	if (text.n == 0)
		return;
	r->content = true;
	r->tap.content_bytes += text.n;
	r->sink(r->arg, &(struct flow){.kind = kind, .text = text});
}

/* What the maker wants back, before anything else follows its thought. */
static void
give_seal(struct flow_reader *r)
{
	if (r->details->n == 0)
		return;
	buf_char(r->details, ']');
	r->sink(
	    r->arg, &(struct flow){.kind = FLOW_SEAL,
	                .text = seal_make(r->arena, FORM_CHAT, r->channel, buf_text(r->details))});
	buf_clear(r->details);
}

static struct scan_value
member_of(struct span object, const char *name)
{
	struct scan_value value, found = {.type = SCAN_ABSENT};
	struct span key;
	size_t at = 0;

	while (scan_next(object, &at, &key, &value))
		if (scan_is(key, name))
			found = value;
	return found;
}

/* Texts of the details count only where no field has them; what is encrypted is kept as it is. */
static void
read_details(struct flow_reader *r, const struct scan_value *list, bool thought)
{
	struct scan_value detail;
	struct span none;
	size_t at = 0;

	if (list->type != SCAN_ARRAY)
		return;
	while (scan_next(list->raw, &at, &none, &detail)) {
		struct scan_value type = member_of(detail.raw, "type");
		struct scan_value text = member_of(detail.raw, "text");

		if (type.type == SCAN_STRING && scan_is(type.raw, "reasoning.encrypted")) {
			buf_char(r->details, r->details->n == 0 ? '[' : ',');
			buf_span(r->details, detail.raw);
			continue;
		}
		if (text.type != SCAN_STRING)
			text = member_of(detail.raw, "summary");
		if (!thought)
			give(r, FLOW_THOUGHT, chat_calls_text(r->scratch, &text));
	}
}

static void
read_thoughts(struct flow_reader *r, const struct scan_value v[MEMBER__MAX])
{
	bool thought = false;

	for (int i = THOUGHT; i <= THOUGHT_TEXT && !thought; i++) {
		struct span text = chat_calls_text(r->scratch, &v[i]);

		thought = text.n > 0;
		give(r, FLOW_THOUGHT, text);
	}
	read_details(r, &v[DETAILS], thought);
}

/* Mistral: [{"type":"thinking","thinking":[{"text"}]},{"type":"text","text"}] */
static void
read_parts(struct flow_reader *r, struct span list, enum flow_kind kind)
{
	struct scan_value part;
	struct span none;
	size_t at = 0;

	while (scan_next(list, &at, &none, &part)) {
		struct scan_value text = member_of(part.raw, "text");
		struct scan_value thoughts = member_of(part.raw, "thinking");

		if (kind == FLOW_TEXT && thoughts.type == SCAN_ARRAY)
			read_parts(r, thoughts.raw, FLOW_THOUGHT);
		if (kind == FLOW_TEXT && text.type == SCAN_STRING && text.raw.n > 2)
			give_seal(r);
		give(r, kind, chat_calls_text(r->scratch, &text));
	}
}

static void
read_content(struct flow_reader *r, const struct scan_value *v, enum flow_kind kind)
{
	if (v->type == SCAN_ARRAY)
		read_parts(r, v->raw, kind);
	if (v->type != SCAN_STRING || v->raw.n <= 2)
		return;
	give_seal(r);
	give(r, kind, chat_calls_text(r->scratch, v));
}

/* {"type":"url_citation","url_citation":{...}}: the four members that everyone knows. */
static void
read_annotations(struct flow_reader *r, const struct scan_value *list)
{
	static const char *const names[] = {"url", "title", "start_index", "end_index"};
	struct scan_value note;
	struct span none;
	size_t at = 0;

	if (list->type != SCAN_ARRAY)
		return;
	while (scan_next(list->raw, &at, &none, &note)) {
		struct scan_value cited = member_of(note.raw, "url_citation");
		struct emit e;

		if (cited.type != SCAN_OBJECT)
			continue;
		buf_clear(r->note);
		emit_init(&e, r->note);
		emit_object(&e, NULL);
		for (size_t i = 0; i < NELEM(names); i++) {
			struct scan_value value = member_of(cited.raw, names[i]);

			/* not raw: lax reading lets through what is no UTF-8 */
			if (value.type == SCAN_STRING)
				emit_text(&e, names[i], chat_calls_text(r->scratch, &value));
			else if (value.type == SCAN_NUMBER)
				emit_raw(&e, names[i], value.raw);
		}
		emit_end(&e);
		r->sink(r->arg, &(struct flow){.kind = FLOW_CITATION, .text = buf_text(r->note)});
	}
}

static void
read_message(struct flow_reader *r, struct span object)
{
	struct scan_value v[MEMBER__MAX] = {{.type = SCAN_ABSENT}}, value;
	struct span name;
	size_t at = 0;

	while (scan_next(object, &at, &name, &value))
		for (size_t i = 0; i < MEMBER__MAX; i++)
			if (scan_is(name, members[i])) {
				v[i] = value;
				break;
			}
	start(r);
	read_thoughts(r, v);
	read_content(r, &v[CONTENT], FLOW_TEXT);
	read_content(r, &v[REFUSAL], FLOW_REFUSAL);
	read_annotations(r, &v[ANNOTATIONS]);
	if (v[CALLS].type == SCAN_ARRAY || v[OLD_CALL].type == SCAN_OBJECT)
		give_seal(r);
	chat_calls_add(r->calls, &v[CALLS], r->id, r->sink, r->arg);
	if (v[OLD_CALL].type == SCAN_OBJECT)
		chat_calls_old(r->calls, &v[OLD_CALL], r->id, r->sink, r->arg);
}

static void
read_finish(struct flow_reader *r, const struct scan_value *v)
{
	if (v->type != SCAN_STRING || v->raw.n <= 2)
		return;
	r->finish = FLOW_STOP;
	for (size_t i = 0; i < NELEM(finishes); i++)
		if (scan_is(v->raw, finishes[i].word))
			r->finish = finishes[i].finish;
}

static void
remember(struct flow_reader *r, const struct scan_value *v, struct span *kept)
{
	if (kept->n == 0 && v->type == SCAN_STRING)
		*kept = arena_copy(r->arena, chat_calls_text(r->scratch, v));
}

static void
read_document(struct flow_reader *r, struct span text)
{
	static struct scan_plan *plan;
	struct scan_value v[PATH__MAX];
	int64_t index;

	if (plan == NULL) {
		plan = scan_plan_new(paths, PATH__MAX);
		scan_plan_lax(plan);
	}
	if (scan_run(plan, text, v, NULL) != ERR_OK)
		return;
	if (!r->started) {
		remember(r, &v[ID], &r->id);
		remember(r, &v[MODEL], &r->model);
	}
	openai_usage(&v[USAGE_GROQ], &r->tap.usage);
	openai_usage(&v[USAGE_CHOICE], &r->tap.usage);
	openai_usage(&v[USAGE], &r->tap.usage);
	if (scan_i64(&v[INDEX], 1, INT32_MAX, &index))
		return; /* one of several choices: only the first is asked for */
	if (v[DELTA].type == SCAN_OBJECT)
		read_message(r, v[DELTA].raw);
	else if (v[MESSAGE].type == SCAN_OBJECT && !r->content && chat_calls_count(r->calls) == 0)
		read_message(r, v[MESSAGE].raw); /* some repeat the whole at the end */
	read_finish(r, &v[FINISH]);
}

static enum flow_finish
finish_of(const struct flow_reader *r)
{
	bool calls = chat_calls_count(r->calls) > 0;

	/* hosts say "stop" with calls, and "tool_calls" without */
	if (calls && r->finish == FLOW_STOP)
		return FLOW_CALLS;
	if (!calls && r->finish == FLOW_CALLS)
		return FLOW_STOP;
	return r->finish;
}

static void
give_usage(struct flow_reader *r)
{
	struct dialect_tap tap = r->tap;

	if (!tap.usage.seen)
		return;
	dialect_settle(&tap, 0);
	r->sink(r->arg, &(struct flow){.kind = FLOW_USAGE, .usage = &tap.usage});
}

static void
end(struct flow_reader *r, flow_sink_fn *sink, void *arg)
{
	if (r->ended)
		return;
	r->sink = sink;
	r->arg = arg;
	start(r);
	give_seal(r);
	chat_calls_end(r->calls, r->id, sink, arg);
	sink(arg, &(struct flow){.kind = FLOW_FINISH, .finish = finish_of(r)});
	give_usage(r);
	r->ended = true;
	sink(arg, &(struct flow){.kind = FLOW_END});
}

static void
body(struct flow_reader *r, struct span text, flow_sink_fn *sink, void *arg)
{
	r->sink = sink;
	r->arg = arg;
	read_document(r, text);
	end(r, sink, arg);
}

static void
event(struct flow_reader *r, const struct sse_event *sse, flow_sink_fn *sink, void *arg)
{
	struct span data = text_trim(sse->data);

	if (r->ended || data.n == 0)
		return;
	if (text_is(data, "[DONE]")) {
		end(r, sink, arg);
		return;
	}
	r->sink = sink;
	r->arg = arg;
	read_document(r, data);
}

const struct flow_reader_kind flow_read_chat = {
    .begin = begin, .event = event, .body = body, .end = end};
