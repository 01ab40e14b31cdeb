/*
 * fcgi_wire - FastCGI records on one connection: read and written with time limits, whatever the peer does.
 *
 * The descriptor is never blocked on: every wait looks at the signals, too, and ends with the drain.
 *
 * Errors    errno after false or -1: EAGAIN out of time, ECANCELED the drain is over, ECONNRESET the peer has closed,
 *           EPROTO no FastCGI; others as the system says
 * Source    FastCGI specification 3.3; hosting.md 10
 */
#ifndef FCGI_WIRE_H
#define FCGI_WIRE_H

#include "watch.h"

#include <stddef.h>
#include <sys/types.h>

#define FCGI_WIRE_IN_BYTES 16384

enum fcgi_kind {
	FCGI_KIND_BEGIN = 1,
	FCGI_KIND_ABORT = 2,
	FCGI_KIND_END = 3,
	FCGI_KIND_PARAMS = 4,
	FCGI_KIND_STDIN = 5,
	FCGI_KIND_STDOUT = 6,
	FCGI_KIND_STDERR = 7,
	FCGI_KIND_GET_VALUES = 9,
	FCGI_KIND_GET_VALUES_RESULT = 10,
	FCGI_KIND_UNKNOWN = 11,
};

struct fcgi_record {
	unsigned kind, id;
	size_t left, pad; /* bytes of it that are not read yet */
};

struct fcgi_wire {
	struct watch *watch;
	struct mono_ms (*clock)(void);
	int fd;
	bool broken; /* nothing more can be written */
	int64_t
	    stop_grace_ms; /* for bytes to come once a signal asked to end; 0 = the whole drain */
	size_t at, n;      /* in[at..n) is not looked at yet */
	unsigned char in[FCGI_WIRE_IN_BYTES];
};

void fcgi_wire_open(struct fcgi_wire *w, int fd);
/* The next record's head; what is left of the one before must have been read or skipped. */
bool fcgi_wire_next(struct fcgi_wire *w, struct fcgi_record *record, struct mono_ms until);
/* Up to n bytes of the record, as soon as there are some. */
ssize_t fcgi_wire_read(
    struct fcgi_wire *w, struct fcgi_record *record, void *dst, size_t n, struct mono_ms until);
/* Pass over the rest of it. */
bool fcgi_wire_skip(struct fcgi_wire *w, struct fcgi_record *record, struct mono_ms until);
/* Something came that nobody has read. */
bool fcgi_wire_has_more(const struct fcgi_wire *w);
/* All of it, while the peer takes at least a byte each `stall_ms`. False = broken, now and ever after. */
bool fcgi_wire_send(struct fcgi_wire *w, const void *bytes, size_t n, int64_t stall_ms);
/* Write a record's head of 8 bytes. */
void fcgi_wire_head(unsigned char *head, enum fcgi_kind kind, unsigned id, size_t n);

#endif
