#include "dialect/form_pack.h"

#include "base/emit.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define WHERE_BYTES 80

enum member_type { MEMBER_TEXT, MEMBER_JSON, MEMBER_FLAG };

static const struct member {
	const char *name;
	enum member_type type;
	size_t at; /* in struct form_part */
} members[] = {
    {"text", MEMBER_TEXT, offsetof(struct form_part, text)},
    {"cache_control", MEMBER_JSON, offsetof(struct form_part, cache_control)},
    {"url", MEMBER_TEXT, offsetof(struct form_part, media.url)},
    {"data", MEMBER_TEXT, offsetof(struct form_part, media.data)},
    {"plain", MEMBER_TEXT, offsetof(struct form_part, media.plain)},
    {"media_type", MEMBER_TEXT, offsetof(struct form_part, media.media_type)},
    {"file_id", MEMBER_TEXT, offsetof(struct form_part, media.file_id)},
    {"title", MEMBER_TEXT, offsetof(struct form_part, media.title)},
    {"detail", MEMBER_TEXT, offsetof(struct form_part, media.detail)},
    {"seal", MEMBER_TEXT, offsetof(struct form_part, thought.seal)},
    {"redacted", MEMBER_FLAG, offsetof(struct form_part, thought.redacted)},
    {"thought_id", MEMBER_TEXT, offsetof(struct form_part, thought.id)},
    {"call_id", MEMBER_TEXT, offsetof(struct form_part, call.id)},
    {"name", MEMBER_TEXT, offsetof(struct form_part, call.name)},
    {"namespace", MEMBER_TEXT, offsetof(struct form_part, call.namespace)},
    {"arguments", MEMBER_TEXT, offsetof(struct form_part, call.arguments)},
    {"custom", MEMBER_FLAG, offsetof(struct form_part, call.custom)},
    {"item_id", MEMBER_TEXT, offsetof(struct form_part, call.item_id)},
    {"result_of", MEMBER_TEXT, offsetof(struct form_part, result.id)},
    {"result_by", MEMBER_TEXT, offsetof(struct form_part, result.name)},
    {"is_error", MEMBER_FLAG, offsetof(struct form_part, result.is_error)},
    {"custom_result", MEMBER_FLAG, offsetof(struct form_part, result.custom)},
};

static const char *const roles[] = {
    [FORM_SYSTEM] = "system",
    [FORM_DEVELOPER] = "developer",
    [FORM_USER] = "user",
    [FORM_ASSISTANT] = "assistant",
    [FORM_TOOL] = "tool",
};

static const char *const kinds[] = {
    [FORM_TEXT] = "text",
    [FORM_REFUSAL] = "refusal",
    [FORM_IMAGE] = "image",
    [FORM_DOCUMENT] = "document",
    [FORM_AUDIO] = "audio",
    [FORM_THOUGHT] = "thought",
    [FORM_CALL] = "call",
    [FORM_RESULT] = "result",
    [FORM_OPAQUE] = "opaque",
};

const char *
form_pack_role(enum form_role role)
{
	return roles[role];
}

const char *
form_pack_kind(enum form_kind kind)
{
	return kinds[kind];
}

/* ---- to text ---- */

static void
pack_member(struct emit *e, const struct member *m, const struct form_part *part)
{
	const void *at = (const char *)part + m->at;

	if (m->type == MEMBER_FLAG) {
		if (*(const bool *)at)
			emit_bool(e, m->name, true);
	} else if (((const struct span *)at)->n > 0) {
		emit_text(e, m->name, *(const struct span *)at);
	}
}

/* All but what a result holds. */
static void
pack_plain(struct emit *e, const struct form_part *part)
{
	emit_object(e, NULL);
	emit_z(e, "kind", kinds[part->kind]);
	for (size_t i = 0; i < NELEM(members); i++)
		pack_member(e, &members[i], part);
}

