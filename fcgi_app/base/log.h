/*
 * log - lines for people and machines: JSON by default, key=value as text; the same fields in the same order.
 *
 * Who logs stands in tests/lint/secrets.sh: the loops of programs, and what a request comes to. Text from outside is
 * escaped and cut by the writer. errno is kept. The same message is written at most once a second, with the number of
 * those left out.
 *
 * Source    style.md 8.9; SPEC.md section 14
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/text.h"
#include "store/types.h"

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

struct log_field {
	const char *key;
	enum { LOG_FIELD_TEXT, LOG_FIELD_NUMBER, LOG_FIELD_JSON } type;
	struct span text; /* also raw JSON */
	int64_t number;
};

#define LOG_TEXT(name, span_value)                                          \
	(struct log_field)                                                  \
	{                                                                   \
		.key = (name), .type = LOG_FIELD_TEXT, .text = (span_value) \
	}
#define LOG_Z(name, z_value) LOG_TEXT(name, text_span(z_value))
#define LOG_NUMBER(name, value)                                            \
	(struct log_field)                                                 \
	{                                                                  \
		.key = (name), .type = LOG_FIELD_NUMBER, .number = (value) \
	}
#define LOG_JSON(name, span_value)                                          \
	(struct log_field)                                                  \
	{                                                                   \
		.key = (name), .type = LOG_FIELD_JSON, .text = (span_value) \
	}

struct log;

/* target: "stderr", "syslog" or a path (appended to, 0600). NULL when the file cannot be opened. */
struct log *log_open(const char *target, enum log_level level, bool json);
void log_close(struct log **log);
bool log_wants(const struct log *log, enum log_level level);
void log_write(struct log *log, enum log_level level, struct wall_ms now, const char *message,
    const struct log_field *fields, size_t n);

#define log_fields(log, level, now, message, ...)                                            \
	log_write((log), (level), (now), (message), (const struct log_field[]){__VA_ARGS__}, \
	    sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

#endif
