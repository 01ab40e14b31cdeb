/*
 * quantity - durations, sizes, times of day and amounts as the configuration writes them, and back.
 *
 * What a _print() gives, its reader takes as the same value. No locale. Readers take the whole text or nothing.
 */
#ifndef CONF_QUANTITY_H
#define CONF_QUANTITY_H

#include "base/text.h"

#define QUANTITY_TEXT 32

/* "30s": the largest of ms s m h d that divides. Read by date_duration(). */
void quantity_print_duration(int64_t ms, char out[QUANTITY_TEXT]);

/* "512", "64k", "32M", "1G", "2T": powers of 1024; either case. */
bool quantity_size(struct span text, int64_t *bytes_out);
void quantity_print_size(int64_t bytes, char out[QUANTITY_TEXT]);

/* "04:00" to "23:59" */
bool quantity_clock(struct span text, int64_t *minute_out);
void quantity_print_clock(int64_t minute, char out[QUANTITY_TEXT]);

/* A JSON number; false if it is beyond 1e300. */
bool quantity_real(struct span text, double *out);
/* The shortest text that reads back as the same. */
void quantity_print_real(double v, char out[QUANTITY_TEXT]);

/* Millionths as a decimal: 2500 is "0.0025". */
void quantity_print_micros(int64_t micros, char out[QUANTITY_TEXT]);

#endif
