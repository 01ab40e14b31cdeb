/*
 * wire - what the measuring programs share: the clock, growing buffers, HTTP/1.1 header look-up.
 *
 * For programs under our own control only: out of memory ends the program.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stddef.h>
#include <stdint.h>

struct wire_bytes {
	char *p;
	size_t n, cap;
};

/* Microseconds of CLOCK_MONOTONIC, the same for every process of the machine. */
uint64_t wire_now_us(void);

void *wire_grown(void *p, size_t bytes);
void wire_reserve(struct wire_bytes *b, size_t more);
void wire_put(struct wire_bytes *b, const char *p, size_t n);

/* Append formatted text of at most 2047 bytes; longer text is a mistake of the caller. */
void wire_putf(struct wire_bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The start of a header's value in a NUL-terminated message head, or NULL. */
const char *wire_header(const char *head, const char *name);

/* Parse a whole number in an option, or end the program with a message and status 2. */
long wire_option(const char *text, long min, long max);

#endif
