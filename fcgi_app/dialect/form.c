#include "dialect/form.h"

#include "base/digest.h"

#include <string.h>

#define CHAT_ID_MAX 40
#define RESPONSES_ID_MAX 64
#define NAME_HASH_HEX 8
#define DROPPED_MAX 64 /* they go into one header */
#define RENAMED_LOOK \
	64 /* names looked through for the same: a client may call one thousands of times */

/* A list in the arena with one more place; it doubles, so that n entries cost n copies in all. */
static void *
grow(struct arena *arena, void *old, size_t n, size_t size)
{
	void *list;

	if (n != 0 && (n & (n - 1)) != 0)
		return old;
	list = arena_alloc(arena, (n == 0 ? 1 : n * 2) * size);
	if (n > 0)
		memcpy(list, old, n * size);
	return list;
}

struct form_part *
form_add_part(struct arena *arena, struct form_turn *turn, enum form_kind kind)
{
	struct form_part *part;

	turn->parts = grow(arena, turn->parts, turn->nparts, sizeof *turn->parts);
	part = &turn->parts[turn->nparts++];
	*part = (struct form_part){.kind = kind, .at = turn->at, .in = SIZE_MAX, .of = SIZE_MAX};
	return part;
}

struct form_turn *
form_add_turn(struct arena *arena, struct form *form, enum form_role role, size_t at)
{
	struct form_turn *turn;

	form->turns = grow(arena, form->turns, form->nturns, sizeof *form->turns);
	turn = &form->turns[form->nturns++];
	*turn = (struct form_turn){.role = role, .at = at};
	return turn;
}

bool
form_is_system(const struct form_turn *turn)
{
	return turn->role == FORM_SYSTEM || turn->role == FORM_DEVELOPER;
}

size_t
form_leading(const struct form *form)
{
	size_t n = 0;

	while (n < form->nturns && form_is_system(&form->turns[n]))
		n++;
	return n;
}

struct form_tool *
form_add_tool(struct arena *arena, struct form *form, enum form_tool_kind kind)
{
	struct form_tool *tool;

	form->tools = grow(arena, form->tools, form->ntools, sizeof *form->tools);
	tool = &form->tools[form->ntools++];
	*tool = (struct form_tool){.kind = kind};
	return tool;
}

void
form_add_extra(struct arena *arena, struct form *form, struct span name, struct span raw)
{
	form->extras = grow(arena, form->extras, form->nextras, sizeof *form->extras);
	form->extras[form->nextras++] = (struct form_extra){name, raw};
}

size_t
form_items(const struct form_turn *turns, size_t n)
{
	size_t items = 0;

	for (size_t i = 0; i < n; i++) {
		items += turns[i].nparts > 0 ? turns[i].nparts : 1;
		for (size_t k = 0; k < turns[i].nparts; k++)
			items += turns[i].parts[k].result.nparts;
	}
	return items;
}

void
form_drop(struct form_loss *loss, struct arena *arena, struct span name)
{
	if (loss->ndropped == DROPPED_MAX)
		return;
	for (size_t i = 0; i < loss->ndropped; i++)
		if (text_equal(loss->dropped[i], name))
			return;
	loss->dropped = grow(arena, loss->dropped, loss->ndropped, sizeof *loss->dropped);
	loss->dropped[loss->ndropped] = loss->ndropped + 1 == DROPPED_MAX ? SPAN("...") : name;
	loss->ndropped++;
}

void
form_rename(struct form_loss *loss, struct arena *arena, const struct form_name *name)
{
	for (size_t i = 0; i < loss->nnames && i < RENAMED_LOOK; i++)
		if (text_equal(loss->names[i].sent, name->sent))
			return;
	loss->names = grow(arena, loss->names, loss->nnames, sizeof *loss->names);
	loss->names[loss->nnames++] = *name;
}

static bool
is_plain(char c)
{
	char low = text_lower(c);

	return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* At most `keep` bytes of `shown`, '_', and as much of a hash of the whole. */
static struct span
shorten(struct arena *arena, struct span shown, size_t keep, struct span whole, size_t hash)
{
	size_t n = shown.n < keep ? shown.n : text_cut(shown, keep);
	char *out = arena_alloc(arena, n + 1 + hash + 1);

	if (n > 0)
		memcpy(out, shown.p, n);
	out[n] = '_';
	digest_hex(whole, hash, out + n + 1);
	return (struct span){out, n + 1 + hash};
}

static struct span
only_plain(struct arena *arena, struct span text)
{
	char *out = NULL;

	for (size_t i = 0; i < text.n; i++) {
		if (is_plain(text.p[i]))
			continue;
		if (out == NULL)
			out = arena_z(arena, text);
		out[i] = '_';
	}
	return out == NULL ? text : (struct span){out, text.n};
}

struct span
form_media_type(struct arena *arena, struct span type)
{
	char *low;

	type = text_trim((struct span){type.p, text_find(type, SPAN(";"))});
	low = arena_z(arena, type);
	for (size_t i = 0; i < type.n; i++)
		low[i] = text_lower(low[i]);
	return text_is(text_span(low), "image/jpg") ? SPAN("image/jpeg")
	                                            : (struct span){low, type.n};
}

struct span
form_id(struct arena *arena, enum form_wire wire, struct span id)
{
	switch (wire) {
	case FORM_CHAT: return id.n <= CHAT_ID_MAX ? id : shorten(arena, id, 7, id, 32);
	case FORM_RESPONSES: return id.n <= RESPONSES_ID_MAX ? id : shorten(arena, id, 31, id, 32);
	case FORM_MESSAGES: {
		struct span plain = only_plain(arena, id);

		/* another id could become the same text: its hash tells them apart */
		return text_equal(plain, id) ? id : shorten(arena, plain, 7, id, 32);
	}
	case FORM_WIRE__MAX: break;
	}
	return id;
}

struct span
form_tool_name(struct arena *arena, struct span name, size_t max)
{
	struct span plain = only_plain(arena, name);

	if (name.n <= max && text_equal(plain, name))
		return name;
	return shorten(arena, plain, max - NAME_HASH_HEX - 1, name, NAME_HASH_HEX);
}
