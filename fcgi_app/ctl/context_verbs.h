/*
 * context_verbs - `sluicectl context`: the conversations that are kept for clients: which there are, what was said, an end
 * to them, a copy.
 *
 * A conversation is told as a session is (session_hash.h). What was said goes to a terminal without control characters.
 *
 * Source    SPEC.md sections 13, 16
 */
#ifndef CTL_CONTEXT_VERBS_H
#define CTL_CONTEXT_VERBS_H

#include "ctl/ctl_command.h"

int context_verbs_run(struct ctl *ctl, int argc, char **argv);

#endif
