/*
 * check - the commands that read configuration: `check` and `options`.
 */
#ifndef CTL_CHECK_H
#define CTL_CHECK_H

#include "ctl/ctl_command.h"

/*
 * check [-v] [--json] [FILE]: every finding to err, then one line, or with -v the effective configuration, to out. With
 * --json one object {ok, file, findings, channels, accounts, models, configuration} to out.
 */
int check_run(struct ctl *ctl, int argc, char **argv);

/* options [--json | --example]: the table of settings. */
int check_options_run(struct ctl *ctl, int argc, char **argv);

#endif
