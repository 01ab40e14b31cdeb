#include "convert.h"

#include "convert_defaults.h"
#include "convert_turns.h"
#include "dialect/edit.h"
#include "dialect/messages.h"

#define EDITS_FIXED 4 /* model, usage, stream, limit */
#define BODY_SLACK (1024 * 1024)
#define DROPPED_MAX 500 /* bytes of the header's value */
#define DROPPED_MORE ",..."

_Static_assert((int)FORM_CHAT == (int)WIRE_CHAT, "wires have one numbering");
_Static_assert((int)FORM_MESSAGES == (int)WIRE_MESSAGES, "wires have one numbering");
_Static_assert((int)FORM_RESPONSES == (int)WIRE_RESPONSES, "wires have one numbering");

void
convert_begin(struct convert *c, struct arena *arena, const struct request *rq, int64_t created_s)
{
	*c = (struct convert){.arena = arena, .rq = rq, .created_s = created_s};
}

static enum form_wire
wire_of(const struct conf_channel *channel)
{
	return (enum form_wire)channel->wire;
}

/* The limit on the answer, under the one name that the host knows. */
static size_t
edit_limit(const struct dialect_request *read, struct span name, struct edit *edit_out)
{
	bool is_new = text_is(name, "max_completion_tokens");
	const char *mine = is_new ? "max_completion_tokens" : "max_tokens";
	const char *other = is_new ? "max_tokens" : "max_completion_tokens";
	const struct scan_value *have = is_new ? &read->max_completion_tokens : &read->max_tokens;
	const struct scan_value *lost = is_new ? &read->max_tokens : &read->max_completion_tokens;

	if (name.n == 0 || lost->type == SCAN_ABSENT)
		return 0;
	return have->type == SCAN_ABSENT ? edit_rename(read->body, other, mine, edit_out)
	                                 : edit_remove(read->body, other, edit_out);
}

static void
apply(struct convert *c, struct edit *edits, size_t n)
{
	struct buf *out;
	size_t room = c->way.body.n + 1;

	if (n == 0)
		return;
	for (size_t i = 0; i < n; i++)
		room += edits[i].text.n;
	out = arena_buf(c->arena, room);
	edit_apply(c->way.body, edits, n, out);
	c->way.body = buf_text(out);
}

/* What every host gets of the client's bytes: the model's name, and what a stream needs. */
static size_t
edit_wishes(const struct convert *c, const struct dialect_request *read, struct span model,
    struct edit *edits)
{
	const struct request *rq = c->rq;
	size_t n = 0;

	if (rq->model.n > 0 && !text_equal(model, rq->model))
		edits[n++] = edit_model(c->arena, read, model);
	if (c->way.stream && !rq->stream)
		n += edit_stream(read, &edits[n]);
	if (c->way.stream && rq->endpoint->dialect->usage_option &&
	    !c->way.channel->quirks.no_stream_options)
		n += edit_usage(read, &edits[n]);
	return n;
}

/* A form may be large: its parts are sent where they lie. */
static void
edit_form(struct convert *c, struct span model)
{
	const struct request *rq = c->rq;
	size_t at = (size_t)(rq->form_model.p - rq->form.p);

	c->way.body = rq->form;
	if (text_equal(model, rq->model))
		return;
	c->way.body.n = at;
	c->way.more[0] = model;
	c->way.more[1] = text_from(rq->form, at + rq->form_model.n);
}

/* The bytes for the upstream: the client's, with only the edited values replaced. */
static void
edit_body(struct convert *c, const struct dialect_request *read, struct span model)
{
	const struct request *rq = c->rq;
	const struct conf_channel *channel = c->way.channel;
	bool chat = rq->endpoint->converts && rq->endpoint->wire == FORM_CHAT;
	bool roles = chat && channel->quirks.developer_as_system;
	size_t nroles = roles ? edit_roles(&read->messages, NULL, 0) : 0, n;
	struct edit *edits = arena_alloc(c->arena, (nroles + EDITS_FIXED) * sizeof *edits);

	if (rq->form_type.n > 0) {
		edit_form(c, model);
		return;
	}
	c->way.body = read->body;
	n = edit_wishes(c, read, model, edits);
	if (nroles > 0)
		n += edit_roles(&read->messages, &edits[n], nroles);
	if (chat)
		n += edit_limit(read, channel->quirks.max_tokens, &edits[n]);
	apply(c, edits, n);
	if (rq->endpoint->dialect->usage_option && channel->quirks.no_stream_options &&
	    edit_remove(c->way.body, "stream_options", edits))
		apply(c, edits, 1);
}

enum err
convert_read(struct convert *c, struct why *why)
{
	enum err err;

	if (c->state == CONVERT_UNREAD) {
		err = flow_wires[c->rq->endpoint->wire].read(
		    c->arena, c->rq->read.body, &c->form, &c->fault);
		if (err == ERR_OK)
			err = form_check(&c->form, &c->fault);
		c->state = err == ERR_OK ? CONVERT_READ : CONVERT_UNREADABLE;
	}
	if (c->state == CONVERT_READ)
		return ERR_OK;
	err_why(why, "%s", c->fault.text);
	return ERR_BAD_INPUT;
}

