/*
 * books - `sluicectl costs`, what a model costs on an account, and `sluicectl usage`, who used what and what it cost.
 *
 * Units     prices are for 1,000 tokens, costs in all, both in the currency of the account; days are UTC
 */
#ifndef CTL_BOOKS_H
#define CTL_BOOKS_H

#include "ctl/ctl_command.h"

int books_costs_run(struct ctl *ctl, int argc, char **argv);
int books_usage_run(struct ctl *ctl, int argc, char **argv);

#endif
