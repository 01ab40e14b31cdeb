#include "dialect/flow.h"

#include "dialect/chat_answer.h"
#include "dialect/openai.h"

#define TEXT_MAX ((size_t)1 << 31)
#define GLUE "\n\n" /* between two thoughts */

struct call {
	struct buf *held;   /* arguments of a wrapped tool: unwrapped when they are whole */
	bool custom, begun; /* begun: some arguments went out */
};

struct flow_writer {
	const struct flow_job *job;
	struct buf *head; /* every chunk up to its delta */
	bool started, finished, ended;
	size_t thought,
	    thought_first; /* bytes of reasoning_content sent; where this thought began */
	bool thinking;     /* the last piece was one of a thought that goes on */
	struct call *calls;
	size_t ncalls, cap;
	struct dialect_usage usage;
};

static struct flow_writer *
begin(const struct flow_job *job)
{
	struct flow_writer *w = arena_alloc(job->arena, sizeof *w);

	w->job = job;
	w->head = arena_buf(job->arena, TEXT_MAX);
	return w;
}

static void
build_head(struct flow_writer *w, struct span id)
{
	struct buf *head = w->head;

	buf_z(head, "data: {\"id\":");
	emit_quoted(head, chat_answer_id(w->job, id));
	buf_z(head, ",\"object\":\"chat.completion.chunk\",\"created\":");
	buf_i64(head, w->job->created_s);
	buf_z(head, ",\"model\":");
	emit_quoted(head, w->job->model);
	buf_z(head, ",\"choices\":[");
}

/* From the beginning of a chunk to its delta, and from there to the end. */
static struct emit
open_chunk(struct flow_writer *w, struct buf *out)
{
	struct emit e;

	buf_span(out, buf_text(w->head));
	buf_z(out, "{\"index\":0,\"delta\":");
	emit_init(&e, out);
	emit_object(&e, NULL);
	return e;
}

static void
close_chunk(struct flow_writer *w, struct emit *e, const char *finish)
{
	struct buf *out = e->out;

	emit_end(e);
	buf_z(out, ",\"finish_reason\":");
	if (finish == NULL)
		buf_z(out, "null");
	else
		emit_quoted(out, text_span(finish));
	buf_z(out, w->job->wants_usage ? "}],\"usage\":null}\n\n" : "}]}\n\n");
}

static void
start(struct flow_writer *w, struct span id, struct buf *out)
{
	struct emit e;

	if (w->started)
		return;
	w->started = true;
	build_head(w, id);
	e = open_chunk(w, out);
	emit_z(&e, "role", "assistant");
	emit_z(&e, "content", "");
	close_chunk(w, &e, NULL);
}

static void
write_text(struct flow_writer *w, const char *key, struct span text, struct buf *out)
{
	struct emit e;

	if (text.n == 0)
		return;
	e = open_chunk(w, out);
	emit_text(&e, key, text);
	close_chunk(w, &e, NULL);
}

static void
write_thought(struct flow_writer *w, struct span text, struct buf *out)
{
	if (text.n == 0)
		return;
	if (!w->thinking && w->thought > 0) {
		write_text(w, "reasoning_content", SPAN(GLUE), out);
		w->thought += sizeof GLUE - 1;
	}
	if (!w->thinking)
		w->thought_first = w->thought;
	w->thinking = true;
	write_text(w, "reasoning_content", text, out);
	w->thought += text.n;
}

static void
write_seal(struct flow_writer *w, struct span seal, bool redacted, struct buf *out)
{
	struct emit e = open_chunk(w, out);

	emit_array(&e, "reasoning_details");
	chat_answer_seal(
	    &e, seal, redacted, w->thinking ? w->thought_first : w->thought, w->thought);
	emit_end(&e);
	close_chunk(w, &e, NULL);
	w->thinking = false;
}

static struct call *
call_at(struct flow_writer *w, size_t number)
{
	return number < w->ncalls ? &w->calls[number] : NULL;
}

static struct call *
add_call(struct flow_writer *w)
{
	if (w->ncalls == w->cap) {
		size_t cap = w->cap == 0 ? 4 : w->cap * 2;
		struct call *calls = arena_alloc(w->job->arena, cap * sizeof *calls);

		if (w->ncalls > 0)
			memcpy(calls, w->calls, w->ncalls * sizeof *calls);
		w->calls = calls;
		w->cap = cap;
	}
	return &w->calls[w->ncalls++];
}