void
form_pack(const struct form_turn *turn, struct buf *out)
{
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_z(&e, "role", roles[turn->role]);
	if (turn->at == SIZE_MAX)
		emit_bool(&e, "apart", true);
	if (turn->name.n > 0)
		emit_text(&e, "name", turn->name);
	emit_array(&e, "parts");
	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_result *result = &turn->parts[i].result;

		pack_plain(&e, &turn->parts[i]);
		if (result->nparts > 0) {
			emit_array(&e, "parts");
			for (size_t k = 0; k < result->nparts; k++) {
				pack_plain(&e, &result->parts[k]);
				emit_end(&e);
			}
			emit_end(&e);
		}
		emit_end(&e);
	}
	emit_end(&e);
	emit_end(&e);
}

/* ---- from text ---- */

struct unpack {
	struct arena *arena;
	struct why *why;
	char where[WHERE_BYTES]; /* of the part that is read */
};

static enum err
refuse(struct unpack *u, struct span name, const char *what)
{
	char shown[WHERE_BYTES];

	text_clean(shown, sizeof shown, name);
	err_why(u->why, "'%s%s' %s", u->where, shown, what);
	return ERR_BAD_INPUT;
}

static bool
is_json(struct span text)
{
	return scan_pick(text, NULL, NULL, 0, NULL) == ERR_OK;
}

static bool
find_word(const char *const *words, size_t n, const struct scan_value *value, unsigned *at_out)
{
	for (size_t i = 0; i < n; i++)
		if (value->type == SCAN_STRING && scan_is(value->raw, words[i])) {
			*at_out = (unsigned)i;
			return true;
		}
	return false;
}

static enum err
read_member(struct unpack *u, const struct member *m, const struct scan_value *value, void *at)
{
	struct span name = text_span(m->name), *text = at;

	if (m->type == MEMBER_FLAG) {
		if (value->type != SCAN_TRUE)
			return refuse(u, name, "is not true");
		*(bool *)at = true;
		return ERR_OK;
	}
	if (value->type != SCAN_STRING)
		return refuse(u, name, "is no text");
	if (text->n > 0)
		return refuse(u, name, "stands there twice");
	*text = scan_string(u->arena, value->raw);
	if (m->type == MEMBER_JSON && !is_json(*text))
		return refuse(u, name, "holds no JSON");
	return ERR_OK;
}

static enum err
read_known(
    struct unpack *u, struct span name, const struct scan_value *value, struct form_part *part)
{
	for (size_t i = 0; i < NELEM(members); i++)
		if (scan_is(name, members[i].name))
			return read_member(u, &members[i], value, (char *)part + members[i].at);
	return refuse(u, (struct span){name.p + 1, name.n - 2}, "is not known");
}

/* What writers put into a body as it stands. */
static enum err
check_raw(struct unpack *u, const struct form_part *part)
{
	if (part->kind == FORM_OPAQUE && !is_json(part->text))
		return refuse(u, SPAN("text"), "holds no JSON");
	if (part->kind == FORM_CALL && !part->call.custom &&
	    (!is_json(part->call.arguments) || !text_starts(text_trim(part->call.arguments), "{")))
		return refuse(u, SPAN("arguments"), "holds no JSON object");
	return ERR_OK;
}

/* *inner_out: the raw list of what a result holds; empty: none. NULL: this is of such a list. */
static enum err
read_part(struct unpack *u, const struct scan_value *object, struct form_part *part,
    struct span *inner_out)
{
	struct scan_value value;
	struct span name;
	size_t at = 0;
	bool has_kind = false;
	enum err err = ERR_OK;

	if (object->type != SCAN_OBJECT)
		return refuse(u, SPAN(""), "is no object");
	while (err == ERR_OK && scan_next(object->raw, &at, &name, &value)) {
		unsigned kind;

		if (scan_is(name, "kind")) {
			if (!find_word(kinds, NELEM(kinds), &value, &kind))
				return refuse(u, SPAN("kind"), "is none that is known");
			part->kind = (enum form_kind)kind;
			has_kind = true;
		} else if (scan_is(name, "parts") && inner_out != NULL &&
		           value.type == SCAN_ARRAY) {
			*inner_out = value.raw;
		} else {
			err = read_known(u, name, &value, part);
		}
	}
	if (err == ERR_OK && !has_kind)
		return refuse(u, SPAN("kind"), "is missing");
	return err == ERR_OK ? check_raw(u, part) : err;
}

