/*
 * redact - our keys in bytes that came from an upstream become "[redacted]": raw, URL-encoded and base64.
 *
 * Events of a stream are searched for the key that was used; error bodies for every key of the configuration (redact_all).
 * Text without a key is returned as it is, not copied.
 *
 * Source    SPEC.md sections 4.3, 18
 */
#ifndef REDACT_H
#define REDACT_H

#include "base/arena.h"
#include "conf/conf.h"

#define REDACT_FORMS 4
#define REDACT_SHORTEST 6 /* shorter keys are not looked for: "none", "key" would match words */

struct redact {
	struct span forms[REDACT_FORMS];
	unsigned n;
};

void redact_init(struct redact *redact, struct arena *arena, const struct secret *key);
struct span redact_apply(const struct redact *redact, struct arena *arena, struct span text);
struct span redact_all(const struct conf *conf, struct arena *arena, struct span text);

#endif