static void
write_call(struct flow_writer *w, const struct flow *step, struct buf *out)
{
	const struct form_name *name = chat_answer_name(w->job, step->name);
	bool wrapped = name != NULL && name->custom;
	struct call *call = add_call(w);
	struct emit e;

	call->custom = step->custom || wrapped;
	if (wrapped && !step->custom)
		call->held = arena_buf(w->job->arena, TEXT_MAX);
	e = open_chunk(w, out);
	emit_array(&e, "tool_calls");
	emit_object(&e, NULL);
	emit_i64(&e, "index", (int64_t)(w->ncalls - 1));
	emit_text(&e, "id", step->id);
	emit_z(&e, "type", call->custom ? "custom" : "function");
	emit_object(&e, call->custom ? "custom" : "function");
	emit_text(&e, "name", name != NULL ? name->original : step->name);
	emit_z(&e, call->custom ? "input" : "arguments", "");
	emit_end(&e);
	emit_end(&e);
	emit_end(&e);
	close_chunk(w, &e, NULL);
}

static void
write_piece(struct flow_writer *w, const struct call *call, size_t number, struct span text,
    struct buf *out)
{
	struct emit e = open_chunk(w, out);

	emit_array(&e, "tool_calls");
	emit_object(&e, NULL);
	emit_i64(&e, "index", (int64_t)number);
	emit_object(&e, call->custom ? "custom" : "function");
	emit_text(&e, call->custom ? "input" : "arguments", text);
	emit_end(&e);
	emit_end(&e);
	emit_end(&e);
	close_chunk(w, &e, NULL);
}

static void
write_arguments(struct flow_writer *w, const struct flow *step, struct buf *out)
{
	struct call *call = call_at(w, step->call);

	if (call == NULL || step->text.n == 0)
		return;
	call->begun = true;
	if (call->held != NULL)
		buf_span(call->held, step->text);
	else
		write_piece(w, call, step->call, step->text, out);
}

static void
end_call(struct flow_writer *w, size_t number, struct buf *out)
{
	struct call *call = call_at(w, number);

	if (call == NULL)
		return;
	if (call->held != NULL && call->begun)
		write_piece(
		    w, call, number, chat_answer_unwrap(w->job->arena, buf_text(call->held)), out);
	else if (!call->custom && !call->begun)
		write_piece(w, call, number, SPAN("{}"), out);
	call->held = NULL;
	call->begun = true;
}

static void
write_citation(struct flow_writer *w, struct span raw, struct buf *out)
{
	struct emit e = open_chunk(w, out);

	emit_array(&e, "annotations");
	chat_answer_citation(&e, raw);
	emit_end(&e);
	close_chunk(w, &e, NULL);
}

static void
write_finish(struct flow_writer *w, enum flow_finish finish, struct buf *out)
{
	struct emit e;

	if (w->finished)
		return;
	w->finished = true;
	e = open_chunk(w, out);
	close_chunk(w, &e, chat_answer_finish(finish));
}

static void
write_end(struct flow_writer *w, struct buf *out)
{
	struct emit e;

	if (w->ended)
		return;
	w->ended = true;
	if (w->job->wants_usage && w->usage.seen) {
		buf_span(out, buf_text(w->head));
		buf_z(out, "],\"usage\":");
		emit_init(&e, out);
		chat_answer_usage(&e, NULL, &w->usage);
		buf_z(out, "}\n\n");
	}
	buf_z(out, "data: [DONE]\n\n");
}

static void
step(struct flow_writer *w, const struct flow *flow, struct buf *out)
{
	start(w, flow->kind == FLOW_START ? flow->id : (struct span){"", 0}, out);
	switch (flow->kind) {
	case FLOW_START: break;
	case FLOW_TEXT: write_text(w, "content", flow->text, out); break;
	case FLOW_REFUSAL: write_text(w, "refusal", flow->text, out); break;
	case FLOW_THOUGHT: write_thought(w, flow->text, out); return;
	case FLOW_SEAL: write_seal(w, flow->text, false, out); break;
	case FLOW_REDACTED: write_seal(w, flow->text, true, out); break;
	case FLOW_CALL: write_call(w, flow, out); break;
	case FLOW_ARGUMENTS: write_arguments(w, flow, out); return;
	case FLOW_CALL_END: end_call(w, flow->call, out); return;
	case FLOW_CITATION: write_citation(w, flow->text, out); return;
	case FLOW_BREAK: break;
	case FLOW_FINISH: write_finish(w, flow->finish, out); break;
	case FLOW_USAGE: w->usage = *flow->usage; return;
	case FLOW_END: write_end(w, out); break;
	}
	w->thinking = false;
}

