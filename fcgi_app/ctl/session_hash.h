/*
 * session_hash - how commands name a session or conversation: by the first digits of its keyed hash, or by the name that
 * its client gave it, of which the hash is made.
 */
#ifndef CTL_SESSION_HASH_H
#define CTL_SESSION_HASH_H

#include "conf/conf.h"
#include "ctl/ctl_command.h"
#include "session.h"

#define SESSION_HASH_HEX (2 * SESSION_HASH_BYTES)
#define SESSION_HASH_BRIEF 12 /* digits that are shown, as in the log */
#define SESSION_HASH_WAYS 3   /* in which a name may come */

void session_hash_hex(const uint8_t hash[SESSION_HASH_BYTES], char out[SESSION_HASH_HEX + 1]);
/* What a person typed, in lower case. False: it was said what is wrong. `list` is the command that shows hashes. */
bool session_hash_prefix(
    struct ctl *ctl, const char *typed, const char *list, char prefix_out[SESSION_HASH_HEX + 1]);
/*
 * A name may have come by a header, in the body or as a response's id: what is there tells. False: the secret cannot be
 * had, as was said.
 */
bool session_hash_named(struct ctl *ctl, const struct conf *conf, const char *client,
    const char *name, struct session_key keys_out[SESSION_HASH_WAYS]);

#endif
