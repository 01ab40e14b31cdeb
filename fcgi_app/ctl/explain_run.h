/*
 * explain_run - `sluicectl explain`: what a request for a model would meet now. See explain.h.
 *
 * Source    SPEC.md section 16
 */
#ifndef CTL_EXPLAIN_RUN_H
#define CTL_EXPLAIN_RUN_H

#include "ctl/ctl_command.h"

int explain_run(struct ctl *ctl, int argc, char **argv);

#endif
