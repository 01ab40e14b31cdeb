#include "dialect/messages.h"
#include "dialect/messages_answer.h"

#include <string.h>

#define BYTES_MAX ((size_t)1 << 31)

/*
 * Blocks of this API never interleave, those of others may. What comes while a call is open waits in
 * a queue, in the order in which it began; when the call ends, the queue goes out up to the next
 * call that is not over.
 */
struct item {
	enum flow_kind
	    kind; /* FLOW_TEXT, FLOW_THOUGHT, FLOW_SEAL, FLOW_REDACTED, FLOW_BREAK, FLOW_CALL */
	struct buf *text; /* what came, of a call its arguments */
	size_t call;
	struct item *next;
};

struct call {
	struct span id, name;
	struct item *item; /* in the queue */
	struct buf *held;  /* arguments that are no object: given whole, at the end */
	bool custom, over, begun;
};

struct flow_writer {
	struct flow_job job;
	struct dialect_usage usage;
	enum flow_kind open; /* FLOW_TEXT, FLOW_THOUGHT, FLOW_CALL; FLOW_BREAK: none */
	size_t open_call;
	size_t blocks; /* begun by now: the next one's index */
	struct call *calls;
	size_t ncalls, cap;
	struct item *first, *last;
	enum flow_finish finish;
	struct span stop;
	bool started, finished, told, ended, refused;
	struct buf *out;
	struct emit e;
};

static struct flow_writer *
begin(const struct flow_job *job)
{
	struct flow_writer *w = arena_alloc(job->arena, sizeof *w);
	struct dialect_tap tap;

	dialect_tap_init(&tap);
	w->job = *job;
	w->usage = tap.usage;
	w->open = FLOW_BREAK;
	return w;
}

static void
begin_event(struct flow_writer *w, const char *name)
{
	buf_z(w->out, "event: ");
	buf_z(w->out, name);
	buf_z(w->out, "\ndata: ");
	emit_init(&w->e, w->out);
	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", name);
}

static void
end_event(struct flow_writer *w)
{
	emit_end(&w->e);
	buf_z(w->out, "\n\n");
}

static void
start(struct flow_writer *w, const struct flow *step)
{
	bool told = step->kind == FLOW_START;

	if (w->started)
		return;
	w->started = true;
	if (step->usage != NULL)
		w->usage = *step->usage;
	begin_event(w, "message_start");
	emit_object(&w->e, "message");
	emit_text(&w->e, "id", messages_answer_id(&w->job, told ? step->id : (struct span){"", 0}));
	emit_z(&w->e, "type", "message");
	emit_z(&w->e, "role", "assistant");
	emit_text(&w->e, "model", w->job.model);
	emit_array(&w->e, "content");
	emit_end(&w->e);
	emit_null(&w->e, "stop_reason");
	emit_null(&w->e, "stop_sequence");
	messages_answer_usage(&w->e, &w->usage);
	emit_end(&w->e);
	end_event(w);
}

static void
delta(struct flow_writer *w, const char *type, const char *member, struct span text)
{
	begin_event(w, "content_block_delta");
	emit_i64(&w->e, "index", (int64_t)w->blocks - 1);
	emit_object(&w->e, "delta");
	emit_z(&w->e, "type", type);
	emit_text(&w->e, member, text);
	emit_end(&w->e);
	end_event(w);
}

static void
begin_block(struct flow_writer *w, const char *type)
{
	begin_event(w, "content_block_start");
	emit_i64(&w->e, "index", (int64_t)w->blocks++);
	emit_object(&w->e, "content_block");
	emit_z(&w->e, "type", type);
}

static void
begin_block_end(struct flow_writer *w)
{
	emit_end(&w->e);
	end_event(w);
}

static void
close_block(struct flow_writer *w)
{
	if (w->open == FLOW_BREAK)
		return;
	if (w->open == FLOW_CALL) {
		struct call *call = &w->calls[w->open_call];

		if (call->held != NULL) {
			struct span input =
			    messages_answer_input(w->job.arena, buf_text(call->held), call->custom);

			delta(w, "input_json_delta", "partial_json", input);
		}
		call->over = true;
	}
	begin_event(w, "content_block_stop");
	emit_i64(&w->e, "index", (int64_t)w->blocks - 1);
	end_event(w);
	w->open = FLOW_BREAK;
}

static void
put_text(struct flow_writer *w, struct span text)
{
	if (text.n == 0)
		return;
	if (w->open != FLOW_TEXT) {
		close_block(w);
		begin_block(w, "text");
		emit_z(&w->e, "text", "");
		begin_block_end(w);
		w->open = FLOW_TEXT;
	}
	delta(w, "text_delta", "text", text);
}

