/*
 * account_verbs - `sluicectl account`: its verbs in one table; those that change state do it here.
 *
 * A change is one transaction for all accounts it names, with an event for each whose state changed.
 *
 * Source    SPEC.md sections 8 ("operator"), 16
 */
#ifndef CTL_ACCOUNT_VERBS_H
#define CTL_ACCOUNT_VERBS_H

#include "ctl/ctl_command.h"

int account_verbs_run(struct ctl *ctl, int argc, char **argv);

#endif
