/*
 * regex - Perl's regular expressions over text from outside, without case; the only file that includes PCRE2.
 *
 * Text      need not be valid UTF-8
 * Errors    one that takes too many steps does not match
 * Compiled  a struct regex is made once and used often, over valid UTF-8: \d, \w and the like know Unicode, case counts
 */
#ifndef BASE_REGEX_H
#define BASE_REGEX_H

#include "base/text.h"

/* Is it one? If not, why, for people. */
bool regex_check(struct span regex, char *reason_out, size_t cap);
/* One that does not compile matches nothing. */
bool regex_matches(struct span regex, struct span text);

struct regex;
/* An expression of ours; one that does not compile ends the process. Machine code is made of it where that is allowed. */
struct regex *regex_new(struct span expression);
void regex_free(struct regex **regex);
/* Bytes of the match that begins at this byte of the text; 0 = there is none, or it takes too many steps. */
size_t regex_length(const struct regex *regex, struct span text, size_t at);

#endif
