/*
 * environment - the variables of this process, which all that it starts inherits.
 */
#ifndef BASE_ENVIRONMENT_H
#define BASE_ENVIRONMENT_H

/* Remove each variable of this name; the text of a value stays where it is. */
void environment_forget(const char *name);

#endif
