/*
 * page - the documents that the gateway writes itself: /healthz and /status here, the others in files of their own.
 *
 * Source    SPEC.md sections 4.1, 17
 */
#ifndef PAGE_H
#define PAGE_H

#include "request.h"
#include "respond.h"
#include "serve.h"

void page_serve(struct serve *s, struct request *rq, struct respond *r);

#endif
