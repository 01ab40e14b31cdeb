#include "dialect/chat_calls.h"

#include "base/lex.h"
#include "dialect/chat_id.h"

#define CALLS_MAX 4096
#define TEXT_MAX ((size_t)1 << 31)
#define NO_INDEX (-1)
#define OLD_INDEX (-2) /* function_call */

/* Follows JSON text, just enough to know when its outermost object is over. */
struct whole {
	size_t depth;
	bool string, escape, over;
};

struct call {
	int64_t index;
	struct span id, name;
	size_t number;    /* among those that were given out */
	struct buf *held; /* arguments that came before the name */
	struct whole whole;
	bool custom, begun, ended;
};

struct chat_calls {
	struct arena *arena;
	struct call *list;
	size_t n, cap, begun;
	struct buf *scratch;
};

/* What one entry says. */
struct entry {
	struct scan_value index, id, name, arguments;
	bool custom;
};

/* Where steps go. */
struct way {
	struct chat_calls *c;
	struct span answer;
	flow_sink_fn *sink;
	void *arg;
};

struct chat_calls *
chat_calls_new(struct arena *arena)
{
	struct chat_calls *c = arena_alloc(arena, sizeof *c);

	c->arena = arena;
	c->scratch = arena_buf(arena, TEXT_MAX);
	return c;
}

size_t
chat_calls_count(const struct chat_calls *c)
{
	return c->begun;
}

struct span
chat_calls_text(struct buf *scratch, const struct scan_value *value)
{
	struct span rest = {value->raw.p + 1, value->raw.n - 2};

	if (value->type != SCAN_STRING)
		return (struct span){"", 0};
	if (rest.n == 0 || memchr(rest.p, '\\', rest.n) == NULL)
		return rest;
	buf_clear(scratch);
	while (rest.n > 0) {
		size_t used = text_find(rest, SPAN("\\"));
		char four[4];

		buf_add(scratch, rest.p, used);
		rest = text_from(rest, used);
		if (rest.n > 0) {
			buf_add(scratch, four, lex_unescape(rest, four, &used));
			rest = text_from(rest, used);
		}
	}
	return buf_text(scratch);
}

static void
follow(struct whole *w, struct span text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (w->escape) {
			w->escape = false;
		} else if (w->string) {
			w->escape = c == '\\';
			w->string = c != '"';
		} else if (c == '"') {
			w->string = true;
		} else if (c == '{' || c == '[') {
			w->depth++;
		} else if ((c == '}' || c == ']') && w->depth > 0) {
			w->over = --w->depth == 0;
		}
	}
}

static struct call *
new_call(struct chat_calls *c, int64_t index, bool custom)
{
	if (c->n == CALLS_MAX)
		return NULL;
	if (c->n == c->cap) {
		size_t cap = c->cap == 0 ? 4 : c->cap * 2;
		struct call *list = arena_alloc(c->arena, cap * sizeof *list);

		if (c->n > 0)
			memcpy(list, c->list, c->n * sizeof *list);
		c->list = list;
		c->cap = cap;
	}
	c->list[c->n] = (struct call){.index = index, .custom = custom};
	return &c->list[c->n++];
}

/* The newest that fits: hosts that say index 0 for every call mean the last one. */
static struct call *
by_index(struct chat_calls *c, int64_t index)
{
	for (size_t i = c->n; i > 0; i--)
		if (c->list[i - 1].index == index)
			return &c->list[i - 1];
	return NULL;
}

static struct call *
by_id(struct chat_calls *c, struct span id)
{
	for (size_t i = c->n; i > 0; i--)
		if (c->list[i - 1].id.n > 0 && text_equal(c->list[i - 1].id, id))
			return &c->list[i - 1];
	return NULL;
}

static bool
is_text(const struct scan_value *v)
{
	return v->type == SCAN_STRING && v->raw.n > 2;
}

/* Another id together with a name is another call. */
static bool
is_other(struct chat_calls *c, const struct call *call, const struct entry *e)
{
	return is_text(&e->id) && is_text(&e->name) && call->id.n > 0 &&
	       !text_equal(call->id, chat_calls_text(c->scratch, &e->id));
}

/* A name again, without index or id: the same call as long as its arguments are not whole. */
static bool
is_same(struct chat_calls *c, const struct call *call, const struct entry *e)
{
	if (!is_text(&e->name))
		return true;
	return !call->whole.over && text_equal(call->name, chat_calls_text(c->scratch, &e->name));
}

static struct call *
find_by_id(struct chat_calls *c, const struct entry *e)
{
	struct call *call = by_id(c, chat_calls_text(c->scratch, &e->id));

	if (call == NULL && !is_text(&e->name) && c->n > 0 && c->list[c->n - 1].id.n == 0)
		call = &c->list[c->n - 1]; /* the id comes late */
	return call;
}

static struct call *
find_by_place(struct chat_calls *c, const struct entry *e, size_t place, bool alone)
{
	struct call *call = NULL;

	if (!alone && place < c->n)
		call = &c->list[place];
	else if (alone && c->n > 0)
		call = &c->list[c->n - 1];
	return call == NULL || !is_same(c, call, e) ? NULL : call;
}

static struct call *
find_call(struct chat_calls *c, const struct entry *e, size_t place, bool alone)
{
	struct call *call;
	int64_t index;

	if (scan_i64(&e->index, 0, INT32_MAX, &index)) {
		call = by_index(c, index);
		return call == NULL || is_other(c, call, e) ? new_call(c, index, e->custom) : call;
	}
	call = is_text(&e->id) ? find_by_id(c, e) : find_by_place(c, e, place, alone);
	return call == NULL ? new_call(c, NO_INDEX, e->custom) : call;
}

