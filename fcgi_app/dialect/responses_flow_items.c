#include "dialect/responses_flow_read.h"

#include "dialect/seal.h"

#define ARGUMENTS_MAX ((size_t)1 << 31)

enum {
	TYPE,
	ID,
	CALL_ID,
	NAME,
	NAMESPACE,
	ARGUMENTS,
	INPUT,
	CONTENT,
	SUMMARY,
	ENCRYPTED,
	ITEM__MAX
};

static const char *const item_paths[ITEM__MAX] = {
    [TYPE] = "type",
    [ID] = "id",
    [CALL_ID] = "call_id",
    [NAME] = "name",
    [NAMESPACE] = "namespace",
    [ARGUMENTS] = "arguments",
    [INPUT] = "input",
    [CONTENT] = "content",
    [SUMMARY] = "summary",
    [ENCRYPTED] = "encrypted_content",
};

void
responses_flow_give(struct flow_reader *r, const struct flow *step)
{
	r->nspoken += step->kind != FLOW_START && step->kind != FLOW_BREAK;
	r->sink(r->arg, step);
}

struct responses_flow_item *
responses_flow_add(
    struct flow_reader *r, enum responses_flow_kind kind, struct span id, int64_t index)
{
	struct responses_flow_item *item = arena_alloc(r->arena, sizeof *item);
	struct responses_flow_item **place = &r->items[r->nitems++ % RESPONSES_FLOW_OPEN];

	/* the oldest is forgotten: a call must not stay open for that */
	if (*place != NULL && !(*place)->done)
		responses_flow_call_end(r, *place);
	*item = (struct responses_flow_item){
	    .kind = kind, .id = arena_copy(r->arena, id), .index = index, .part = -1};
	*place = item;
	return item;
}

/* The newest that fits. */
static struct responses_flow_item *
look(const struct flow_reader *r, struct span id, int64_t index)
{
	for (size_t n = 0; n < r->nitems && n < RESPONSES_FLOW_OPEN; n++) {
		struct responses_flow_item *item =
		    r->items[(r->nitems - 1 - n) % RESPONSES_FLOW_OPEN];

		if (id.n > 0 ? text_equal(item->id, id) : index >= 0 && item->index == index)
			return item;
	}
	return NULL;
}

struct responses_flow_item *
responses_flow_find(
    struct flow_reader *r, enum responses_flow_kind kind, struct span id, int64_t index)
{
	struct responses_flow_item *item = id.n > 0 ? look(r, id, -1) : NULL;

	if (item != NULL && item->kind == kind)
		return item; /* perhaps over, when a host repeats itself */
	item = look(r, (struct span){"", 0}, index);
	/* neither is told: it can only be the last one */
	if (item == NULL && id.n == 0 && index < 0 && r->nitems > 0)
		item = r->items[(r->nitems - 1) % RESPONSES_FLOW_OPEN];
	if (item == NULL || item->kind != kind || item->done)
		item = responses_flow_add(r, kind, id, index);
	return item;
}

void
responses_flow_say(struct flow_reader *r, struct responses_flow_item *item, enum flow_kind kind,
    struct span text, int64_t part)
{
	bool other = item != r->speaking || item->part != part;

	if (text.n == 0)
		return;
	if (r->speaking != NULL && other) {
		if (kind == FLOW_THOUGHT && item == r->speaking)
			responses_flow_give(
			    r, &(struct flow){.kind = FLOW_THOUGHT, .text = SPAN("\n\n")});
		else
			responses_flow_give(r, &(struct flow){.kind = FLOW_BREAK});
	}
	r->speaking = item;
	item->spoken = true;
	item->part = part;
	responses_flow_give(r, &(struct flow){.kind = kind, .text = text});
}

static void
make_id(struct flow_reader *r, struct responses_flow_item *item)
{
	if (item->call_id.n == 0)
		item->call_id =
		    responses_id(r->arena, "call_", r->id.n > 0 ? r->id : r->channel, r->ncalls);
}

void
responses_flow_call(struct flow_reader *r, struct responses_flow_item *item)
{
	if (item->named || item->name.n == 0)
		return;
	make_id(r, item);
	item->named = true;
	item->call = r->ncalls++;
	r->speaking = NULL;
	responses_flow_give(r, &(struct flow){.kind = FLOW_CALL,
	                           .call = item->call,
	                           .id = item->call_id,
	                           .name = item->name,
	                           .namespace = item->namespace,
	                           .item_id = item->id,
	                           .custom = item->custom});
	if (item->early != NULL)
		responses_flow_give(r,
		    &(struct flow){
		        .kind = FLOW_ARGUMENTS, .call = item->call, .text = buf_text(item->early)});
}

void
responses_flow_arguments(struct flow_reader *r, struct responses_flow_item *item, struct span text)
{
	if (text.n == 0 || item->done)
		return;
	item->spoken = true;
	if (item->named) {
		responses_flow_give(
		    r, &(struct flow){.kind = FLOW_ARGUMENTS, .call = item->call, .text = text});
		return;
	}
	if (item->early == NULL)
		item->early = arena_buf(r->arena, ARGUMENTS_MAX);
	buf_span(item->early, text);
}

void
responses_flow_call_end(struct flow_reader *r, struct responses_flow_item *item)
{
	if (item->done || item->kind != RESPONSES_FLOW_CALL)
		return;
	if (!item->spoken)
		responses_flow_arguments(r, item, item->first);
	item->done = true;
	if (item->named)
		responses_flow_give(r, &(struct flow){.kind = FLOW_CALL_END, .call = item->call});
}

