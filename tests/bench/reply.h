/*
 * reply - the texts of the measuring provider: what a request wishes for, and the answers to it.
 */
#ifndef BENCH_REPLY_H
#define BENCH_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

#define REPLY_MAX_FILLER 1024

struct reply_wishes {
	long events, filler, status;
	uint64_t gap_us, latency_us;
	bool stream;
};

/* Read "stream" and the knobs in "model" (see mock.c) from the JSON text of a request. */
void reply_wishes_read(struct reply_wishes *w, const char *body);

/* A whole answer of about 1 kB with fixed text. */
void reply_plain(struct wire_bytes *b);
void reply_json(struct wire_bytes *b, long status, const char *json);

/* The head and first event; event number i, stamped with the time; the closing events. */
void reply_begin(struct wire_bytes *b);
void reply_event(struct wire_bytes *b, const struct reply_wishes *w, long i);
void reply_end(struct wire_bytes *b, const struct reply_wishes *w);

#endif
