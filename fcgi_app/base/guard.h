/*
 * guard - files in memory that somebody may cut while they are read.
 *
 * A read behind the new end of a mapped file is a SIGBUS, which ends the process. Of a guarded file all reads as zeros
 * from then on, and whoever relies on it asks guard_is_lost() behind the last read. Any other SIGBUS ends the process.
 *
 * Globals   the handler has nothing else to go by: one list for the process, of GUARD_MOST files
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include "base/text.h"

#define GUARD_MOST 8

/* The whole of what was mapped. Without room for one more it is as before. */
void guard_add(struct span file);
/* Before it is unmapped. */
void guard_remove(struct span file);
bool guard_is_lost(struct span file);

#endif
