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

/* OpenAI's, by family: tiles of 512 after two reductions, or patches of 32. */
struct picture_price {
	unsigned base, tile;       /* tokens */
	unsigned patch_hundredths; /* of a token for each patch; 0: tiles */
};
/* Of gpt-4o where nothing is known of the model. */
struct picture_price picture_price(struct span model);
/* `low`: the base alone; of patches there is no such thing. */
int64_t picture_tokens(
    const struct picture_price *price, const struct picture_size *size, bool low);

#endif
