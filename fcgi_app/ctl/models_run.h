/*
 * models_run - `sluicectl models`: the resolved table of models, and how each target does.
 *
 * Units     prices are for 1,000 tokens, costs in all, both in the currency of the account
 */
#ifndef CTL_MODELS_RUN_H
#define CTL_MODELS_RUN_H

#include "ctl/ctl_command.h"

int models_run(struct ctl *ctl, int argc, char **argv);

#endif
