/*
 * doctor_ask - what `sluicectl doctor` asks of the gateway through the web server: one exercise, with its bounds. Pure.
 *
 * Query     do=echo | stream | swallow; for stream n (events), gap and first (ms: between events, before the first byte)
 * Errors    ERR_BAD_INPUT an unknown word, a number out of bounds, or more than DOCTOR_TOTAL_MS in all
 */
#ifndef DOCTOR_ASK_H
#define DOCTOR_ASK_H

#include "base/err.h"
#include "base/text.h"

#define DOCTOR_EVENTS_MAX 50
#define DOCTOR_GAP_MS 60000
#define DOCTOR_TOTAL_MS 120000 /* a worker is busy for so long */

enum doctor_work {
	DOCTOR_ECHO,    /* what the gateway sees of the request */
	DOCTOR_STREAM,  /* n events, gap_ms apart, the first after first_ms */
	DOCTOR_SWALLOW, /* read the body, tell its length and sum */
};

struct doctor_ask {
	enum doctor_work work;
	int64_t n, gap_ms, first_ms;
};

enum err doctor_ask_read(struct span query, struct doctor_ask *ask_out, struct why *why) MUST_CHECK;

/* FNV-1a over 64 bits, to be continued: guards against mistakes, not against people. */
#define DOCTOR_SUM_SEED UINT64_C(0xcbf29ce484222325)
uint64_t doctor_ask_sum(uint64_t sum, struct span bytes);

#endif
