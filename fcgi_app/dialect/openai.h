/*
 * openai - what OpenAI's APIs share: error documents, answers and events with "choices", usage
 * figures.
 *
 * Compatible hosts bend the format in many ways; the readers here take what any of them sends.
 *
 * Source    formats.md A.5 to A.8, D.1, D.2, D.4, E.8, F.16
 */
#ifndef DIALECT_OPENAI_H
#define DIALECT_OPENAI_H

#include "dialect/dialect.h"

/* {"error":{"message","type","param":null,"code"}}; the same as one event. */
void openai_error_body(
    struct buf *out, int status, const char *type, const char *code, struct span message);
void openai_error_event(
    struct buf *out, int status, const char *type, const char *code, struct span message);

/* Chat and completions chunks alike. */
enum dialect_part openai_event(const struct sse_event *event, struct dialect_tap *tap);
/* A body with choices, each with a message or a text. */
bool openai_answer(struct span body, struct dialect_tap *tap);
/* A body whose answer is the array `list`. */
bool openai_list(struct span body, const char *list, struct dialect_tap *tap);

/* Add a usage object, field by field: what it does not have, or has in no sensible form, stays. */
void openai_usage(const struct scan_value *object, struct dialect_usage *usage);
/* A number or numeric string as millionths, rounded; false for negative, huge and other things. */
bool openai_micros(const struct scan_value *value, int64_t *micros_out);

#endif
