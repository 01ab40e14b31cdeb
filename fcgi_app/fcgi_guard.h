/*
 * fcgi_guard - what a FastCGI peer sends, looked at before libfcgi sees it. Pure.
 *
 * A filter of bytes, cut anywhere: out comes one request in the right order (begin as a responder, variables, body), of
 * whole heads, without padding and without the records of others. libfcgi parses it, but can no longer be made to
 * allocate 2 GiB and abort, to wait behind half a head, or to loop over what is nobody's.
 *
 * Records of the connection and a second request are answered here (`answer`): libfcgi would do it only while it reads.
 *
 * Limits    FCGI_GUARD_PARAMS_BYTES, FCGI_GUARD_PARAMS_MAX of variables
 * Memory    none but the struct
 * Source    FastCGI specification 3.3, 3.4, 4, 5; hosting.md 10
 */
#ifndef FCGI_GUARD_H
#define FCGI_GUARD_H

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

#define FCGI_GUARD_PARAMS_BYTES 1048576
#define FCGI_GUARD_PARAMS_MAX 1023
#define FCGI_GUARD_HEAD_BYTES 8 /* so much more than goes in may come out at once */

enum fcgi_guard_rc {
	FCGI_GUARD_MORE,    /* nothing is decided by what came */
	FCGI_GUARD_HEAD,    /* the variables are whole */
	FCGI_GUARD_END,     /* the body is */
	FCGI_GUARD_ABORTED, /* the peer takes the request back */
	FCGI_GUARD_REFUSED, /* not to be served; `why` says what came instead */
};

enum fcgi_guard_phase {
	FCGI_GUARD_IN_BEGIN,
	FCGI_GUARD_IN_PARAMS,
	FCGI_GUARD_IN_BODY,
	FCGI_GUARD_IN_NOTHING
};

struct fcgi_guard {
	enum fcgi_guard_phase phase;
	unsigned id;             /* of the request; 0 = not begun */
	enum fcgi_guard_rc then; /* when the record at hand is over */
	bool passes;             /* it goes on to libfcgi */
	size_t left, pad;        /* what is still to come of it */
	unsigned char head[FCGI_GUARD_HEAD_BYTES];
	size_t head_n;
	unsigned char begin[8];
	size_t begin_n;
	unsigned char lengths[8]; /* of the variable at hand */
	size_t lengths_n, name_left, value_left;
	size_t params_bytes, params;
	unsigned char answer[64]; /* to be sent to the peer before the next look */
	size_t answer_n;
};

void fcgi_guard_init(struct fcgi_guard *g);
/*
 * Look at *in from its begin, up to a decision, an answer or its end, and leave the rest in it. What libfcgi is to see
 * is added to `out`. After anything but MORE and HEAD nothing more can be looked at.
 */
enum fcgi_guard_rc fcgi_guard_pass(
    struct fcgi_guard *g, struct span *in, struct buf *out, struct why *why) MUST_CHECK;

#endif
