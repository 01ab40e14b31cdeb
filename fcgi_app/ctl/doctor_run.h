/*
 * doctor_run - `sluicectl doctor`: is all well here, and through the web server, and what would mend it.
 *
 * Exit      0 no problem, 1 problems (or it was interrupted), 2 usage
 * Source    SPEC.md section 16; hosting.md 12.6
 */
#ifndef CTL_DOCTOR_RUN_H
#define CTL_DOCTOR_RUN_H

#include "ctl/ctl_command.h"

int doctor_run(struct ctl *ctl, int argc, char **argv);

#endif
