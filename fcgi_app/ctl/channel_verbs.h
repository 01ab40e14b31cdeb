/*
 * channel_verbs - `sluicectl channel`: the breakers of channels, and switching what may open them.
 *
 * Triggers that are switched here hold until they are switched back, also over a restart; every process heeds them from
 * its next pick on.
 *
 * Source    SPEC.md section 9 ("Triggers can be switched per channel at run time")
 */
#ifndef CTL_CHANNEL_VERBS_H
#define CTL_CHANNEL_VERBS_H

#include "ctl/ctl_command.h"

int channel_verbs_run(struct ctl *ctl, int argc, char **argv);

#endif
