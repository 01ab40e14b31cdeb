#include "dialect/chat_turns.h"

#include "dialect/chat_tools.h"

#include <stdio.h>

#define WHERE_BYTES 96
#define LOOK_BACK 64 /* calls looked through for the one that a result names */

struct request {
	struct chat_reader *r;
	struct span legacy_id, legacy_name; /* of the last function_call */
};

static enum err
refuse(struct request *q, const char *name, const char *text)
{
	err_why(q->r->why, "'%s' %s", name, text);
	return ERR_BAD_INPUT;
}

enum {
	ROLE,
	CONTENT,
	NAME,
	CALLS,
	CALL_ID,
	REFUSAL,
	AUDIO,
	OLD_CALL,
	THOUGHT,
	THOUGHT_OPENROUTER,
	THOUGHT_TEXT,
	DETAILS,
	MESSAGE__MAX
};

static const char *const message_names[MESSAGE__MAX] = {
    [ROLE] = "role",
    [CONTENT] = "content",
    [NAME] = "name",
    [CALLS] = "tool_calls",
    [CALL_ID] = "tool_call_id",
    [REFUSAL] = "refusal",
    [AUDIO] = "audio",
    [OLD_CALL] = "function_call",
    [THOUGHT] = "reasoning_content",
    [THOUGHT_OPENROUTER] = "reasoning",
    [THOUGHT_TEXT] = "reasoning_text",
    [DETAILS] = "reasoning_details",
};

struct message {
	struct request *q;
	char where[WHERE_BYTES];
	struct scan_value v[MESSAGE__MAX];
	struct span name;
};

static enum err
read_audio_id(struct message *m, struct form_turn *turn)
{
	static const char *const names[] = {"id"};
	struct scan_value v;
	struct span id;
	enum err err;

	if (m->v[AUDIO].type != SCAN_OBJECT)
		return ERR_OK;
	chat_parts_pick(m->q->r, m->v[AUDIO].raw, names, &v, 1, m->where);
	err = chat_parts_text(m->q->r, &v, m->where, "audio.id", &id);
	if (err == ERR_OK && id.n > 0)
		form_add_part(m->q->r->arena, turn, FORM_AUDIO)->media.file_id = id;
	return err;
}

/* The first that is not empty: some hosts send the same text under two names. */
static enum err
read_thoughts(struct message *m, struct form_turn *turn)
{
	struct span text = {"", 0};

	for (int i = THOUGHT; i <= THOUGHT_TEXT && text.n == 0; i++)
		if (chat_parts_text(m->q->r, &m->v[i], m->where, message_names[i], &text) != ERR_OK)
			return ERR_BAD_INPUT;
	return chat_parts_thoughts(m->q->r, text, &m->v[DETAILS], turn);
}

static enum err
read_assistant(struct message *m)
{
	struct chat_reader *r = m->q->r;
	struct form_turn *turn = form_add_turn(r->arena, r->form, FORM_ASSISTANT, r->at);
	struct span refusal;
	enum err err = read_thoughts(m, turn);

	turn->name = m->name;
	if (err == ERR_OK)
		err = chat_parts_read(r, &m->v[CONTENT], turn);
	if (err == ERR_OK)
		err = chat_parts_text(r, &m->v[REFUSAL], m->where, "refusal", &refusal);
	if (err != ERR_OK)
		return err;
	if (refusal.n > 0)
		form_add_part(r->arena, turn, FORM_REFUSAL)->text = refusal;
	err = read_audio_id(m, turn);
	if (err == ERR_OK && m->v[CALLS].type != SCAN_ABSENT)
		err = chat_tools_calls(r, &m->v[CALLS], turn);
	if (err != ERR_OK || m->v[OLD_CALL].type == SCAN_ABSENT)
		return err;
	err = chat_tools_old_call(r, &m->v[OLD_CALL], turn);
	if (err == ERR_OK) {
		m->q->legacy_id = turn->parts[turn->nparts - 1].call.id;
		m->q->legacy_name = turn->parts[turn->nparts - 1].call.name;
	}
	return err;
}

static enum err
read_plain(struct message *m, enum form_role role)
{
	struct chat_reader *r = m->q->r;
	struct form_turn *turn = form_add_turn(r->arena, r->form, role, r->at);

	turn->name = m->name;
	return chat_parts_read(r, &m->v[CONTENT], turn);
}

