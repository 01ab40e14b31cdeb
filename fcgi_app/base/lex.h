/*
 * lex - the words of JSON: strings, escapes, numbers. What scan and emit are made of.
 *
 * Readers take [p, end), read nothing beyond, and return where the word ends, or NULL with the fault set.
 *
 * Source    RFC 8259 sections 6 to 8; RFC 3629
 */
#ifndef BASE_LEX_H
#define BASE_LEX_H

#include "base/text.h"

struct lex_fault {
	const char *what; /* in plain words */
	const char *at;
};

struct lex_seen {
	bool escape;
	bool nul; /* as \u0000 */
};

/* A number as JSON spells it. */
const char *lex_number(const char *p, const char *end, struct lex_fault *fault);

/* The value of a number if it is whole and in range, however it is spelt: 12, 12.0, 1e3, -0. Anything else: false. */
bool lex_whole(struct span s, int64_t *out);

/* A string up to and with its closing quote; p is behind the opening one. */
const char *lex_string(
    const char *p, const char *end, struct lex_seen *seen_out, struct lex_fault *fault);

/* How many bytes from the beginning may stand in a string as they are: ASCII from the blank on, but '"' and '\'. */
size_t lex_plain(struct span s);

/* Length of the well-formed UTF-8 sequence at the beginning of `s`, which is not empty; 0 if there is none. */
size_t lex_utf8(struct span s);

/*
 * Decode the escape at the beginning of `s`; returns the number of bytes put into `out`. A pair of surrogates is one
 * escape; a lone one gives U+FFFD. What lex_string() would have refused gives its own bytes.
 */
size_t lex_unescape(struct span s, char out[4], size_t *used_out);

/* Whether the bytes between the quotes of a string decode to `want`. */
bool lex_same(struct span inner, struct span want);

/* Behind the value that begins at p and is known to be well-formed. */
const char *lex_skip(const char *p, const char *end);

#endif