static void
end_call(struct way *way, struct call *call)
{
	if (!call->begun || call->ended)
		return;
	call->ended = true;
	way->sink(way->arg, &(struct flow){.kind = FLOW_CALL_END, .call = call->number});
}

static bool
is_taken(const struct chat_calls *c, const struct call *call)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i].begun && text_equal(c->list[i].id, call->id))
			return true;
	return false;
}

static void
give_arguments(struct way *way, struct call *call, struct span text)
{
	if (text.n == 0 || call->ended)
		return;
	if (!call->custom)
		follow(&call->whole, text);
	way->sink(
	    way->arg, &(struct flow){.kind = FLOW_ARGUMENTS, .call = call->number, .text = text});
}

static void
begin_call(struct way *way, struct call *call)
{
	struct chat_calls *c = way->c;
	bool made;

	if (call->begun || call->name.n == 0)
		return;
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i].whole.over)
			end_call(way, &c->list[i]);
	made = call->id.n == 0 || is_taken(c, call);
	if (made)
		call->id = chat_id_make(c->arena, way->answer, c->begun, call->name);
	call->begun = true;
	call->number = c->begun++;
	way->sink(way->arg, &(struct flow){.kind = FLOW_CALL,
	                        .call = call->number,
	                        .id = call->id,
	                        .name = call->name,
	                        .custom = call->custom,
	                        .made = made});
	if (call->held != NULL)
		give_arguments(way, call, buf_text(call->held));
}

/* The object itself where a host does not make a string of it. */
static struct span
arguments_of(struct chat_calls *c, const struct entry *e)
{
	return e->arguments.type == SCAN_OBJECT ? e->arguments.raw
	                                        : chat_calls_text(c->scratch, &e->arguments);
}

/* The first id and the first name count. */
static void
learn(struct chat_calls *c, struct call *call, const struct entry *e)
{
	if (call->id.n == 0 && is_text(&e->id))
		call->id = arena_copy(c->arena, chat_calls_text(c->scratch, &e->id));
	if (call->name.n == 0 && is_text(&e->name))
		call->name = arena_copy(c->arena, chat_calls_text(c->scratch, &e->name));
}

static void
hold(struct chat_calls *c, struct call *call, struct span text)
{
	if (call->held == NULL)
		call->held = arena_buf(c->arena, TEXT_MAX);
	buf_span(call->held, text);
}

static void
add_entry(struct way *way, const struct entry *e, size_t place, bool alone)
{
	struct chat_calls *c = way->c;
	size_t before = c->n;
	struct call *call = find_call(c, e, place, alone);
	bool again = c->n == before;

	if (call == NULL)
		return;
	learn(c, call, e);
	/* no id will come any more once arguments do */
	if (call->id.n > 0 || again || arguments_of(c, e).n > 0)
		begin_call(way, call);
	if (call->begun)
		give_arguments(way, call, arguments_of(c, e));
	else
		hold(c, call, arguments_of(c, e));
}

static void
read_function(const struct scan_value *function, struct entry *e)
{
	struct scan_value value;
	struct span name;
	size_t at = 0;

	if (function->type != SCAN_OBJECT)
		return;
	while (scan_next(function->raw, &at, &name, &value)) {
		if (scan_is(name, "name"))
			e->name = value;
		else if (scan_is(name, e->custom ? "input" : "arguments"))
			e->arguments = value;
	}
}

static void
read_entry(const struct scan_value *value, struct entry *e)
{
	struct scan_value member;
	struct span name;
	size_t at = 0;

	*e = (struct entry){.custom = false};
	while (scan_next(value->raw, &at, &name, &member)) {
		if (scan_is(name, "index")) {
			e->index = member;
		} else if (scan_is(name, "id")) {
			e->id = member;
		} else if (scan_is(name, "function")) {
			read_function(&member, e);
		} else if (scan_is(name, "custom") && member.type == SCAN_OBJECT) {
			e->custom = true;
			read_function(&member, e);
		}
	}
}

void
chat_calls_add(struct chat_calls *c, const struct scan_value *list, struct span answer,
    flow_sink_fn *sink, void *arg)
{
	struct way way = {c, answer, sink, arg};
	struct scan_value value, second;
	struct span none;
	size_t at = 0;
	bool alone;

	if (list->type != SCAN_ARRAY || !scan_next(list->raw, &at, &none, &value))
		return;
	alone = !scan_next(list->raw, &at, &none, &second);
	at = 0;
	for (size_t place = 0; scan_next(list->raw, &at, &none, &value); place++) {
		struct entry e;

		if (value.type != SCAN_OBJECT)
			continue;
		read_entry(&value, &e);
		add_entry(&way, &e, place, alone);
	}
}

void
chat_calls_old(struct chat_calls *c, const struct scan_value *function, struct span answer,
    flow_sink_fn *sink, void *arg)
{
	struct way way = {c, answer, sink, arg};
	struct entry e = {.custom = false};
	struct call *call;

	read_function(function, &e);
	call = by_index(c, OLD_INDEX);
	if (call == NULL)
		call = new_call(c, OLD_INDEX, false);
	if (call == NULL)
		return;
	if (call->name.n == 0 && is_text(&e.name))
		call->name = arena_copy(c->arena, chat_calls_text(c->scratch, &e.name));
	begin_call(&way, call);
	if (call->begun)
		give_arguments(&way, call, arguments_of(c, &e));
}

void
chat_calls_end(struct chat_calls *c, struct span answer, flow_sink_fn *sink, void *arg)
{
	struct way way = {c, answer, sink, arg};

	for (size_t i = 0; i < c->n; i++)
		begin_call(&way, &c->list[i]);
	for (size_t i = 0; i < c->n; i++)
		end_call(&way, &c->list[i]);
}
