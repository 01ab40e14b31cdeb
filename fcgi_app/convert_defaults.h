/*
 * convert_defaults - fields that the configuration puts into the requests of a target where the client left them out.
 *
 * They go in as they were written, before everything else at the top level of the body, under the names of the API that the
 * target speaks. The limit on an answer's tokens is one field under its three names.
 *
 * Source    SPEC.md section 3
 */
#ifndef CONVERT_DEFAULTS_H
#define CONVERT_DEFAULTS_H

#include "convert.h"
#include "dialect/edit.h"

/* For `body`, which is to be sent. False: it, or the client's own body, has them all. */
bool convert_defaults(const struct convert *convert, const struct convert_target *target,
    struct span body, struct edit *edit_out);

/* The limit among them, no more than the model may write; -1 = none. */
int64_t convert_defaults_limit(const struct convert_target *target);

#endif
