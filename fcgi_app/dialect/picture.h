/*
 * picture - the size of an image from the first bytes of its base64, and what it costs in tokens.
 *
 * Reads PNG, JPEG, GIF and WebP; decodes only the bytes it looks at. Base64 with line breaks is not read.
 *
 * Source    formats.md G.5, G.6
 */
#ifndef DIALECT_PICTURE_H
#define DIALECT_PICTURE_H

#include "base/text.h"

struct picture_size {
	uint32_t width, height; /* at least 1 */
};

/* False: no image of a known kind. */
bool picture_size(struct span base64, struct picture_size *size_out);
/* Anthropic's: by area, after the long edge was limited. */
int64_t picture_tokens_claude(const struct picture_size *size);
/* OpenAI's of gpt-4o: tiles of 512 after two reductions. */
int64_t picture_tokens_tiles(const struct picture_size *size, bool low);

#endif