static enum responses_flow_kind
kind_of(const struct scan_value *type, bool *custom)
{
	*custom = type->type == SCAN_STRING && scan_is(type->raw, "custom_tool_call");
	if (type->type != SCAN_STRING)
		return RESPONSES_FLOW_OTHER;
	if (scan_is(type->raw, "message"))
		return RESPONSES_FLOW_MESSAGE;
	if (scan_is(type->raw, "reasoning"))
		return RESPONSES_FLOW_REASONING;
	if (*custom || scan_is(type->raw, "function_call"))
		return RESPONSES_FLOW_CALL;
	return RESPONSES_FLOW_OTHER;
}

static bool
scan_item(const struct scan_value *object, struct scan_value v[ITEM__MAX])
{
	static struct scan_plan *plan;

	return object->type == SCAN_OBJECT &&
	       responses_scan(&plan, item_paths, ITEM__MAX, object->raw, v);
}

/* The first that tells counts: some hosts repeat a call without its name. */
static void
learn(struct flow_reader *r, struct span *field, const struct scan_value *v)
{
	if (field->n == 0)
		*field = arena_copy(r->arena, responses_string(r->arena, v));
}

static void
learn_call(struct flow_reader *r, struct responses_flow_item *item,
    const struct scan_value v[ITEM__MAX], bool custom)
{
	item->custom |= custom;
	learn(r, &item->call_id, &v[CALL_ID]);
	learn(r, &item->name, &v[NAME]);
	learn(r, &item->namespace, &v[NAMESPACE]);
	responses_flow_call(r, item);
}

void
responses_flow_begins(struct flow_reader *r, const struct scan_value *object, int64_t index)
{
	struct scan_value v[ITEM__MAX];
	struct responses_flow_item *item, *old;
	enum responses_flow_kind kind;
	struct span id;
	bool custom;

	if (!scan_item(object, v))
		return;
	kind = kind_of(&v[TYPE], &custom);
	id = responses_string(r->arena, &v[ID]);
	old = id.n > 0 ? look(r, id, -1) : NULL;
	if (old != NULL && old->kind == kind && old->index == index && !old->done)
		item = old; /* announced twice, or its pieces came first */
	else
		item = responses_flow_add(r, kind, id, index);
	if (kind != RESPONSES_FLOW_CALL)
		return;
	learn(r, &item->first, &v[custom ? INPUT : ARGUMENTS]);
	learn_call(r, item, v, custom);
}

/* The parts of a list that hold text, each as a part of its own. */
static void
say_list(struct flow_reader *r, struct responses_flow_item *item, const struct scan_value *list,
    enum flow_kind kind)
{
	struct scan_value part;
	struct span none;
	size_t at = 0;

	if (list->type != SCAN_ARRAY)
		return;
	for (int64_t i = 0; scan_next(list->raw, &at, &none, &part); i++) {
		struct scan_value text = responses_member(&part, "text");
		struct scan_value refusal = responses_member(&part, "refusal");
		struct scan_value cited = responses_member(&part, "annotations"), annotation;
		size_t next = 0;

		responses_flow_say(r, item, kind, responses_string(r->arena, &text), i);
		if (kind == FLOW_TEXT)
			responses_flow_say(
			    r, item, FLOW_REFUSAL, responses_string(r->arena, &refusal), i);
		if (cited.type == SCAN_ARRAY)
			while (scan_next(cited.raw, &next, &none, &annotation))
				responses_flow_cite(r, &annotation);
	}
}

/*
 * What its maker wants back ends the thought; where others spoke since, or where it has no words, it
 * stands by itself.
 */
static void
seal(struct flow_reader *r, const struct responses_flow_item *item, struct span payload)
{
	bool open = item->spoken && r->speaking == item;
	struct flow step = {.kind = open ? FLOW_SEAL : FLOW_REDACTED};

	if (payload.n == 0)
		return;
	step.text = seal_make(r->arena, FORM_RESPONSES, r->channel, payload);
	responses_flow_give(r, &step);
	r->speaking = NULL;
}

static void
end_thought(
    struct flow_reader *r, struct responses_flow_item *item, const struct scan_value v[ITEM__MAX])
{
	if (!item->spoken)
		say_list(r, item, &v[SUMMARY], FLOW_THOUGHT);
	if (!item->spoken)
		say_list(r, item, &v[CONTENT], FLOW_THOUGHT);
	seal(r, item, responses_string(r->arena, &v[ENCRYPTED]));
}

static void
end_call(struct flow_reader *r, struct responses_flow_item *item,
    const struct scan_value v[ITEM__MAX], bool custom)
{
	learn_call(r, item, v, custom);
	if (!item->spoken)
		responses_flow_arguments(
		    r, item, responses_string(r->arena, &v[custom ? INPUT : ARGUMENTS]));
	responses_flow_call_end(r, item);
}

void
responses_flow_ends(struct flow_reader *r, const struct scan_value *object, int64_t index)
{
	struct scan_value v[ITEM__MAX];
	struct responses_flow_item *item;
	enum responses_flow_kind kind;
	bool custom;

	if (!scan_item(object, v))
		return;
	kind = kind_of(&v[TYPE], &custom);
	item = responses_flow_find(r, kind, responses_string(r->arena, &v[ID]), index);
	if (item->done)
		return;
	switch (kind) {
	case RESPONSES_FLOW_MESSAGE:
		if (!item->spoken)
			say_list(r, item, &v[CONTENT], FLOW_TEXT);
		break;
	case RESPONSES_FLOW_REASONING: end_thought(r, item, v); break;
	case RESPONSES_FLOW_CALL: end_call(r, item, v, custom); break;
	case RESPONSES_FLOW_OTHER: break;
	}
	item->done = true;
}
