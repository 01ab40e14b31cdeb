/*
 * gate - the fair front lock before LMDB's writer lock.
 *
 * A process-shared, robust, priority-inheriting mutex in a small mapped file `gate` under state_dir. It is advisory:
 * LMDB's own lock still protects. It gives fairness and a failure instead of a hang behind a stopped process.
 *
 * Errors    STORE_BUSY not had within the limit; STORE_IO the file cannot be made or mapped
 * Source    store.md decision 5
 */
#ifndef STORE_GATE_H
#define STORE_GATE_H

#include "store/types.h"

struct gate;

#define GATE_WAIT_MS 2000 /* store.md decision 5 */

/* `boot` names this boot (epoch.h); a gate file of another boot is initialised anew under an exclusive lock. */
enum store_rc gate_open(const char *dir, const char *boot, struct gate **gate_out,
    struct store_why *why) STORE_MUST_CHECK;
void gate_close(struct gate **gate);
enum store_rc gate_enter(struct gate *gate, int64_t wait_ms) STORE_MUST_CHECK;
void gate_leave(struct gate *gate);

#endif
