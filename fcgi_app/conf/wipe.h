/*
 * wipe - memory for secrets: it is overwritten when its arena ends.
 */
#ifndef CONF_WIPE_H
#define CONF_WIPE_H

#include "base/arena.h"

char *wipe_room(struct arena *arena, size_t n);
struct span wipe_copy(struct arena *arena, struct span secret); /* NUL-terminated */

#endif
