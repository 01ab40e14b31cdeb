/*
 * doctor_pass - how `sluicectl doctor` proves to the gateway that it is the operator's: by a file in state_dir.
 *
 * Who can write there is the gateway's own user or root. The file is "NONCE EXPIRY\n", 0600; the nonce comes back in a
 * request's X-Sluice-Doctor. A file that is not the user's own, that others may read or write, or that would be valid for
 * longer than DOCTOR_PASS_MS opens nothing.
 *
 * Units     expiry: wall milliseconds
 */
#ifndef DOCTOR_PASS_H
#define DOCTOR_PASS_H

#include "base/err.h"
#include "base/text.h"
#include "store/types.h"

#define DOCTOR_PASS_MS 600000
#define DOCTOR_NONCE 33 /* 32 digits, NUL */

/* Does this file's text let `shown` in? Pure; takes as long for a wrong nonce as for a right one. */
bool doctor_pass_opens(struct span file, struct span shown, struct wall_ms now);
/* The same for the file below state_dir. */
bool doctor_pass_shown(const char *state_dir, struct span shown, struct wall_ms now);

/*
 * Make the file, with a new nonce; *fd_out stays open and locked, so that a second doctor keeps out. ERR_IO: also when
 * one is at work.
 */
enum err doctor_pass_make(const char *state_dir, struct wall_ms now, char nonce_out[DOCTOR_NONCE],
    int *fd_out, struct why *why) MUST_CHECK;
/* Remove the file; *fd may be -1, and becomes it. */
void doctor_pass_end(const char *state_dir, int *fd);

#endif
