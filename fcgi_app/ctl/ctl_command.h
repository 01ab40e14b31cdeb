/*
 * ctl_command - what a command of sluicectl is given, and what it gives back.
 *
 * A command is `int <stem>_run(struct ctl *ctl, int argc, char **argv)`; argv[0] is its own name. It writes what was asked
 * for to ctl->out and what went wrong to ctl->err.
 */
#ifndef CTL_CTL_COMMAND_H
#define CTL_CTL_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

enum ctl_status { CTL_DONE = 0, CTL_FAILED = 1, CTL_USAGE = 2 };

struct ctl {
	const char *conf_given; /* -c before the command, or NULL */
	bool json;              /* --json before the command; a command takes it too */
	bool color;
	FILE *out, *err;
};

#endif
