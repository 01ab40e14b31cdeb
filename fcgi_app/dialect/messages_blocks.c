#include "dialect/messages_blocks.h"

#include "dialect/messages_source.h"
#include "dialect/value.h"

#define ATTRIBUTION "x-anthropic-billing-header"

enum {
	TYPE,
	TEXT,
	CACHE,
	SOURCE,
	TITLE,
	ID,
	NAME,
	INPUT,
	TOOL_USE_ID,
	CONTENT,
	IS_ERROR,
	THINKING,
	SIGNATURE,
	DATA,
	CITATIONS,
	BLOCK__MAX
};

static const char *const names[BLOCK__MAX] = {
    [TYPE] = "type",
    [TEXT] = "text",
    [CACHE] = "cache_control",
    [SOURCE] = "source",
    [TITLE] = "title",
    [ID] = "id",
    [NAME] = "name",
    [INPUT] = "input",
    [TOOL_USE_ID] = "tool_use_id",
    [CONTENT] = "content",
    [IS_ERROR] = "is_error",
    [THINKING] = "thinking",
    [SIGNATURE] = "signature",
    [DATA] = "data",
    [CITATIONS] = "citations",
};

/* One block while it is read. */
struct block {
	struct messages_reader *r;
	struct messages_place place;
	struct span raw;
	struct scan_value v[BLOCK__MAX];
	struct form_turn *turn;
};

typedef enum err read_fn(struct block *b);

static enum err
text_of(struct block *b, int member, bool wanted, struct span *out)
{
	return messages_place_text(b->r, &b->place, names[member], &b->v[member], wanted, out);
}

static struct form_part *
add(struct block *b, enum form_kind kind)
{
	struct form_part *part = form_add_part(b->r->arena, b->turn, kind);

	part->in = b->place.index;
	if (b->v[CACHE].type == SCAN_OBJECT)
		part->cache_control = b->v[CACHE].raw;
	if (value_says(&b->v[CITATIONS]))
		messages_place_extra(b->r, "messages", SPAN("citations"), b->v[CITATIONS].raw);
	return part;
}

static enum err
read_text(struct block *b)
{
	struct span text;
	enum err err = text_of(b, TEXT, false, &text);

	if (err == ERR_OK && text.n > 0)
		add(b, FORM_TEXT)->text = text;
	return err;
}

static enum err
read_image(struct block *b)
{
	return messages_source_read(
	    b->r, &b->place, &b->v[SOURCE], MESSAGES_IMAGE, &add(b, FORM_IMAGE)->media);
}

static enum err
read_document(struct block *b)
{
	struct form_media media = {.url = {"", 0}};
	enum err err = text_of(b, TITLE, false, &media.title);

	if (err == ERR_OK)
		err =
		    messages_source_read(b->r, &b->place, &b->v[SOURCE], MESSAGES_DOCUMENT, &media);
	if (err == ERR_OK)
		add(b, FORM_DOCUMENT)->media = media;
	return err;
}

/* Its source is what the answer may quote: it goes into the text. */
static enum err
read_search_result(struct block *b)
{
	struct form_media media = {.media_type = SPAN("text/plain")};
	struct span source, text;
	enum err err = text_of(b, SOURCE, false, &source);

	if (err == ERR_OK)
		err = text_of(b, TITLE, false, &media.title);
	if (err == ERR_OK)
		err = messages_source_text(b->r, &b->place, &b->v[CONTENT], &text);
	if (err != ERR_OK)
		return err;
	media.plain = text_span(
	    arena_join(b->r->arena, (const struct span[]){source, SPAN("\n\n"), text}, 3));
	add(b, FORM_DOCUMENT)->media = media;
	return ERR_OK;
}

static enum err
read_thinking(struct block *b)
{
	struct span text, seal;
	enum err err = text_of(b, THINKING, false, &text);
	struct form_part *part;

	if (err == ERR_OK)
		err = text_of(b, SIGNATURE, false, &seal);
	if (err != ERR_OK || text.n + seal.n == 0)
		return err;
	part = add(b, FORM_THOUGHT);
	part->text = text;
	part->thought.seal = seal;
	return ERR_OK;
}

static enum err
read_redacted(struct block *b)
{
	struct span seal;
	enum err err = text_of(b, DATA, true, &seal);

	if (err == ERR_OK)
		add(b, FORM_THOUGHT)->thought =
		    (struct form_thought){.seal = seal, .redacted = true};
	return err;
}