/* A client's own word in a header that is a list of words. */
static void
add_word(struct buf *out, struct span word)
{
	for (size_t i = 0; i < word.n; i++) {
		char c = word.p[i];

		buf_char(out, c > ' ' && c < 0x7f && c != ',' ? c : '?');
	}
}

static void
name_dropped(struct convert *c)
{
	const struct form_loss *loss = &c->way.loss;
	struct buf *out = arena_buf(c->arena, DROPPED_MAX + sizeof DROPPED_MORE);

	for (size_t i = 0; i < loss->ndropped; i++) {
		struct span name = loss->dropped[i];

		if (out->n + 1 + name.n > DROPPED_MAX) {
			buf_z(out, out->n == 0 ? &DROPPED_MORE[1] : DROPPED_MORE);
			break;
		}
		if (i > 0)
			buf_char(out, ',');
		add_word(out, name);
	}
	c->way.dropped = buf_text(out);
}

struct form_target
convert_form_target(const struct convert *c, const struct convert_target *target)
{
	const struct conf_channel *channel = target->channel;

	return (struct form_target){
	    .wire = wire_of(channel),
	    .model = target->model,
	    .channel = channel->name,
	    .provider = channel->provider->name,
	    .max_tokens_name = channel->quirks.max_tokens,
	    .developer_as_system = channel->quirks.developer_as_system,
	    .no_stream_options = channel->quirks.no_stream_options,
	    .stream = c->way.stream,
	    .max_output = target->max_output > 0 ? target->max_output : -1,
	};
}

size_t
convert_room(const struct convert *c)
{
	return (c->rq->read.body.n + c->say_bytes) * 8 + BODY_SLACK;
}

static enum err
write_body(struct convert *c, const struct convert_target *target, struct why *why)
{
	struct form_target to = convert_form_target(c, target);
	struct buf *out = arena_buf(c->arena, convert_room(c));
	enum err err = convert_read(c, why);
	struct form form = c->say != NULL ? *c->say : c->form;

	if (form.max_output < 0)
		form.max_output = convert_defaults_limit(target);
	if (err == ERR_OK)
		err = flow_wires[to.wire].write(c->arena, &form, &to, out, &c->way.loss, why);
	if (err != ERR_OK)
		return err;
	if (out->over) {
		err_why(why, "the request grows too large when it is converted");
		return ERR_BAD_INPUT;
	}
	edit_surrogates(out->p, out->n);
	c->way.body = buf_text(out);
	name_dropped(c);
	return ERR_OK;
}

/* In a conversation that others serve, too, the thoughts may be missing that the host wants back. */
static void
stop_thinking(struct convert *c, const struct convert_target *target)
{
	struct form_target to = convert_form_target(c, target);
	struct edit edit;

	if (to.wire != FORM_MESSAGES || c->form.thinking_budget <= 0 ||
	    messages_may_think(c->say, &to) || !edit_remove(c->way.body, "thinking", &edit))
		return;
	apply(c, &edit, 1);
	form_drop(&c->way.loss, c->arena, SPAN("thinking"));
}

/* The client's body, with the conversation in place of its own list. */
static enum err
say_body(struct convert *c, const struct convert_target *target, struct why *why)
{
	struct dialect_request read;
	enum err err = convert_turns(c, target, &read, why);

	if (err != ERR_OK)
		return err;
	edit_body(c, &read, target->model);
	stop_thinking(c, target);
	name_dropped(c);
	return ERR_OK;
}

/* Tokens are counted as the request is: the limits of an answer are no part of it. */
static void
add_defaults(struct convert *c, const struct convert_target *target)
{
	struct edit edit;

	if (c->rq->form_type.n == 0 && c->rq->endpoint->dialect != &dialect_count_tokens &&
	    convert_defaults(c, target, c->way.body, &edit))
		apply(c, &edit, 1);
}

static enum err
aim(struct convert *c, const struct convert_target *target, struct why *why)
{
	const struct endpoint *endpoint = c->rq->endpoint;
	enum form_wire wire = wire_of(target->channel);

	c->target = *target;
	c->way = (struct convert_way){
	    .same = wire == endpoint->wire,
	    .channel = target->channel,
	    .model = target->model,
	    .dialect = endpoint->dialect,
	    .stream = c->rq->stream || (endpoint->converts && target->channel->quirks.force_stream),
	    .dropped = SPAN(""),
	};
	if (!c->way.same)
		c->way.dialect = flow_wires[wire].dialect;
	if (!c->way.same)
		return write_body(c, target, why);
	/* a plain answer that is gathered repeats parts of the request; unreadable ones it cannot */
	if (wire == FORM_RESPONSES && c->way.stream && !c->rq->stream &&
	    convert_read(c, why) != ERR_OK)
		c->form = (struct form){.from = wire, .max_output = -1, .thinking_budget = -1};
	if (c->say != NULL)
		return say_body(c, target, why);
	edit_body(c, &c->rq->read, target->model);
	return ERR_OK;
}

enum err
convert_aim(struct convert *c, const struct convert_target *target, struct why *why)
{
	enum err err = aim(c, target, why);

	if (err == ERR_OK)
		add_defaults(c, target);
	return err;
}

enum err
convert_again(struct convert *c, struct why *why)
{
	struct convert_target target = c->target;

	return convert_aim(c, &target, why);
}
