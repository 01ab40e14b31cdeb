/*
 * err - how our program says that it could not: a code that decides and a text that explains.
 *
 * A function that can fail returns enum err and puts the reason into the caller's struct why; layers prefix it,
 * outermost last. Nobody parses the text. What an upstream said is another enum: verdict (verdict.h).
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdarg.h>

enum err {
	ERR_OK,
	ERR_BAD_INPUT, /* the bytes given are not what was asked for */
	ERR_TOO_BIG,   /* a size limit was met before anything was allocated */
	ERR_NOT_FOUND,
	ERR_CONFIG,
	ERR_STORE,
	ERR_IO,
	ERR_TIMEOUT,
};

struct why {
	char text[512];
};

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* Set the text; cut at the end if it is too long. `why` may be NULL. */
void err_why(struct why *why, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Put "<prefix>: " before the text. */
void err_prefix(struct why *why, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A broken invariant of our own, or no memory left: say where and end the process (the master replaces it). */
_Noreturn void err_die(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4);
#define die(...) err_die(__FILE__, __LINE__, __VA_ARGS__)

#endif
