#include "base/json.h"

#include "base/scan.h"

#include <json-c/json.h>

#include <limits.h>
#include <math.h>
#include <string.h>

#define NAME_MAX_BYTES 128

/* struct json is never defined: a node is json-c's object under another name. */
static struct json_object *
object_of(const struct json *node)
{
	return (struct json_object *)(uintptr_t)node;
}

static const struct json *
node_of(const struct json_object *object)
{
	return (const struct json *)(const void *)object;
}

static void
put_object(void *object)
{
	json_object_put(object);
}

enum err
json_parse(struct arena *arena, struct span text, const struct json **doc_out, struct why *why)
{
	struct json_tokener *tokener;
	struct json_object *object;
	enum json_tokener_error error;
	enum err err;

	if (text.n > INT_MAX) {
		err_why(why, "more than %d bytes of JSON", INT_MAX);
		return ERR_TOO_BIG;
	}
	/* json-c lets through NaN, "1." and raw control characters even when strict */
	err = scan_pick(text, NULL, NULL, 0, why);
	if (err != ERR_OK)
		return err;
	tokener = json_tokener_new_ex(SCAN_DEPTH_MAX + 2);
	if (tokener == NULL)
		die("no memory for a JSON reader");
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text.p, (int)text.n);
	error = json_tokener_get_error(tokener);
	if (error == json_tokener_continue) { /* a number at the top may go on until a NUL */
		object = json_tokener_parse_ex(tokener, "", 1);
		error = json_tokener_get_error(tokener);
	}
	json_tokener_free(tokener);
	if (error != json_tokener_success) {
		json_object_put(object);
		err_why(why, "%s", json_tokener_error_desc(error));
		return ERR_BAD_INPUT;
	}
	arena_defer(arena, put_object, object);
	*doc_out = node_of(object);
	return ERR_OK;
}

static const struct json *
step(const struct json *node, struct span name)
{
	struct json_object *next = NULL;
	char z[NAME_MAX_BYTES];
	int64_t i;

	if (json_is_array(node))
		return text_i64(name, 0, INT_MAX, &i) ? json_item(node, (size_t)i) : NULL;
	if (!json_is_object(node) || name.n >= sizeof z)
		return NULL;
	memcpy(z, name.p, name.n);
	z[name.n] = '\0';
	json_object_object_get_ex(object_of(node), z, &next);
	return node_of(next);
}

const struct json *
json_at(const struct json *node, const char *path)
{
	const char *p = path;

	if (*p == '\0')
		return node;
	for (;; p++) {
		struct span name = {p, strcspn(p, ".")};

		node = step(node, name);
		p += name.n;
		if (node == NULL || *p == '\0')
			return node;
	}
}

const struct json *
json_pointer(const struct json *node, struct span pointer)
{
	while (node != NULL && pointer.n > 0) {
		struct span rest = text_from(pointer, 1);
		struct span token = {rest.p, text_find(rest, SPAN("/"))};
		char name[NAME_MAX_BYTES];
		size_t n = 0;

		if (pointer.p[0] != '/' || token.n >= sizeof name)
			return NULL;
		for (size_t i = 0; i < token.n; i++) {
			bool escaped = token.p[i] == '~' && i + 1 < token.n;

			name[n++] = !escaped ? token.p[i] : token.p[++i] == '1' ? '/' : '~';
		}
		node = step(node, (struct span){name, n});
		pointer = text_from(rest, token.n);
	}
	return node;
}

static struct span
text_of(const struct json *node)
{
	struct json_object *object = object_of(node);

	return (struct span){
	    json_object_get_string(object), (size_t)json_object_get_string_len(object)};
}

bool
json_text(const struct json *node, const char *path, struct span *out)
{
	node = json_at(node, path);
	if (!json_object_is_type(object_of(node), json_type_string))
		return false;
	*out = text_of(node);
	return true;
}

/* A number as it was written, or what a string holds; whole numbers beyond 64 bits stand clamped, see json_i64(). */
static bool
spelling(const struct json *node, struct span *out)
{
	switch (json_object_get_type(object_of(node))) {
	case json_type_string: *out = text_of(node); return true;
	case json_type_double:
	case json_type_int:
		*out = text_span(
		    json_object_to_json_string_ext(object_of(node), JSON_C_TO_STRING_PLAIN));
		return true;
	case json_type_null:
	case json_type_boolean:
	case json_type_object:
	case json_type_array: return false;
	}
	return false;
}

bool
json_i64(const struct json *node, const char *path, int64_t *out)
{
	struct scan_value value = {.type = SCAN_NUMBER};

	if (!spelling(json_at(node, path), &value.raw))
		return false;
	/* the minimum is what json-c makes of everything below; what is above the maximum stays above it */
	return scan_i64(&value, INT64_MIN + 1, INT64_MAX, out);
}

bool
json_real(const struct json *node, const char *path, double *out)
{
	struct span text;
	double v;

	node = json_at(node, path);
	if (!spelling(node, &text) || text.n == 0 || scan_pick(text, NULL, NULL, 0, NULL) != ERR_OK)
		return false;
	if (strchr("-0123456789", text.p[0]) == NULL || text.p[text.n - 1] < '0')
		return false;
	v = json_object_get_double(object_of(node));
	if (!isfinite(v))
		return false;
	*out = v;
	return true;
}

bool
json_true(const struct json *node, const char *path)
{
	struct json_object *object = object_of(json_at(node, path));

	return json_object_is_type(object, json_type_boolean) && json_object_get_boolean(object);
}

bool
json_is_object(const struct json *node)
{
	return json_object_is_type(object_of(node), json_type_object);
}

bool
json_is_array(const struct json *node)
{
	return json_object_is_type(object_of(node), json_type_array);
}

size_t
json_count(const struct json *node)
{
	return json_is_array(node) ? json_object_array_length(object_of(node)) : 0;
}

const struct json *
json_item(const struct json *array, size_t i)
{
	return i < json_count(array) ? node_of(json_object_array_get_idx(object_of(array), i))
	                             : NULL;
}

void
json_each(const struct json *object,
    bool (*fn)(struct span name, const struct json *value, void *arg), void *arg)
{
	struct json_object_iterator i, end;

	if (!json_is_object(object))
		return;
	i = json_object_iter_begin(object_of(object));
	end = json_object_iter_end(object_of(object));
	for (; !json_object_iter_equal(&i, &end); json_object_iter_next(&i)) {
		struct span name = text_span(json_object_iter_peek_name(&i));

		if (!fn(name, node_of(json_object_iter_peek_value(&i)), arg))
			return;
	}
}
