#include "ctl/args.h"

#include "conf/nearest.h"

#include <string.h>

void
args_guess(struct ctl *ctl, const struct args_guess *guess)
{
	struct nearest nearest;
	const char *name;
	char text[400];

	nearest_init(&nearest, text_span(guess->word));
	for (size_t i = 0; (name = guess->name(i, guess->arg)) != NULL; i++)
		nearest_offer(&nearest, text_span(name));
	nearest_text(&nearest, text, sizeof text);
	fprintf(ctl->err, "sluicectl: no %s '%s'; %s\n", guess->what, guess->word, text);
}

struct option_list {
	const struct args_option *options;
	size_t n;
};

static const char *
option_name(size_t i, const void *arg)
{
	const struct option_list *list = arg;

	if (i == list->n)
		return "--json";
	return i < list->n ? list->options[i].name : NULL;
}

static bool
unknown_option(struct ctl *ctl, const char *word, const struct option_list *list)
{
	struct args_guess guess = {"option", word, option_name, list};

	args_guess(ctl, &guess);
	return false;
}

/* *used_out: words taken behind the option's own. */
static bool
take_value(struct ctl *ctl, const struct args_option *option, const char *value, int *used_out)
{
	*used_out = option->text != NULL || option->number != NULL;
	if (option->flag != NULL)
		*option->flag = true;
	if (*used_out == 0)
		return true;
	if (value == NULL || (option->text != NULL && value[0] == '\0')) {
		fprintf(ctl->err, "sluicectl: %s wants a value\n", option->name);
		return false;
	}
	if (option->text != NULL)
		*option->text = value;
	else if (!text_i64(text_span(value), option->min, option->max, option->number)) {
		fprintf(ctl->err, "sluicectl: %s wants a number from %lld to %lld, not '%s'\n",
		    option->name, (long long)option->min, (long long)option->max, value);
		return false;
	}
	return true;
}

static bool
take_option(struct ctl *ctl, char **at, const struct option_list *list, int *used_out)
{
	*used_out = 0;
	if (strcmp(at[0], "--json") == 0) {
		ctl->json = true;
		return true;
	}
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(at[0], list->options[i].name) == 0)
			return take_value(ctl, &list->options[i], at[1], used_out);
	return unknown_option(ctl, at[0], list);
}

bool
args_read(struct ctl *ctl, int *argc, char **argv, const struct args_option *options, size_t n)
{
	struct option_list list = {options, n};
	bool ended = false;
	int words = 1, used;

	for (int i = 1; i < *argc; i++) {
		if (ended || argv[i][0] != '-' || argv[i][1] == '\0') {
			argv[words++] = argv[i];
		} else if (strcmp(argv[i], "--") == 0) {
			ended = true;
		} else {
			if (!take_option(ctl, &argv[i], &list, &used))
				return false;
			i += used;
		}
	}
	argv[words] = NULL;
	*argc = words;
	return true;
}

bool
args_only(struct ctl *ctl, int argc, char **argv, const struct args_option *options, size_t n)
{
	if (!args_read(ctl, &argc, argv, options, n))
		return false;
	if (argc == 1)
		return true;
	fprintf(ctl->err, "sluicectl: '%s' takes no '%s'; see --help\n", argv[0], argv[1]);
	return false;
}

struct verb_list {
	const struct args_verb *verbs;
	size_t n;
};

static const char *
verb_name(size_t i, const void *arg)
{
	const struct verb_list *list = arg;

	return i < list->n ? list->verbs[i].name : NULL;
}

int
args_verb_run(struct ctl *ctl, int argc, char **argv, const struct args_verb *verbs, size_t n)
{
	struct verb_list list = {verbs, n};
	char what[64];
	struct args_guess guess = {what, argc > 1 ? argv[1] : "", verb_name, &list};

	for (size_t i = 0; argc > 1 && i < n; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(ctl, argc - 1, argv + 1);
	snprintf(what, sizeof what, "command of %s", argv[0]);
	if (argc > 1)
		args_guess(ctl, &guess);
	for (size_t i = 0; i < n; i++)
		fprintf(ctl->err, "%s sluicectl %s %s %s\n", i == 0 ? "usage:" : "      ", argv[0],
		    verbs[i].name, verbs[i].usage);
	return CTL_USAGE;
}
