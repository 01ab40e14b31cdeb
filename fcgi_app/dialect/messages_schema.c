#include "dialect/messages_writer.h"

#include "dialect/value.h"

#include <stdlib.h>

/*
 * The root of a tool's schema must be of type "object", without anyOf, oneOf and allOf (formats.md
 * C.5). Alternatives become one object with the properties of all; deeper down nothing changes.
 */
static const char *const unions[] = {"allOf", "anyOf", "oneOf"};

struct property {
	struct span name, value; /* raw */
	size_t place;
};

struct merged {
	struct arena *arena;
	struct property *list;
	size_t n, cap;
};

static void
add_properties(struct merged *m, const struct scan_value *schema)
{
	struct scan_value properties = value_member(schema, "properties"), v;
	struct span key;
	size_t at = 0;

	if (properties.type != SCAN_OBJECT)
		return;
	while (scan_next(properties.raw, &at, &key, &v)) {
		if (m->n == m->cap) {
			size_t cap = m->cap == 0 ? 16 : m->cap * 2;
			struct property *list = arena_alloc(m->arena, cap * sizeof *list);

			for (size_t i = 0; i < m->n; i++)
				list[i] = m->list[i];
			m->list = list;
			m->cap = cap;
		}
		m->list[m->n] = (struct property){key, v.raw, m->n};
		m->n++;
	}
}

/* "#/$defs/Name" in the schema itself; other references stay unknown. */
static struct scan_value
resolve(const struct messages_writer *w, const struct scan_value *root, struct scan_value v)
{
	struct scan_value ref = value_member(&v, "$ref");
	struct span path, token;

	if (ref.type != SCAN_STRING)
		return v;
	path = scan_string(w->arena, ref.raw);
	if (!text_starts(path, "#/"))
		return v;
	path = text_from(path, 2);
	v = *root;
	while (text_token(&path, "/", &token))
		v = value_member(&v, arena_z(w->arena, token));
	return v;
}

static int
by_name(const void *left, const void *right)
{
	const struct property *a = left, *b = right;
	size_t n = a->name.n < b->name.n ? a->name.n : b->name.n;
	int order = memcmp(a->name.p, b->name.p, n);

	if (order != 0)
		return order;
	if (a->name.n != b->name.n)
		return a->name.n > b->name.n ? 1 : -1;
	return (a->place > b->place) - (a->place < b->place);
}

static int
by_place(const void *left, const void *right)
{
	const struct property *a = left, *b = right;

	return (a->place > b->place) - (a->place < b->place);
}

/* The first of a name stays, in the order of appearance. */
static void
drop_repeated(struct merged *m)
{
	size_t kept = 0;

	if (m->n == 0)
		return;
	qsort(m->list, m->n, sizeof *m->list, by_name);
	for (size_t i = 0; i < m->n; i++)
		if (kept == 0 || !text_equal(m->list[kept - 1].name, m->list[i].name))
			m->list[kept++] = m->list[i];
	m->n = kept;
	qsort(m->list, m->n, sizeof *m->list, by_place);
}

static void
put_required(struct buf *out, const struct scan_value *schema)
{
	struct scan_value required = value_member(schema, "required"), v;
	struct span none;
	size_t at = 0;

	if (required.type != SCAN_ARRAY)
		return;
	while (scan_next(required.raw, &at, &none, &v)) {
		if (out->n > 0)
			buf_char(out, ',');
		buf_span(out, v.raw);
	}
}

static void
write_merged(struct messages_writer *w, const struct scan_value *root)
{
	struct merged m = {.arena = w->arena};
	struct buf *required = arena_buf(w->arena, SIZE_MAX / 4);

	add_properties(&m, root);
	put_required(required, root);
	for (size_t i = 0; i < NELEM(unions); i++) {
		struct scan_value list = value_member(root, unions[i]), v;
		struct span none;
		size_t at = 0;

		if (list.type != SCAN_ARRAY)
			continue;
		while (scan_next(list.raw, &at, &none, &v)) {
			v = resolve(w, root, v);
			add_properties(&m, &v);
			if (i == 0)
				put_required(required, &v);
		}
	}
	drop_repeated(&m);
	buf_z(w->e.out, ",\"properties\":{");
	for (size_t i = 0; i < m.n; i++) {
		if (i > 0)
			buf_char(w->e.out, ',');
		buf_span(w->e.out, m.list[i].name);
		buf_char(w->e.out, ':');
		buf_span(w->e.out, m.list[i].value);
	}
	buf_char(w->e.out, '}');
	if (required->n > 0) {
		buf_z(w->e.out, ",\"required\":[");
		buf_span(w->e.out, buf_text(required));
		buf_char(w->e.out, ']');
	}
}

static bool
is_one_of(struct span key, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (scan_is(key, names[i]))
			return true;
	return false;
}

bool
messages_schema_write(struct messages_writer *w, struct span schema)
{
	static const char *const replaced[] = {
	    "type", "allOf", "anyOf", "oneOf", "properties", "required"};
	struct scan_value root = {SCAN_OBJECT, text_trim(schema)}, v;
	struct scan_value type;
	bool merge = false;
	struct span key;
	size_t at = 0;

	if (!text_starts(root.raw, "{")) {
		emit_raw(&w->e, "input_schema", SPAN("{\"type\":\"object\",\"properties\":{}}"));
		return false;
	}
	type = value_member(&root, "type");
	while (scan_next(root.raw, &at, &key, &v))
		merge |= v.type == SCAN_ARRAY && is_one_of(key, unions, NELEM(unions));
	if (!merge && type.type == SCAN_STRING && scan_is(type.raw, "object")) {
		emit_raw(&w->e, "input_schema", root.raw);
		return false;
	}
	emit_raw(&w->e, "input_schema", SPAN("{\"type\":\"object\""));
	for (at = 0; scan_next(root.raw, &at, &key, &v);) {
		if (is_one_of(key, replaced, merge ? NELEM(replaced) : 1))
			continue;
		buf_char(w->e.out, ',');
		buf_span(w->e.out, key);
		buf_char(w->e.out, ':');
		buf_span(w->e.out, v.raw);
	}
	if (merge)
		write_merged(w, &root);
	buf_char(w->e.out, '}');
	return merge;
}
