/*
 * show - the commands that only look: `status`, `account list`, `account show`, `events`, `version`.
 */
#ifndef CTL_SHOW_H
#define CTL_SHOW_H

#include "ctl/attach.h"

int show_status_run(struct ctl *ctl, int argc, char **argv);
int show_events_run(struct ctl *ctl, int argc, char **argv);
int show_version_run(struct ctl *ctl, int argc, char **argv);
/* `account list` and `account show ID`: called by account.c. */
int show_account_list(struct ctl *ctl, int argc, char **argv);
int show_account_one(struct ctl *ctl, int argc, char **argv);

#endif