/* The call with that id, which stands near the result's own place. */
static const struct form_call *
call_of(const struct form_turn *turn, struct span id, size_t place)
{
	size_t i = place < LOOK_BACK ? 0 : place - LOOK_BACK;

	for (; i < turn->nparts && i < place + LOOK_BACK; i++) {
		const struct form_part *part = &turn->parts[i];

		if (part->kind == FORM_CALL && text_equal(part->call.id, id))
			return &part->call;
	}
	return NULL;
}

static enum err
add_result(struct message *m, struct span id)
{
	struct chat_reader *r = m->q->r;
	struct form *form = r->form;
	struct form_turn content = {.at = r->at}, *turn;
	const struct form_call *call = NULL;
	struct form_part *result;
	enum err err = chat_parts_read(r, &m->v[CONTENT], &content);

	if (err != ERR_OK)
		return err;
	turn = form->nturns > 0 ? &form->turns[form->nturns - 1] : NULL;
	if (turn == NULL || turn->role != FORM_TOOL)
		turn = form_add_turn(r->arena, form, FORM_TOOL, r->at);
	if (turn > form->turns && turn[-1].role == FORM_ASSISTANT)
		call = call_of(turn - 1, id, turn->nparts);
	result = form_add_part(r->arena, turn, FORM_RESULT);
	result->at = r->at;
	result->result = (struct form_result){.id = id,
	    .name = call != NULL ? call->name : m->name,
	    .custom = call != NULL && call->custom,
	    .parts = content.parts,
	    .nparts = content.nparts};
	return ERR_OK;
}

static enum err
read_tool(struct message *m)
{
	struct span id;
	enum err err = chat_parts_text(m->q->r, &m->v[CALL_ID], m->where, "tool_call_id", &id);

	if (err == ERR_OK && id.n == 0)
		return refuse(m->q, m->where, "has no 'tool_call_id'");
	return err == ERR_OK ? add_result(m, id) : err;
}

static enum err
read_function(struct message *m)
{
	if (m->q->legacy_id.n == 0 || !text_equal(m->name, m->q->legacy_name))
		return refuse(m->q, m->where,
		    "is the result of a function that the message before it does not call");
	return add_result(m, m->q->legacy_id);
}

static enum err
read_message(struct request *q, const struct scan_value *value)
{
	struct message m = {.q = q};
	struct span role;
	enum err err;

	snprintf(m.where, sizeof m.where, "messages[%zu]", q->r->at);
	if (value->type != SCAN_OBJECT)
		return refuse(q, m.where, "must be a message object");
	chat_parts_pick(q->r, value->raw, message_names, m.v, MESSAGE__MAX, m.where);
	err = chat_parts_text(q->r, &m.v[ROLE], m.where, "role", &role);
	if (err == ERR_OK)
		err = chat_parts_text(q->r, &m.v[NAME], m.where, "name", &m.name);
	if (err != ERR_OK)
		return err;
	if (text_is(role, "user"))
		return read_plain(&m, FORM_USER);
	if (text_is(role, "assistant"))
		return read_assistant(&m);
	if (text_is(role, "tool"))
		return read_tool(&m);
	if (text_is(role, "system"))
		return read_plain(&m, FORM_SYSTEM);
	if (text_is(role, "developer"))
		return read_plain(&m, FORM_DEVELOPER);
	if (text_is(role, "function"))
		return read_function(&m);
	err_why(q->r->why, "'%s.role' is '%.*s', which is no role of a message", m.where,
	    (int)text_cut(role, 60), role.p);
	return ERR_BAD_INPUT;
}

enum err
chat_turns_read(struct chat_reader *r, const struct scan_value *messages)
{
	struct request q = {.r = r};
	struct scan_value message;
	struct span none;
	size_t at = 0;
	enum err err = ERR_OK;

	if (messages->type != SCAN_ARRAY)
		return refuse(&q, "messages", "must be an array of message objects");
	for (r->at = 0; err == ERR_OK && scan_next(messages->raw, &at, &none, &message); r->at++)
		err = read_message(&q, &message);
	return err;
}
