/*
 * trial - the program on disk, started once with --test, before the running one gives its place to it.
 *
 * It reads the configuration and prepares all that needs no socket, then ends. Its output is kept as the reason.
 *
 * Source    SPEC.md section 2
 */
#ifndef TRIAL_H
#define TRIAL_H

#include "base/err.h"
#include "store/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TRIAL_LIMIT_MS 20000

struct trial {
	pid_t pid; /* 0 = none runs */
	int fd;    /* its output, to poll; -1 = none */
	struct mono_ms until;
	bool late;
	char output[1024];
	size_t n;
};

/* Start it. False: *why. */
bool trial_begin(
    struct trial *trial, const char *program, char **argv, struct mono_ms now, struct why *why);
/* Read what it says; end it when its time is over. */
void trial_look(struct trial *trial, struct mono_ms now);
/* It has ended: is the program fit? False: *why. */
bool trial_passed(struct trial *trial, int status, struct why *why);

#endif
