/*
 * doctor - /v1/doctor: the gateway's side of `sluicectl doctor --url`.
 *
 * It lies below /v1 so that every mount finds it, and shows itself to the operator alone: to who brings the nonce of
 * state_dir (doctor_pass.h), or is in auth.admins. To anybody else it is an unknown path. It touches no store and works
 * without one.
 *
 * Answers   echo: the JSON object that doctor_seen.h reads; stream: events {"n":1,"ms":101} by the gateway's clock, then
 *           [DONE]; swallow: {"bytes":204800,"sum":"..."}
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "request.h"
#include "respond.h"
#include "serve.h"

/* Must this request not learn that the path exists? */
bool doctor_is_hidden(const struct serve *s, const struct exchange *x);
void doctor_serve(struct serve *s, const struct request *rq, struct respond *r);

#endif
