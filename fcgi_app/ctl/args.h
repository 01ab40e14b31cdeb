/*
 * args - words and options of a command, read from a table; what is misspelt is answered with the nearest valid word.
 *
 * --json is known to every command. Options may stand anywhere behind the command, "--" ends them.
 */
#ifndef CTL_ARGS_H
#define CTL_ARGS_H

#include "base/text.h"
#include "ctl/ctl_command.h"

#include <stdint.h>

/* One of `text` and `number` takes the word behind it; with neither it is a mere flag. */
struct args_option {
	const char *name; /* "--days" */
	const char **text;
	int64_t *number, min, max;
	bool *flag;
};

/*
 * Take the options off. argv[1..] is then the words alone, ended by NULL, and *argc their number + 1. False: it was
 * said what is wrong.
 */
bool args_read(
    struct ctl *ctl, int *argc, char **argv, const struct args_option *options, size_t n);
/* As args_read() for a command that takes no words. */
bool args_only(struct ctl *ctl, int argc, char **argv, const struct args_option *options, size_t n);

struct args_verb {
	const char *name;
	int (*run)(struct ctl *ctl, int argc, char **argv);
	const char *usage; /* what stands behind the name */
};
/* Run argv[1] of the group argv[0]. */
int args_verb_run(struct ctl *ctl, int argc, char **argv, const struct args_verb *verbs, size_t n);

/* "sluicectl: no WHAT 'word'; did you mean 'x'?" */
struct args_guess {
	const char *what, *word;
	const char *(*name)(size_t i, const void *arg); /* i-th valid name, NULL behind the last */
	const void *arg;
};
void args_guess(struct ctl *ctl, const struct args_guess *guess);

#endif
