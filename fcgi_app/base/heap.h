/*
 * heap - keeps the memory that processes share after a fork shared: for glibc's malloc; with another one nothing happens.
 *
 * Reading a configuration and certificates leaves the parent's heap full of small holes between what stays. A child
 * that fills one copies its whole page. heap_plug() takes all holes, so that a child's memory begins where the
 * parent's ends, and lies dense.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

struct heap_plug;

/* Take all holes; once, after all has been read and before the first fork. NULL: there is nothing to take. */
struct heap_plug *heap_plug(void);
/* Give them back, before much is read anew. */
void heap_unplug(struct heap_plug **plug);

/* Give whole pages that nobody uses back to the system. */
void heap_trim(void);

#endif