static enum err
read_call(struct block *b)
{
	struct form_call call = {.arguments = SPAN("{}")};
	enum err err = text_of(b, ID, true, &call.id);

	if (err == ERR_OK)
		err = text_of(b, NAME, true, &call.name);
	if (err != ERR_OK)
		return err;
	if (b->v[INPUT].type == SCAN_OBJECT)
		call.arguments = b->v[INPUT].raw;
	else if (b->v[INPUT].type != SCAN_ABSENT)
		return messages_place_refuse(b->r, &b->place, "input", "must be an object");
	add(b, FORM_CALL)->call = call;
	return ERR_OK;
}

/* What only this wire knows. In a result it is text that a model may read. */
static enum err
read_opaque(struct block *b)
{
	add(b, FORM_OPAQUE)->text = b->raw;
	return ERR_OK;
}

static enum err
read_reference(struct block *b)
{
	add(b, FORM_TEXT)->text = b->raw;
	return ERR_OK;
}

static read_fn read_result;

/* Which blocks may stand where. */
static const struct kind {
	const char *type;
	read_fn *system, *user, *assistant, *result;
} kinds[] = {
    {"text", read_text, read_text, read_text, read_text},
    {"image", NULL, read_image, NULL, read_image},
    {"document", NULL, read_document, NULL, read_document},
    {"search_result", NULL, read_search_result, NULL, read_search_result},
    {"tool_reference", NULL, NULL, NULL, read_reference},
    {"tool_result", NULL, read_result, NULL, NULL},
    {"tool_use", NULL, NULL, read_call, NULL},
    {"thinking", NULL, NULL, read_thinking, NULL},
    {"redacted_thinking", NULL, NULL, read_redacted, NULL},
};

enum where { IN_SYSTEM, IN_USER, IN_ASSISTANT, IN_RESULT };

static read_fn *
find_kind(const struct scan_value *type, enum where where)
{
	for (size_t i = 0; i < NELEM(kinds); i++) {
		if (!scan_is(type->raw, kinds[i].type))
			continue;
		switch (where) {
		case IN_SYSTEM: return kinds[i].system;
		case IN_USER: return kinds[i].user;
		case IN_ASSISTANT: return kinds[i].assistant;
		case IN_RESULT: return kinds[i].result;
		}
	}
	/* of the host's own tools there are many kinds, and more to come */
	return where == IN_ASSISTANT ? read_opaque : NULL;
}

static enum err
read_block(struct block *b, const struct scan_value *value, enum where where)
{
	read_fn *read;

	if (value->type != SCAN_OBJECT)
		return messages_place_refuse(b->r, &b->place, NULL, "must be a content block");
	b->raw = value->raw;
	messages_place_pick(b->r, value->raw, names, b->v, BLOCK__MAX, NULL);
	if (b->v[TYPE].type != SCAN_STRING)
		return messages_place_refuse(b->r, &b->place, "type", "must be a string");
	read = find_kind(&b->v[TYPE], where);
	if (read == NULL)
		return messages_place_refuse(
		    b->r, &b->place, "type", "is no block that can stand here");
	if (read != read_opaque && read != read_reference) /* who keep all of it */
		messages_place_pick(b->r, value->raw, names, b->v, BLOCK__MAX, "messages");
	return read(b);
}

/* A string, or blocks; in a user's message either its results or all others. */
static enum err
read_content(struct messages_reader *r, const struct messages_place *up,
    const struct scan_value *content, enum where where, struct form_turn *turn)
{
	struct scan_value value;
	struct span none, text;
	size_t at = 0;
	enum err err = ERR_OK;

	if (content->type == SCAN_STRING) {
		text = scan_string(r->arena, content->raw);
		if (text.n > 0)
			form_add_part(r->arena, turn, FORM_TEXT)->text = text;
		return ERR_OK;
	}
	if (content->type != SCAN_ARRAY)
		return messages_place_refuse(r, up, "content",
		    content->type == SCAN_ABSENT
		        ? "is missing"
		        : "must be a string or an array of content blocks");
	for (size_t i = 0; err == ERR_OK && scan_next(content->raw, &at, &none, &value); i++) {
		struct block b = {.r = r, .place = {up, "content", i}, .turn = turn};

		if (up->up == NULL && up->index == SIZE_MAX)
			b.place = (struct messages_place){NULL, up->name, i};
		err = read_block(&b, &value, where);
	}
	return err;
}

static enum err
read_result(struct block *b)
{
	struct form_result result = {.is_error = false};
	struct form_turn content = {.role = FORM_TOOL, .at = b->turn->at};
	enum err err = text_of(b, TOOL_USE_ID, true, &result.id);

	if (err != ERR_OK)
		return err;
	if (b->v[IS_ERROR].type == SCAN_TRUE)
		result.is_error = true;
	else if (b->v[IS_ERROR].type != SCAN_FALSE && b->v[IS_ERROR].type != SCAN_ABSENT)
		return messages_place_refuse(b->r, &b->place, "is_error", "must be true or false");
	if (b->v[CONTENT].type != SCAN_ABSENT)
		err = read_content(b->r, &b->place, &b->v[CONTENT], IN_RESULT, &content);
	if (err != ERR_OK)
		return err;
	for (size_t i = 0; i < content.nparts; i++)
		content.parts[i].of = b->place.index;
	result.parts = content.parts;
	result.nparts = content.nparts;
	add(b, FORM_RESULT)->result = result;
	return ERR_OK;
}

