/*
 * What scan accepts must be JSON for json-c, too; every value lies within the text and is JSON of its type by itself;
 * the walk over members ends. What emit writes of any bytes is a string that scan reads back.
 */
#include "base/emit.h"
#include "base/scan.h"

#include <json-c/json.h>

#define ARENA_BYTES ((size_t)1 << 26)
#define MUST(condition) ((condition) ? (void)0 : die("%s", #condition))

static const char *const paths[] = {"model", "stream", "a", "a.b", "a.0", "0", "1.a",
    "messages.0.content", "stream_options.include_usage", "", "choices.0.delta.content"};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
check_peer(struct span text)
{
	struct json_tokener *tokener = json_tokener_new_ex(SCAN_DEPTH_MAX + 2);
	struct json_object *object;

	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text.p, (int)text.n);
	if (json_tokener_get_error(tokener) == json_tokener_continue)
		object = json_tokener_parse_ex(tokener, "", 1);
	MUST(json_tokener_get_error(tokener) == json_tokener_success);
	json_object_put(object);
	json_tokener_free(tokener);
}

static void
check_value(struct arena *arena, const struct scan_value *value)
{
	struct span name;
	struct scan_value member;
	size_t at = 0;
	int64_t v;

	if (value->type == SCAN_ABSENT)
		return;
	MUST(scan_pick(value->raw, NULL, NULL, 0, NULL) == ERR_OK);
	MUST(text_equal(value->raw, text_trim(value->raw)));
	if (value->type == SCAN_STRING)
		MUST(text_utf8(scan_string(arena, value->raw)));
	(void)scan_i64(value, INT64_MIN, INT64_MAX, &v);
	while (scan_next(value->raw, &at, &name, &member)) {
		MUST(scan_pick(member.raw, NULL, NULL, 0, NULL) == ERR_OK);
		MUST(member.raw.p >= value->raw.p);
		MUST(member.raw.p + member.raw.n < value->raw.p + value->raw.n);
		if (value->type == SCAN_OBJECT)
			MUST(scan_pick(name, NULL, NULL, 0, NULL) == ERR_OK && name.p[0] == '"');
	}
}

static void
check_emit(struct arena *arena, struct span bytes)
{
	struct buf *b = arena_buf(arena, ARENA_BYTES);

	emit_quoted(b, bytes);
	MUST(scan_pick(buf_text(b), NULL, NULL, 0, NULL) == ERR_OK);
	if (text_utf8(bytes))
		MUST(text_equal(scan_string(arena, buf_text(b)), bytes));
}

/* Bytes that were never checked: nothing may be read beyond, and the walk ends. */
static void
check_unchecked(struct arena *arena, struct span text)
{
	struct span name;
	struct scan_value member;
	size_t at = 0, rounds = 0;

	while (scan_next(text, &at, &name, &member))
		MUST(++rounds <= text.n);
	(void)scan_string(arena, text);
	(void)scan_is(text, "model");
	MUST(scan_items(text, SIZE_MAX - 1) <= text.n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct scan_value values[NELEM(paths)], whole;
	struct arena *arena = arena_new(ARENA_BYTES);
	struct span text = {(const char *)bytes, n};
	struct why why = {""};

	check_emit(arena, text);
	check_unchecked(arena, text);
	if (scan_pick(text, NULL, NULL, 0, &why) == ERR_OK) {
		check_peer(text);
		whole = (struct scan_value){SCAN_ARRAY, text_trim(text)};
		if (whole.raw.p[0] == '{')
			whole.type = SCAN_OBJECT;
		check_value(arena, &whole);
	} else {
		MUST(why.text[0] != '\0');
	}
	if (scan_pick(text, paths, values, NELEM(paths), NULL) == ERR_OK)
		for (size_t i = 0; i < NELEM(paths); i++)
			check_value(arena, &values[i]);
	arena_free(&arena);
	return 0;
}
