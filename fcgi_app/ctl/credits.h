/*
 * credits - `sluicectl account credits ID N`: what a person knows of an account's credits; acts like a balance refresh.
 *
 * Source    SPEC.md sections 8 ("balance refresh"), 16
 */
#ifndef CTL_CREDITS_H
#define CTL_CREDITS_H

#include "ctl/ctl_command.h"

int credits_run(struct ctl *ctl, int argc, char **argv);

#endif
