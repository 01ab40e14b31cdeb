/*
 * json - small JSON documents as a tree, over json-c; the only file that includes it.
 *
 * For error bodies and the like: hostile, short, of any shape. Wrong type = absent. What a client sent is never
 * re-serialised from here: json-c changes big integers (style.md 8.7).
 *
 * Paths     dotted names and indexes: "error.details.0.retryDelay"
 * Memory    everything returned borrows from the document, which ends with the arena
 * Null      is like absent: NULL, also as the whole document
 * Numbers   json-c clamps integers beyond 64 bits: json_i64() refuses them (and INT64_MIN), json_real() does not see it
 * Errors    ERR_TOO_BIG more than INT_MAX bytes
 *           ERR_BAD_INPUT not strict JSON, invalid UTF-8, deeper than 256
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"

struct json;

enum err json_parse(
    struct arena *arena, struct span text, const struct json **doc_out, struct why *why) MUST_CHECK;

/* The node at `path`, or NULL. `node` may be NULL. */
const struct json *json_at(const struct json *node, const char *path);
/* The node at a JSON pointer such as "/data/0/a~1b" (RFC 6901), or NULL. */
const struct json *json_pointer(const struct json *node, struct span pointer);
/* A string at `path`; false if absent or of another type. An empty path is the node itself. */
bool json_text(const struct json *node, const char *path, struct span *out);
/* A whole number: 12, 12.0 or "12". */
bool json_i64(const struct json *node, const char *path, int64_t *out);
bool json_real(const struct json *node, const char *path, double *out);
bool json_true(const struct json *node, const char *path); /* false also if it is no boolean */
bool json_is_object(const struct json *node);
bool json_is_array(const struct json *node);
size_t json_count(const struct json *node); /* elements of an array, else 0 */
const struct json *json_item(const struct json *array, size_t i);
/* Visit the members of an object; `fn` returns false to stop. */
void json_each(const struct json *object,
    bool (*fn)(struct span name, const struct json *value, void *arg), void *arg);

#endif
