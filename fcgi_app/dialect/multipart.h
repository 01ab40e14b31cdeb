/*
 * multipart - find the fields that routing needs in a multipart/form-data body, wherever they stand.
 *
 * Values are views of the body, so that one of them can be replaced and every other byte stays.
 *
 * Strict    lines end in CRLF; a boundary has 1 to 70 bytes; a part has at most 16 KiB of headers, none over two lines;
 *           the closing boundary must be there; "model" and "stream" may stand once, and are no files. What a host's
 *           reader could take for another model than ours does is refused: it would be served past the model's rules
 * Ignored   what stands before the first boundary and behind the last, unless it holds the boundary; charset and
 *           transfer encodings
 * Time      linear in the body
 * Errors    ERR_BAD_INPUT with a text for the client
 * Source    RFC 2046 5.1, RFC 7578; formats.md D.5, D.6
 */
#ifndef DIALECT_MULTIPART_H
#define DIALECT_MULTIPART_H

#include "base/arena.h"

struct multipart {
	struct span model;  /* p is NULL: there is none */
	struct span stream; /* likewise */
};

/* Is it multipart/form-data? */
bool multipart_is(struct span content_type);
enum err multipart_boundary(struct arena *arena, struct span content_type,
    struct span *boundary_out, struct why *why) MUST_CHECK;
enum err multipart_read(struct span body, struct span boundary, struct multipart *fields_out,
    struct why *why) MUST_CHECK;

#endif
