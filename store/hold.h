/*
 * hold - one process at a time does something that has a name: a lock for each of 2^62 names, which dies with its holder.
 *
 * A name's lock is one byte of the file `holds.lock` in the state directory, far behind its end (lock.h), so nothing is
 * written and nothing must be tidied up. Names are 64-bit hashes; two that fall together wait for each other, no more.
 *
 * Caveats   one hold for each process at a time; not for threads; the file must not be deleted while in use
 * Errors    STORE_BUSY another process has it; STORE_IO the file cannot be opened or locked; env_error()
 *           has the text
 * Source    SPEC.md section 13 (two requests of one conversation); store.md decision 4
 */
#ifndef STORE_HOLD_H
#define STORE_HOLD_H

#include "store/env.h"

struct hold {
	int fd; /* -1 = nothing is held */
};

/* Does not wait. On failure nothing is held. */
enum store_rc hold_take(struct env *env, uint64_t name, struct hold *hold_out) STORE_MUST_CHECK;
/* What is not held is as it was. */
void hold_release(struct hold *hold);

#endif
