/*
 * page_models - GET /v1/models and /v1/models/{id}: the models that this client may use now.
 *
 * Shape     OpenAI's, with what we know besides; Anthropic's for a client that sends anthropic-version, or x-api-key and no
 *           Authorization, with its limit, after_id and before_id
 * Kept      the whole list of a realm, for a second and as long as neither the configuration nor the store changes
 * Source    SPEC.md section 4.1; formats.md C.10, D.3
 */
#ifndef PAGE_MODELS_H
#define PAGE_MODELS_H

#include "request.h"
#include "respond.h"
#include "serve.h"

void page_models(struct serve *s, const struct request *rq, struct respond *r, struct wall_ms now);
/* Let go of what is kept. */
void page_models_forget(struct serve *s);

#endif
