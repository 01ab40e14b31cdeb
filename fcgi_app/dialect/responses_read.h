/*
 * responses_read - the parts of form_read_responses: items, their contents, tools.
 *
 * Source    formats.md B.1 to B.3, E.10, E.13; cases.md TOOL-11 to 14, CONV-08, CONV-09
 */
#ifndef DIALECT_RESPONSES_READ_H
#define DIALECT_RESPONSES_READ_H

#include "dialect/responses.h"

struct responses_reader {
	struct arena *arena;
	struct form *form;
	struct why *why;
};

/* The value of "input" into turns. */
enum err responses_read_input(
    struct responses_reader *r, const struct scan_value *input) MUST_CHECK;
/* A string or an array of parts. `where` names it in errors: "input[2].content". */
enum err responses_read_parts(struct responses_reader *r, struct form_turn *turn,
    const struct scan_value *value, const char *where) MUST_CHECK;
/* An array of tools; `where` as above. */
enum err responses_read_tools(
    struct responses_reader *r, const struct scan_value *tools, const char *where) MUST_CHECK;
enum err responses_read_choice(
    struct responses_reader *r, const struct scan_value *choice) MUST_CHECK;

enum err responses_read_refuse(struct responses_reader *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
