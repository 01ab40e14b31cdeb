/*
 * trust - the TLS trust store, loaded once before the fork and shared by copy-on-write.
 *
 * Parsing the system's certificates costs 15 ms and 1 MB for each handle that does it by itself; a store made here costs
 * that once per machine.
 *
 * Source    hosting.md 9
 */
#ifndef TRUST_H
#define TRUST_H

#include "conf/conf.h"

struct trust;

/* Loads nothing when no address is https. */
enum err trust_load(const struct conf *conf, struct trust **trust_out, struct why *why) MUST_CHECK;
/*
 * The same for a process that may need none: each is loaded when it is asked for, the system's from the directory of
 * hashed names where there is one. That a file can be read is seen to now.
 */
enum err trust_later(const struct conf *conf, struct trust **trust_out, struct why *why) MUST_CHECK;
/* Before the fork: OpenSSL does what it does once, and what it searches in is sorted. Nothing when nobody is https. */
void trust_warm(const struct trust *trust);
void trust_free(struct trust **trust);

/* The X509_STORE of a ca_file; "" is the system's. NULL when it was not loaded. */
void *trust_store(const struct trust *trust, struct span ca_file);

#endif