static void
open_thought(struct flow_writer *w)
{
	if (w->open == FLOW_THOUGHT)
		return;
	close_block(w);
	begin_block(w, "thinking");
	emit_z(&w->e, "thinking", "");
	emit_z(&w->e, "signature", "");
	begin_block_end(w);
	w->open = FLOW_THOUGHT;
}

static void
put_thought(struct flow_writer *w, struct span text)
{
	if (text.n == 0)
		return;
	open_thought(w);
	delta(w, "thinking_delta", "thinking", text);
}

static void
put_seal(struct flow_writer *w, struct span seal)
{
	if (seal.n == 0)
		return;
	open_thought(w);
	delta(w, "signature_delta", "signature", messages_answer_seal(seal));
	close_block(w);
}

static void
put_redacted(struct flow_writer *w, struct span seal)
{
	close_block(w);
	begin_block(w, "redacted_thinking");
	emit_text(&w->e, "data", messages_answer_seal(seal));
	begin_block_end(w);
	w->open = FLOW_REDACTED;
	close_block(w);
}

static void
open_call(struct flow_writer *w, size_t number)
{
	struct call *call = &w->calls[number];

	close_block(w);
	begin_block(w, "tool_use");
	emit_text(&w->e, "id", call->id);
	emit_text(&w->e, "name", call->name);
	emit_object(&w->e, "input");
	emit_end(&w->e);
	begin_block_end(w);
	w->open = FLOW_CALL;
	w->open_call = number;
}

/* What does not begin an object is held: only at its end can it be made one. */
static void
put_arguments(struct flow_writer *w, struct call *call, struct span text)
{
	if (text.n == 0)
		return;
	if (!call->begun) {
		struct span rest = text_trim(text);

		if (rest.n == 0 && !call->custom)
			return;
		call->begun = true;
		if (call->custom || rest.p[0] != '{')
			call->held = arena_buf(w->job.arena, BYTES_MAX);
	}
	if (call->held != NULL)
		buf_span(call->held, text);
	else
		delta(w, "input_json_delta", "partial_json", text);
}

static struct item *
wait_for(struct flow_writer *w, enum flow_kind kind)
{
	struct item *item = w->last;
	bool grows =
	    item != NULL && item->kind == kind && (kind == FLOW_TEXT || kind == FLOW_THOUGHT);

	if (grows)
		return item;
	item = arena_alloc(w->job.arena, sizeof *item);
	item->kind = kind;
	item->text = arena_buf(w->job.arena, BYTES_MAX);
	if (w->last == NULL)
		w->first = item;
	else
		w->last->next = item;
	w->last = item;
	return item;
}

/* Whatever stands in no order of its own. */
static void
put(struct flow_writer *w, enum flow_kind kind, struct span text, size_t call)
{
	switch (kind) {
	case FLOW_TEXT: put_text(w, text); break;
	case FLOW_THOUGHT: put_thought(w, text); break;
	case FLOW_SEAL: put_seal(w, text); break;
	case FLOW_REDACTED: put_redacted(w, text); break;
	case FLOW_BREAK: close_block(w); break;
	case FLOW_CALL:
		open_call(w, call);
		put_arguments(w, &w->calls[call], text);
		break;
	case FLOW_START:
	case FLOW_REFUSAL:
	case FLOW_ARGUMENTS:
	case FLOW_CALL_END:
	case FLOW_CITATION:
	case FLOW_FINISH:
	case FLOW_USAGE:
	case FLOW_END: break;
	}
}

/* Up to the next call that is not over; `all` are at the end. */
static void
let_go(struct flow_writer *w, bool all)
{
	while (w->first != NULL) {
		struct item *item = w->first;

		w->first = item->next;
		if (w->first == NULL)
			w->last = NULL;
		put(w, item->kind, buf_text(item->text), item->call);
		if (item->kind != FLOW_CALL)
			continue;
		w->calls[item->call].item = NULL;
		if (!w->calls[item->call].over && !all)
			return;
		close_block(w);
	}
}

static void
give(struct flow_writer *w, enum flow_kind kind, struct span text, size_t call)
{
	struct item *item;

	if (w->open != FLOW_CALL) {
		put(w, kind, text, call);
		return;
	}
	if (text.n == 0 && kind != FLOW_CALL && kind != FLOW_BREAK)
		return;
	item = wait_for(w, kind);
	buf_span(item->text, text);
	item->call = call;
	if (kind == FLOW_CALL)
		w->calls[call].item = item;
}

