/*
 * start - what every way to serve begins with: the configuration, the user, the log.
 *
 * As root the user comes before the log: whoever wrote the configuration may be that user, and must not have a file
 * opened that he could not open himself. Each restart opens it as him, too.
 *
 * Errors    false; the reason stands on standard error
 * Source    SPEC.md section 2
 */
#ifndef START_H
#define START_H

#include "base/log.h"
#include "conf/conf.h"

#include <limits.h>

/* Say on standard error why there is no start. Returns false. */
bool start_failed(const char *text);

/* Find and load it; `given` NULL: in the usual places. `path_out` is where it was found. */
bool start_conf(const char *given, char path_out[PATH_MAX], struct conf **conf_out) MUST_CHECK;
/* Become the user that serves, and open the log as him. To stay root is a warning in it. */
bool start_user(const struct conf *conf, struct log **log_out) MUST_CHECK;

#endif
