/*
 * context_join - what is stored of a conversation, and what was sent, as one; and what of it is to be stored.
 *
 * Cache marks of stored turns are left out, but for those of the system text: a host takes four of them in all, and the
 * client's own are in what it sends.
 *
 * Source    SPEC.md section 13
 */
#ifndef CONTEXT_JOIN_H
#define CONTEXT_JOIN_H

#include "serve_job.h"

/* ERR_BAD_INPUT: what was sent cannot be read, or does not go with what is stored; the text is the client's 400. */
enum err context_join(struct serve_job *j, struct why *why) MUST_CHECK;

#endif
