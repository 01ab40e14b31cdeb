/*
 * limits - `sluicectl limits`: who rests until when, and why: every account, every open account breaker, and every model
 * on an account.
 */
#ifndef CTL_LIMITS_H
#define CTL_LIMITS_H

#include "ctl/ctl_command.h"

int limits_run(struct ctl *ctl, int argc, char **argv);

#endif
