/*
 * comment - turn the comments of a configuration file into blanks, so that lines and columns stay.
 *
 * Both kinds: from // to the end of the line, and from slash-star to star-slash. What is in strings stays.
 */
#ifndef CONF_COMMENT_H
#define CONF_COMMENT_H

#include <stdbool.h>
#include <stddef.h>

/* False: the comment that begins at *bad_out has no end. */
bool comment_blank(char *text, size_t n, size_t *bad_out);

#endif
