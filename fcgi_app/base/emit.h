/*
 * emit - write JSON into a buffer, member by member; commas and escapes are its business.
 *
 * `key` is NULL inside arrays and at the top. Strings may hold any bytes: invalid UTF-8 becomes U+FFFD.
 */
#ifndef BASE_EMIT_H
#define BASE_EMIT_H

#include "base/buf.h"
#include "store/types.h"

#include <math.h>

#define EMIT_UNKNOWN ((double)NAN)

struct emit {
	struct buf *out;
	unsigned depth;
	bool comma[32]; /* something stands before, at this depth */
	char closer[32];
};

void emit_init(struct emit *e, struct buf *out);
void emit_object(struct emit *e, const char *key);
void emit_array(struct emit *e, const char *key);
void emit_end(struct emit *e);
void emit_text(struct emit *e, const char *key, struct span s);
void emit_z(struct emit *e, const char *key, const char *z);    /* NULL gives null */
void emit_some(struct emit *e, const char *key, struct span s); /* "" gives null */
void emit_i64(struct emit *e, const char *key, int64_t v);
void emit_known(struct emit *e, const char *key, int64_t v, bool known); /* else null */
void emit_real(struct emit *e, const char *key, double v, int decimals); /* EMIT_UNKNOWN: null */
void emit_bool(struct emit *e, const char *key, bool v);
void emit_null(struct emit *e, const char *key);
/* "2026-01-05T10:00:00Z"; null for 0. */
void emit_time(struct emit *e, const char *key, struct wall_ms t);
/* Bytes that are JSON already. */
void emit_raw(struct emit *e, const char *key, struct span json);

/* Just the quoted, escaped string. */
void emit_quoted(struct buf *out, struct span s);

#endif
