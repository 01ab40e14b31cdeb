/*
 * run - our own API, for clients that send what is new and want a text: POST /v1/run.
 *
 * Request   {"session_id","input","task_type","model","stream"}; only `input` must be there: a text, or parts as chat has
 *           them. It stands for the chat request with `input` as the content of its one user's message.
 * Answer    {"success":true,"session_id","content","model_used","account_id","error":null}; content is all text of it
 * Stream    data: {"content":"..."} for each piece, then the answer as above as the last event
 * Error     {"success":false,"error":"Request failed: ..."}, a document or the last event
 * Source    SPEC.md 4.1, 4.3, 13
 */
#ifndef DIALECT_RUN_H
#define DIALECT_RUN_H

#include "dialect/flow.h"

/* Type and code have no place in it. */
void run_error_event(
    struct buf *out, int status, const char *type, const char *code, struct span message);

#endif
