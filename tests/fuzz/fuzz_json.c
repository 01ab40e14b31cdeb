/*
 * Any bytes: refused, or a document in which every reader works at every node.
 */
#include "base/json.h"

#define ARENA_BYTES ((size_t)1 << 26)
#define MUST(condition) ((condition) ? (void)0 : die("%s", #condition))

static const char *const paths[] = {"", "error", "error.message", "error.details.0.retryDelay", "0",
    "0.0.0", "usage.total_tokens", ".", "a..b", "code"};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
read_all(const struct json *node)
{
	for (size_t i = 0; i < NELEM(paths); i++) {
		struct span text;
		int64_t whole;
		double real;

		if (json_text(node, paths[i], &text))
			MUST(text_utf8(text));
		if (json_i64(node, paths[i], &whole))
			MUST(json_real(node, paths[i], &real));
		(void)json_real(node, paths[i], &real);
	}
}

static bool
visit(struct span name, const struct json *value, void *arg)
{
	size_t *count = arg;

	MUST(text_utf8(name));
	read_all(value);
	return ++*count < 1000;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	const struct json *doc = NULL;
	struct why why = {""};
	size_t count = 0;

	if (json_parse(arena, (struct span){(const char *)bytes, n}, &doc, &why) == ERR_OK) {
		read_all(doc);
		json_each(doc, visit, &count);
		for (size_t i = 0; i < json_count(doc); i++)
			read_all(json_item(doc, i));
	} else {
		MUST(why.text[0] != '\0');
	}
	arena_free(&arena);
	return 0;
}
