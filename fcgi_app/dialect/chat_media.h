/*
 * chat_media - what stands in the URLs of images and the data of files.
 *
 * Source    formats.md A.2, E.1; cases.md CONV-08
 */
#ifndef DIALECT_CHAT_MEDIA_H
#define DIALECT_CHAT_MEDIA_H

#include "dialect/form.h"

/* An http(s) URL gives `url`; "data:image/jpg;charset=x;base64,..." gives `media_type`, "image/jpeg",
 * and `data`. A data URL without a type is PNG. False: neither. */
bool chat_media_image(struct arena *arena, struct span url, struct form_media *media);

/* A data URL, or base64 alone (then the title's ending tells the type, PDF by default). What is text
 * gives `plain`. False: not base64. */
bool chat_media_document(struct arena *arena, struct span data, struct form_media *media);

#endif
