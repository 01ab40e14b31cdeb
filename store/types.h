/*
 * types - the words that everything remembered is made of: times, result codes, account references.
 *
 * Units     wall_ms: milliseconds since the epoch, survives a reboot, used in rows; 0 = never.
 *           mono_ms: milliseconds of CLOCK_MONOTONIC, for latencies and deadlines within a process.
 *           The two are different types so that mixing them does not compile.
 * Errors    enum store_rc is the store's only result type; its text is in struct store_why.
 */
#ifndef STORE_TYPES_H
#define STORE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wall_ms {
	int64_t v;
};

struct mono_ms {
	int64_t v;
};

enum store_rc {
	STORE_OK,
	STORE_NONE, /* no such row */
	STORE_FULL, /* the account is at its limit, the map at its maximum, or the disk is full */
	STORE_BUSY, /* the front lock could not be had in time, or no slot is free */
	STORE_BAD,  /* damaged, foreign or of another format; needs an operator */
	STORE_IO,   /* the system refused: why->text says what */
};

struct store_why {
	char text[256];
};

/* An account as rows name it. Numbers are given once and never reused for another name. */
struct account_ref {
	uint16_t channel;
	uint32_t number;
};

#define STORE_MUST_CHECK __attribute__((warn_unused_result))

#endif