/* Room for as many parts as stand in the list: they are much larger than their texts. */
static void
make_room(struct unpack *u, struct span list, struct form_turn *turn)
{
	struct scan_value value;
	struct span none;
	size_t at = 0, n = 0;

	while (scan_next(list, &at, &none, &value))
		n++;
	if (n > 0)
		turn->parts = arena_alloc(u->arena, n * sizeof *turn->parts);
}

static struct form_part *
next_part(struct unpack *u, struct form_turn *turn, size_t of, size_t where)
{
	struct form_part *part = &turn->parts[turn->nparts];

	snprintf(u->where + where, sizeof u->where - where, "parts[%zu].", turn->nparts);
	*part = (struct form_part){.at = turn->at, .in = turn->nparts++, .of = of};
	return part;
}

static enum err
read_inner(struct unpack *u, struct span list, struct form_part *result)
{
	struct form_turn held = {.at = result->at};
	struct scan_value value;
	struct span none;
	size_t at = 0, where = strlen(u->where);
	enum err err = ERR_OK;

	make_room(u, list, &held);
	while (err == ERR_OK && scan_next(list, &at, &none, &value)) {
		struct form_part *part = next_part(u, &held, result->in, where);

		err = read_part(u, &value, part, NULL);
		if (err == ERR_OK && (part->kind == FORM_CALL || part->kind == FORM_RESULT))
			err = refuse(u, SPAN("kind"), "is nothing that a result holds");
	}
	result->result.parts = held.parts;
	result->result.nparts = held.nparts;
	return err;
}

static enum err
read_parts(struct unpack *u, struct span list, struct form_turn *turn)
{
	struct scan_value value;
	struct span none;
	size_t at = 0;
	enum err err = ERR_OK;

	make_room(u, list, turn);
	while (err == ERR_OK && scan_next(list, &at, &none, &value)) {
		struct form_part *part = next_part(u, turn, SIZE_MAX, 0);
		struct span inner = {"", 0};

		err = read_part(u, &value, part, &inner);
		if (err == ERR_OK && inner.n > 0 && part->kind != FORM_RESULT)
			err = refuse(u, SPAN("parts"), "is of results alone");
		if (err == ERR_OK)
			err = read_inner(u, inner, part);
	}
	u->where[0] = '\0';
	return err;
}

enum err
form_unpack(struct arena *arena, struct span text, struct form_turn *turn_out, struct why *why)
{
	static const char *const paths[] = {"role", "apart", "name", "parts"};
	struct unpack u = {.arena = arena, .why = why};
	struct scan_value v[NELEM(paths)];
	struct form_turn turn = {.parts = NULL};
	unsigned role;
	enum err err = scan_pick(text, paths, v, NELEM(paths), why);

	if (err != ERR_OK)
		return err;
	if (!find_word(roles, NELEM(roles), &v[0], &role))
		return refuse(&u, SPAN("role"), "is none that is known");
	if (v[1].type != SCAN_ABSENT && v[1].type != SCAN_TRUE)
		return refuse(&u, SPAN("apart"), "is not true");
	if (v[2].type != SCAN_ABSENT && v[2].type != SCAN_STRING)
		return refuse(&u, SPAN("name"), "is no text");
	if (v[3].type != SCAN_ARRAY)
		return refuse(&u, SPAN("parts"), "is no list");
	turn.role = (enum form_role)role;
	turn.at = v[1].type == SCAN_TRUE ? SIZE_MAX : 0;
	if (v[2].type == SCAN_STRING)
		turn.name = scan_string(arena, v[2].raw);
	err = read_parts(&u, v[3].raw, &turn);
	if (err == ERR_OK)
		*turn_out = turn;
	return err;
}
