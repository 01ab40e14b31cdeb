/*
 * doctor_local - what `sluicectl doctor` looks at without a web server: configuration, state_dir, store, the
 * tables that tokens are counted by.
 */
#ifndef CTL_DOCTOR_LOCAL_H
#define CTL_DOCTOR_LOCAL_H

#include "ctl/doctor_row.h"

void doctor_local_conf(struct doctor *d);
void doctor_local_state_dir(struct doctor *d);
void doctor_local_store(struct doctor *d);
void doctor_local_tokens(struct doctor *d);
/* A nonce for the gateway (doctor_pass.h), if none was made; "" when that cannot be, with the reason. */
void doctor_local_pass(struct doctor *d, struct why *why);

#endif
