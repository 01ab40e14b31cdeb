/*
 * tokens_run - `sluicectl tokens`: how many tokens a text is for a model, as the gateway counts.
 *
 * Exit      0 counted, 1 the text cannot be read, 2 usage
 * Source    SPEC.md section 13
 */
#ifndef CTL_TOKENS_RUN_H
#define CTL_TOKENS_RUN_H

#include "ctl/ctl_command.h"

int tokens_run(struct ctl *ctl, int argc, char **argv);

#endif
