#include "dialect/tokens_tools.h"

#include "base/scan.h"

#define TOOL_O200K 7
#define TOOL_CL100K 10
#define TOOLS 12 /* once */
#define TOOLS_CLAUDE 346
#define PROPERTIES 3 /* once a tool */
#define PROPERTY 3
#define ENUM (-3)
#define VALUE 3 /* of an enum */

struct sum {
	const struct tokens_model *model;
	struct arena *arena;
	struct tokens_tools of;
};

static void
add_text(struct sum *s, struct span text)
{
	s->of.hundredths += tokens_hundredths(s->model, text);
}

/* Blanks between JSON's values mean nothing. */
static struct span
compact(struct arena *arena, struct span json)
{
	char *out = arena_alloc(arena, json.n + 1);
	bool quoted = false;
	size_t n = 0;

	for (size_t i = 0; i < json.n; i++) {
		char c = json.p[i];

		if (!quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n'))
			continue;
		out[n++] = c;
		if (quoted && c == '\\' && i + 1 < json.n)
			out[n++] = json.p[++i];
		else if (c == '"')
			quoted = !quoted;
	}
	return (struct span){out, n};
}

static void
add_json(struct sum *s, struct span json)
{
	s->of.hundredths += tokens_hundredths(s->model, compact(s->arena, json)) * 9 / 10;
}

/* "get_weather:Tells the weather": a full stop at the end is left out. */
static void
add_line(struct sum *s, const struct span *words, size_t n)
{
	struct buf *line = arena_buf(s->arena, SIZE_MAX / 2);

	for (size_t i = 0; i < n; i++) {
		struct span word = words[i];

		if (i + 1 == n && text_ends(word, "."))
			word.n--;
		if (i > 0)
			buf_char(line, ':');
		buf_span(line, word);
	}
	add_text(s, buf_text(line));
}

/* The last member of that name; SCAN_ABSENT. */
static struct scan_value
member(struct span object, const char *name)
{
	struct scan_value found = {.type = SCAN_ABSENT}, value;
	struct span key;

	for (size_t at = 0; scan_next(object, &at, &key, &value);)
		if (scan_is(key, name))
			found = value;
	return found;
}

static struct span
string(struct sum *s, const struct scan_value *value)
{
	return value->type == SCAN_STRING ? scan_string(s->arena, value->raw) : SPAN("");
}

static bool
is_nested(struct span property)
{
	static const char *const names[] = {
	    "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs"};
	struct scan_value value;
	struct span key;

	for (size_t at = 0; scan_next(property, &at, &key, &value);)
		for (size_t i = 0; i < NELEM(names); i++)
			if (scan_is(key, names[i]))
				return true;
	return false;
}

static void
add_values(struct sum *s, struct span list)
{
	struct scan_value value;
	struct span key;

	s->of.tokens += ENUM;
	for (size_t at = 0; scan_next(list, &at, &key, &value);) {
		s->of.tokens += VALUE;
		add_text(s, value.type == SCAN_STRING ? string(s, &value) : value.raw);
	}
}

static void
add_property(struct sum *s, struct span name, const struct scan_value *property)
{
	struct scan_value type, description, values;
	struct span raw = property->raw;

	s->of.tokens += PROPERTY;
	if (property->type != SCAN_OBJECT || is_nested(raw)) {
		add_text(s, name);
		add_json(s, raw);
		return;
	}
	type = member(raw, "type");
	description = member(raw, "description");
	values = member(raw, "enum");
	if (values.type == SCAN_ARRAY)
		add_values(s, values.raw);
	add_line(s, (const struct span[]){name, string(s, &type), string(s, &description)}, 3);
}

/* As OpenAI writes a function out; what is no plain object of properties counts as JSON. */
static void
add_function(struct sum *s, const struct form_tool *tool)
{
	struct scan_value properties = member(tool->schema, "properties"), value;
	struct span key;
	size_t at = 0;

	add_line(s, (const struct span[]){tool->name, tool->description}, 2);
	if (properties.type != SCAN_OBJECT) {
		add_json(s, tool->schema);
		return;
	}
	if (scan_next(properties.raw, &at, &key, &value))
		s->of.tokens += PROPERTIES;
	for (at = 0; scan_next(properties.raw, &at, &key, &value);)
		add_property(s, scan_string(s->arena, key), &value);
}

static void
add_tool(struct sum *s, const struct form_tool *tool)
{
	s->of.tokens += s->model->by.table == ESTIMATE_CL100K ? TOOL_CL100K : TOOL_O200K;
	if (s->model->by.openai && tool->kind == FORM_FUNCTION) {
		add_function(s, tool);
		return;
	}
	add_text(s, tool->name);
	add_text(s, tool->description);
	add_json(s, tool->schema);
	add_json(s, tool->format);
	add_json(s, tool->raw);
}

struct tokens_tools
tokens_tools(const struct tokens_model *model, const struct form *form)
{
	struct sum s = {.model = model};

	if (form->ntools == 0 && form->schema.n == 0)
		return s.of;
	s.arena = arena_new(SIZE_MAX / 2);
	if (form->ntools > 0)
		s.of.tokens += model->by.claude ? TOOLS_CLAUDE : TOOLS;
	for (size_t i = 0; i < form->ntools; i++)
		add_tool(&s, &form->tools[i]);
	add_json(&s, form->schema);
	arena_free(&s.arena);
	return s.of;
}
