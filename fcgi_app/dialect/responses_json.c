#include "dialect/responses.h"

#include "base/digest.h"
#include "dialect/openai.h"
#include "dialect/value.h"

#include <string.h>

#define TOKENS_MAX (INT64_C(1) << 40)
#define ID_HEX 32
#define NAME_MAX_BYTES 128

bool
responses_scan(struct scan_plan **plan, const char *const *paths, size_t n, struct span text,
    struct scan_value *values_out)
{
	if (*plan == NULL) {
		*plan = scan_plan_new(paths, n);
		scan_plan_lax(*plan);
	}
	return scan_run(*plan, text, values_out, NULL) == ERR_OK;
}

struct scan_value
responses_member(const struct scan_value *object, const char *name)
{
	struct scan_value found = value_member(object, name);

	if (found.type == SCAN_NULL)
		found.type = SCAN_ABSENT;
	return found;
}

struct span
responses_string(struct arena *arena, const struct scan_value *value)
{
	if (value->type != SCAN_STRING)
		return (struct span){"", 0};
	return scan_string(arena, value->raw);
}

void
responses_usage(const struct scan_value *object, struct dialect_usage *usage)
{
	static const char *const paths[] = {"input_tokens_details.cached_tokens",
	    "input_tokens_details.cache_write_tokens", "output_tokens_details.reasoning_tokens"};
	static struct scan_plan *plan;
	struct scan_value v[NELEM(paths)];

	if (object->type != SCAN_OBJECT)
		return;
	openai_usage(object, usage);
	if (!responses_scan(&plan, paths, NELEM(paths), object->raw, v))
		return;
	scan_i64(&v[0], 0, TOKENS_MAX, &usage->cached);
	scan_i64(&v[1], 0, TOKENS_MAX, &usage->cache_write);
	scan_i64(&v[2], 0, TOKENS_MAX, &usage->reasoning);
}

struct span
responses_id(struct arena *arena, const char *prefix, struct span seed, size_t n)
{
	const char *text = arena_print(arena, "%.*s/%s%zu", (int)seed.n, seed.p, prefix, n);
	size_t head = strlen(prefix);
	char *id = arena_alloc(arena, head + ID_HEX + 1);

	memcpy(id, prefix, head);
	digest_hex(text_span(text), ID_HEX, id + head);
	return (struct span){id, head + ID_HEX};
}

struct span
responses_tool_name(struct arena *arena, struct span name, struct span namespace)
{
	if (namespace.n > 0)
		name = text_span(
		    arena_join(arena, (const struct span[]){namespace, SPAN("__"), name}, 3));
	return form_tool_name(arena, name, NAME_MAX_BYTES);
}
