/*
 * messages_source - images, documents and search results of a Messages request.
 *
 * Source    formats.md C.3; cases.md CONV-08
 */
#ifndef DIALECT_MESSAGES_SOURCE_H
#define DIALECT_MESSAGES_SOURCE_H

#include "dialect/messages_place.h"

enum messages_source_kind { MESSAGES_IMAGE, MESSAGES_DOCUMENT };

/* {"type":"base64|url|file|text|content",...} */
enum err messages_source_read(struct messages_reader *r, const struct messages_place *place,
    const struct scan_value *v, enum messages_source_kind kind, struct form_media *out) MUST_CHECK;
/* A string, or text blocks joined by line ends. */
enum err messages_source_text(struct messages_reader *r, const struct messages_place *place,
    const struct scan_value *v, struct span *out) MUST_CHECK;

#endif
