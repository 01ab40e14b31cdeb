/*
 * errands - the commands that do a worker's periodic work, or steer it: `probe`, `tick`, `degrade`.
 *
 * `probe` and `tick` call providers, and `tick` may run alerts.command: as root they become the owner of state_dir for
 * good, not only while they look.
 *
 * Source    SPEC.md sections 2 ("Periodic work"), 10, 16
 */
#ifndef CTL_ERRANDS_H
#define CTL_ERRANDS_H

#include "ctl/ctl_command.h"

int errands_probe_run(struct ctl *ctl, int argc, char **argv);
int errands_tick_run(struct ctl *ctl, int argc, char **argv);
int errands_degrade_run(struct ctl *ctl, int argc, char **argv);

#endif
