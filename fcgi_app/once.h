/*
 * once - plain CGI: a process for one request, from its environment and standard input to standard output.
 *
 * The command line is not looked at: servers make it of the query string. What cannot be read or opened is told on
 * standard error, and to the client as a 503 that names nothing. The exit status is 0 whatever was answered.
 *
 * After the answer is out and its descriptors are closed (standard error, too, where it is a pipe) it does what is due in the store; what needs a provider is left
 * to workers and `sluicectl tick`.
 *
 * Source    SPEC.md section 2; hosting.md 3, 5, 9
 */
#ifndef ONCE_H
#define ONCE_H

#include <stdbool.h>

/* Was this program started for one request? */
bool once_is_asked(void);
int once_run(void);

#endif
