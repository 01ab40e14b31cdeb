/*
 * scan - read JSON text strictly, in one pass, without a tree, and find a few values in it.
 *
 * Accepts RFC 8259 and nothing else: no NaN, no single quotes, no comments, no trailing text, no raw control characters
 * in strings, no invalid UTF-8, no BOM, no nesting deeper than 256. A lone \ud83d escape is text like any other (the
 * upstream decides). Numbers stay text. Names are compared after their escapes are decoded; a name that holds NUL
 * (\u0000) is refused, and so is a second occurrence, in one object, of a name that some path asks for.
 *
 * Paths     dotted member names and array indexes: "model", "stream_options.include_usage", "choices.0.delta.content".
 *           More of them, or deeper ones, than the limits below is an error of ours: the process ends.
 * Errors    ERR_BAD_INPUT with a text such as "line 3, column 7: raw control character in a string"
 * Memory    nothing is allocated except by scan_string(); values are offsets into the given text
 * Source    RFC 8259; cases.md JSON-*, REQ-11; style.md 8.7 for what json-c lets through
 */
#ifndef BASE_SCAN_H
#define BASE_SCAN_H

#include "base/arena.h"

#define SCAN_DEPTH_MAX 256
#define SCAN_PATHS_MAX 32
#define SCAN_PARTS_MAX 8 /* components of a path */

enum scan_type {
	SCAN_ABSENT,
	SCAN_NULL,
	SCAN_FALSE,
	SCAN_TRUE,
	SCAN_NUMBER,
	SCAN_STRING,
	SCAN_ARRAY,
	SCAN_OBJECT,
};

struct scan_value {
	enum scan_type type;
	struct span raw; /* the bytes of the value as they stand: with quotes, brackets */
};

/*
 * Check the whole of `text` and fill values_out[i] for paths[i]. With n = 0 it only checks. The document may be of any
 * type; paths only match inside objects and arrays. On failure values_out is undefined.
 */
enum err scan_pick(struct span text, const char *const *paths, struct scan_value *values_out,
    size_t n, struct why *why) MUST_CHECK;

/*
 * The same with the paths prepared once: for what is called for each event of a stream. The plan borrows the paths.
 */
struct scan_plan;
struct scan_plan *scan_plan_new(const char *const *paths, size_t n);
/*
 * For answers of upstreams, as the clients' own readers take them: the last of several members of a name counts, NUL in
 * a name and invalid UTF-8 in strings are let through.
 */
void scan_plan_lax(struct scan_plan *plan);
void scan_plan_free(struct scan_plan **plan);
enum err scan_run(const struct scan_plan *plan, struct span text, struct scan_value *values_out,
    struct why *why) MUST_CHECK;

/*
 * Decode a SCAN_STRING's raw bytes (with quotes) into the arena. Pairs of surrogate escapes become one character, lone
 * ones U+FFFD. Borrows from the text where there is nothing to decode.
 */
struct span scan_string(struct arena *arena, struct span raw);
/* Whether a SCAN_STRING's raw bytes, or a raw name, decode to `z`. */
bool scan_is(struct span raw, const char *z);

/* A number or a string that holds a whole number within range ("12", 12, 12.0, 1e3, -0). False: *out untouched. */
bool scan_i64(const struct scan_value *value, int64_t min, int64_t max, int64_t *out);

/*
 * How many things there are to be remembered one by one in a text that was validated before: elements of lists that are
 * more than a number or a word, and members of objects in the two outermost levels. Not counted beyond most + 1.
 */
size_t scan_items(struct span text, size_t most);

/* Line (from 1) of a byte offset. */
size_t scan_line(struct span text, size_t at);

/*
 * Pull the next member of an object, or element of an array, whose raw bytes were validated before by scan_pick().
 * Start with *at = 0; false at the end, and for what is no container. `name_out` (raw, with quotes) is empty for
 * arrays. Names that no path asked for may come twice.
 */
bool scan_next(
    struct span container, size_t *at, struct span *name_out, struct scan_value *value_out);

#endif