static struct form_turn *
last_turn(const struct form *form)
{
	return form->nturns == 0 ? NULL : &form->turns[form->nturns - 1];
}

static bool
has_call(const struct form_turn *turn)
{
	for (size_t i = turn->nparts; i > 0; i--)
		if (turn->parts[i - 1].kind == FORM_CALL)
			return true;
	return false;
}

/* The parts of one kind, or all others, into a turn of their own, or the last one if it goes on. */
static void
take_parts(
    struct messages_reader *r, const struct form_turn *from, bool results, enum form_role role)
{
	struct form_turn *turn = last_turn(r->form);
	bool goes_on = turn != NULL && turn->role == role && role != FORM_USER &&
	               (role == FORM_TOOL || has_call(turn));

	for (size_t i = 0; i < from->nparts; i++) {
		if ((from->parts[i].kind == FORM_RESULT) != results)
			continue;
		if (!goes_on)
			turn = form_add_turn(r->arena, r->form, role, from->at);
		goes_on = true;
		*form_add_part(r->arena, turn, from->parts[i].kind) = from->parts[i];
	}
}

static enum err
read_message(struct messages_reader *r, const struct scan_value *value, size_t index)
{
	static const char *const members[] = {"role", "content"};
	struct messages_place place = {NULL, "messages", index};
	struct form_turn content = {.role = FORM_SYSTEM, .at = index};
	struct scan_value v[2];
	enum err err;

	messages_place_pick(r, value->raw, members, v, 2, "messages");
	if (v[0].type != SCAN_STRING)
		return messages_place_refuse(r, &place, "role", "must be a string");
	if (scan_is(v[0].raw, "user")) {
		err = read_content(r, &place, &v[1], IN_USER, &content);
		take_parts(r, &content, true, FORM_TOOL);
		take_parts(r, &content, false, FORM_USER);
		if (content.nparts == 0)
			form_add_turn(r->arena, r->form, FORM_USER, index);
	} else if (scan_is(v[0].raw, "assistant")) {
		err = read_content(r, &place, &v[1], IN_ASSISTANT, &content);
		take_parts(r, &content, false, FORM_ASSISTANT);
	} else if (scan_is(v[0].raw, "system")) {
		err = read_content(r, &place, &v[1], IN_SYSTEM, &content);
		if (content.nparts > 0)
			*form_add_turn(r->arena, r->form, FORM_SYSTEM, index) = content;
	} else {
		err = messages_place_refuse(
		    r, &place, "role", "must be 'user', 'assistant' or 'system'");
	}
	return err;
}

enum err
messages_blocks_messages(struct messages_reader *r, const struct scan_value *v)
{
	struct scan_value message;
	struct span none;
	size_t at = 0;
	enum err err = ERR_OK;

	if (v->type != SCAN_ARRAY)
		return messages_place_refuse(
		    r, NULL, "messages", "must be an array of message objects");
	for (size_t i = 0; err == ERR_OK && scan_next(v->raw, &at, &none, &message); i++)
		err = read_message(r, &message, i);
	return err;
}

/* The line that tells a billing system who asks differs with every request; no model needs it. */
static bool
is_attribution(const struct form_turn *turn)
{
	return turn->nparts > 0 && turn->parts[0].kind == FORM_TEXT &&
	       text_starts(turn->parts[0].text, ATTRIBUTION);
}

enum err
messages_blocks_system(struct messages_reader *r, const struct scan_value *v)
{
	struct form_turn content = {.role = FORM_SYSTEM, .at = SIZE_MAX};
	struct messages_place place = {NULL, "system", SIZE_MAX};
	enum err err;

	if (v->type != SCAN_STRING && v->type != SCAN_ARRAY)
		return messages_place_refuse(
		    r, &place, NULL, "must be a string or an array of text blocks");
	err = read_content(r, &place, v, IN_SYSTEM, &content);
	if (err == ERR_OK && is_attribution(&content)) {
		messages_place_extra(r, "system", SPAN(ATTRIBUTION), SPAN("true"));
		content.parts++;
		content.nparts--;
	}
	if (err == ERR_OK && content.nparts > 0)
		*form_add_turn(r->arena, r->form, FORM_SYSTEM, SIZE_MAX) = content;
	return err;
}