static void
add_call(struct flow_writer *w, const struct flow *step)
{
	struct arena *arena = w->job.arena;
	size_t number = w->ncalls;

	if (number == w->cap) {
		size_t cap = w->cap == 0 ? 4 : w->cap * 2;
		struct call *calls = arena_alloc(arena, cap * sizeof *calls);

		if (number > 0)
			memcpy(calls, w->calls, number * sizeof *calls);
		w->calls = calls;
		w->cap = cap;
	}
	w->ncalls++;
	w->calls[number] =
	    (struct call){.id = arena_copy(arena, form_id(arena, FORM_MESSAGES, step->id)),
	        .name = arena_copy(arena, messages_answer_tool(&w->job, step->name)),
	        .custom = step->custom};
	give(w, FLOW_CALL, (struct span){"", 0}, number);
}

static void
add_arguments(struct flow_writer *w, const struct flow *step)
{
	struct call *call;

	if (step->call >= w->ncalls)
		return;
	call = &w->calls[step->call];
	if (w->open == FLOW_CALL && w->open_call == step->call)
		put_arguments(w, call, step->text);
	else if (call->item != NULL)
		buf_span(call->item->text, step->text);
}

static void
end_call(struct flow_writer *w, size_t number)
{
	if (number >= w->ncalls)
		return;
	w->calls[number].over = true;
	if (w->open != FLOW_CALL || w->open_call != number)
		return;
	close_block(w);
	let_go(w, false);
}

static void
finish(struct flow_writer *w, const struct flow *step)
{
	w->finished = true;
	w->finish = step->finish;
	w->stop = arena_copy(w->job.arena, step->stop);
	close_block(w);
	let_go(w, true);
	close_block(w);
	if (w->blocks > 0)
		return;
	/* clients take the first block without looking */
	begin_block(w, "text");
	emit_z(&w->e, "text", "");
	begin_block_end(w);
	w->open = FLOW_TEXT;
	close_block(w);
}

static void
tell(struct flow_writer *w)
{
	const char *reason = messages_answer_reason(w->finish, w->ncalls > 0, w->refused);

	if (w->told)
		return;
	w->told = true;
	begin_event(w, "message_delta");
	emit_object(&w->e, "delta");
	emit_z(&w->e, "stop_reason", reason);
	if (*reason == 's')
		emit_text(&w->e, "stop_sequence", w->stop);
	else
		emit_null(&w->e, "stop_sequence");
	emit_end(&w->e);
	messages_answer_usage(&w->e, &w->usage);
	end_event(w);
}

static void
use(struct flow_writer *w, const struct flow *step)
{
	if (step->usage != NULL)
		w->usage = *step->usage;
	if (w->finished && w->usage.completion >= 0)
		tell(w);
}

static void
end(struct flow_writer *w)
{
	if (!w->finished)
		finish(w, &(struct flow){.kind = FLOW_FINISH, .finish = FLOW_STOP});
	tell(w);
	begin_event(w, "message_stop");
	end_event(w);
	w->ended = true;
}

static void
content(struct flow_writer *w, const struct flow *step)
{
	switch (step->kind) {
	case FLOW_TEXT:
	case FLOW_THOUGHT:
	case FLOW_SEAL:
	case FLOW_REDACTED:
	case FLOW_BREAK: give(w, step->kind, step->text, 0); break;
	case FLOW_REFUSAL:
		w->refused |= step->text.n > 0;
		give(w, FLOW_TEXT, step->text, 0);
		break;
	case FLOW_CALL: add_call(w, step); break;
	case FLOW_ARGUMENTS: add_arguments(w, step); break;
	case FLOW_CALL_END: end_call(w, step->call); break;
	case FLOW_FINISH: finish(w, step); break;
	case FLOW_START:
	case FLOW_CITATION: /* this API's ones hold what only its maker can write */
	case FLOW_USAGE:
	case FLOW_END: break;
	}
}

static void
step(struct flow_writer *w, const struct flow *s, struct buf *out)
{
	if (w->ended)
		return;
	w->out = out;
	start(w, s);
	if (s->kind == FLOW_USAGE)
		use(w, s);
	else if (s->kind == FLOW_END)
		end(w);
	else if (!w->finished)
		content(w, s);
}

static void
error(struct flow_writer *w, int status, const char *type, const char *code, struct span message,
    struct buf *out)
{
	w->ended = true;
	messages_error_event(out, status, type, code, message);
}

const struct flow_writer_kind flow_write_messages = {.begin = begin, .step = step, .error = error};
