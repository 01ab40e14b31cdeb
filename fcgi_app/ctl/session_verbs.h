/*
 * session_verbs - `sluicectl session`: which sessions are bound to which accounts, and ending a binding.
 *
 * Sessions are known by the first digits of their keyed hash, as in the log; their names are nowhere kept. Who knows a
 * session's client and name can have the hash computed.
 *
 * Source    SPEC.md sections 11, 16
 */
#ifndef CTL_SESSION_VERBS_H
#define CTL_SESSION_VERBS_H

#include "ctl/ctl_command.h"

int session_verbs_run(struct ctl *ctl, int argc, char **argv);
/* `sluicectl sessions` is `sluicectl session list`. */
int session_verbs_list(struct ctl *ctl, int argc, char **argv);

#endif
