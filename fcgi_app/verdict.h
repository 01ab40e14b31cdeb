/*
 * verdict - what an upstream's answer means: one enum, and one row for each that says what follows from it.
 *
 * classify.c finds the verdict; settle.c and walk.c obey the row. Reading the table in verdict.c answers every
 * "what happens when".
 *
 * Source    SPEC.md section 6
 */
#ifndef VERDICT_H
#define VERDICT_H

#include "base/text.h"

enum verdict {
	VERDICT_OK,
	VERDICT_CLIENT,
	VERDICT_CONTEXT_LENGTH,
	VERDICT_AUTH_FAILED,
	VERDICT_SESSION_DEAD,
	VERDICT_HARD_CREDIT,
	VERDICT_SOFT_RATE,
	VERDICT_MODEL_RATE,
	VERDICT_MODEL_MISSING,
	VERDICT_NOT_FOUND,
	VERDICT_OVERLOAD,
	VERDICT_SERVER,
	VERDICT_NETWORK,
	VERDICT_UNEXPLAINED,
	VERDICT_CANCELLED, /* the client went away: nobody's failure */
	VERDICT_NOBODY, /* an end without answer on a reused connection: an attempt, nobody's failure */
	VERDICT__MAX
};

/* What the account (or one model on it) gets. */
enum verdict_rest {
	REST_NONE,
	REST_ACCOUNT, /* a cooldown of the account */
	REST_MODEL,   /* of this model on this account */
	REST_DISABLE, /* after so many in a row */
};

/* When another account may be asked. */
enum verdict_next {
	NEXT_NEVER, /* the answer is the client's */
	NEXT_AT_ONCE,
	NEXT_BACKOFF,
	NEXT_ONCE, /* once more; the same from a second account ends it */
};

struct verdict_row {
	const char *name; /* as in rules, logs and status */
	enum verdict_next next;
	enum verdict_rest rest;
	bool counts; /* a counted failure of the account: errors, fails, consecutive_failures */
	bool error;  /* errors+1 (counted ones too) */
	bool rate_limited;     /* rate_limited+1 */
	bool channel_counts;   /* a failure in the channel's error rate */
	bool channel_requests; /* a request in the channel's window */
	bool target_counts;    /* a failure of the model on the channel (store/target.h) */
	int status; /* for the client when all attempts are used up; 0 = the upstream's own */
};

extern const struct verdict_row verdict_table[VERDICT__MAX];

/* Of a number out of a row, which may be one of another version. */
const char *verdict_name(unsigned number);
/* By name; VERDICT__MAX when there is none. */
enum verdict verdict_named(struct span name);

#endif
