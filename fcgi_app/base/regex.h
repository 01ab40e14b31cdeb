/*
 * regex - Perl's regular expressions over text from outside, without case; the only file that includes PCRE2.
 *
 * Text      need not be valid UTF-8
 * Errors    one that takes too many steps does not match
 */
#ifndef BASE_REGEX_H
#define BASE_REGEX_H

#include "base/text.h"

/* Is it one? If not, why, for people. */
bool regex_check(struct span regex, char *reason_out, size_t cap);
/* One that does not compile matches nothing. */
bool regex_matches(struct span regex, struct span text);

#endif
