/*
 * gate - the fair front lock before LMDB's writer lock.
 *
 * A process-shared, robust, priority-inheriting mutex in a small mapped file `gate` under state_dir. It is advisory:
 * LMDB's own lock still protects. It gives fairness and a failure instead of a hang behind a stopped process.
 * A priority-inheriting lock names its holder by thread id, which means nothing in another PID namespace: as soon as
 * a process of another one opens the gate, all use a plain robust mutex beside it (not fair, but right).
 *
 * Errors    STORE_BUSY not had within the limit; STORE_IO the file cannot be made or mapped
 * Caveats   the file must not be cut while in use; deleting it only splits the users into two unfair groups
 * Source    store.md decision 5
 */
#ifndef STORE_GATE_H
#define STORE_GATE_H

#include "store/types.h"

struct gate;

#define GATE_WAIT_MS 2000 /* store.md decision 5 */
#define GATE_WORDS 512

/* `boot` names this boot (epoch.h); a gate file of another boot is initialised anew under an exclusive lock, and so is
 * one that nobody else uses (`alone`), which heals it. */
enum store_rc gate_open(const char *dir, const char *boot, bool alone, struct gate **gate_out,
    struct store_why *why) STORE_MUST_CHECK;
void gate_close(struct gate **gate);
/* `wait_ms` 0 asks once. A holder that died is replaced at once. */
enum store_rc gate_enter(struct gate *gate, int64_t wait_ms) STORE_MUST_CHECK;
void gate_leave(struct gate *gate);

/* GATE_WORDS words in the same file that all users see: futexes of the queue. Never reset while in use. */
uint32_t *gate_words(struct gate *gate);

/* flock(2) that gives up after `wait_ms` with STORE_BUSY; STORE_IO: see errno. */
enum store_rc gate_flock(int fd, int how, int64_t wait_ms) STORE_MUST_CHECK;

#endif