static void
error(struct flow_writer *w, int status, const char *type, const char *code, struct span message,
    struct buf *out)
{
	w->ended = true;
	openai_error_event(out, status, type, code, message);
}

const struct flow_writer_kind flow_write_chat = {.begin = begin, .step = step, .error = error};

/* Texts of a kind one after the other; thoughts apart. */
static bool
answer_text(struct emit *e, const char *key, const struct form_turn *turn, enum form_kind kind,
    struct arena *arena)
{
	struct buf *text = arena_buf(arena, TEXT_MAX);

	for (size_t i = 0; i < turn->nparts; i++) {
		if (turn->parts[i].kind != kind || turn->parts[i].text.n == 0)
			continue;
		if (kind == FORM_THOUGHT && text->n > 0)
			buf_z(text, GLUE);
		buf_span(text, turn->parts[i].text);
	}
	if (text->n > 0)
		emit_text(e, key, buf_text(text));
	return text->n > 0;
}

static void
answer_details(struct emit *e, const struct form_turn *turn)
{
	size_t at = 0;
	bool any = false;

	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_part *part = &turn->parts[i];

		if (part->kind != FORM_THOUGHT)
			continue;
		if (at > 0 && part->text.n > 0)
			at += sizeof GLUE - 1;
		if (part->thought.seal.n > 0) {
			if (!any)
				emit_array(e, "reasoning_details");
			any = true;
			chat_answer_seal(
			    e, part->thought.seal, part->thought.redacted, at, at + part->text.n);
		}
		at += part->text.n;
	}
	if (any)
		emit_end(e);
}

static void
answer_call(struct emit *e, const struct flow_job *job, const struct form_call *call)
{
	const struct form_name *name = chat_answer_name(job, call->name);
	bool wrapped = name != NULL && name->custom && !call->custom;
	bool custom = call->custom || wrapped;

	emit_object(e, NULL);
	emit_text(e, "id", call->id);
	emit_z(e, "type", custom ? "custom" : "function");
	emit_object(e, custom ? "custom" : "function");
	emit_text(e, "name", name != NULL ? name->original : call->name);
	emit_text(e, custom ? "input" : "arguments",
	    wrapped ? chat_answer_unwrap(job->arena, call->arguments) : call->arguments);
	emit_end(e);
	emit_end(e);
}

static bool
answer_calls(struct emit *e, const struct flow_job *job, const struct form_turn *turn)
{
	bool any = false;

	for (size_t i = 0; i < turn->nparts; i++) {
		if (turn->parts[i].kind != FORM_CALL)
			continue;
		if (!any)
			emit_array(e, "tool_calls");
		any = true;
		answer_call(e, job, &turn->parts[i].call);
	}
	if (any)
		emit_end(e);
	return any;
}

static void
answer_citations(struct emit *e, struct span list)
{
	struct scan_value raw;
	struct span none;
	size_t at = 0;

	if (list.n == 0)
		return;
	emit_array(e, "annotations");
	while (scan_next(list, &at, &none, &raw))
		chat_answer_citation(e, raw.raw);
	emit_end(e);
}

static void
answer_message(struct emit *e, const struct flow_job *job, const struct flow_answer *answer)
{
	const struct form_turn *turn = &answer->turn;
	bool calls, text;

	emit_object(e, "message");
	emit_z(e, "role", "assistant");
	(void)answer_text(e, "reasoning_content", turn, FORM_THOUGHT, job->arena);
	answer_details(e, turn);
	text = answer_text(e, "content", turn, FORM_TEXT, job->arena);
	calls = answer_calls(e, job, turn);
	if (!text)
		emit_z(e, "content", calls ? NULL : "");
	if (!answer_text(e, "refusal", turn, FORM_REFUSAL, job->arena))
		emit_null(e, "refusal");
	answer_citations(e, answer->citations);
	emit_end(e);
}

void
flow_answer_chat(const struct flow_job *job, const struct flow_answer *answer, struct buf *out)
{
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_text(&e, "id", chat_answer_id(job, answer->id));
	emit_z(&e, "object", "chat.completion");
	emit_i64(&e, "created", job->created_s);
	emit_text(&e, "model", job->model);
	emit_array(&e, "choices");
	emit_object(&e, NULL);
	emit_i64(&e, "index", 0);
	answer_message(&e, job, answer);
	emit_null(&e, "logprobs");
	emit_z(&e, "finish_reason", chat_answer_finish(answer->finish));
	emit_end(&e);
	emit_end(&e);
	if (answer->usage.seen)
		chat_answer_usage(&e, "usage", &answer->usage);
	emit_end(&e);
}
