/*
 * secret - a provider key in memory. Only upstream.c and redact.c may call secret_reveal() (checked by lint).
 *
 * Keys are never in the store, logs, status or errors; people see the fingerprint.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include "base/text.h"

struct secret {
	struct span hidden;
};

static inline struct span
secret_reveal(const struct secret *s)
{
	return s->hidden;
}

#endif
