/*
 * ctl - sluicectl: the one table of commands, and the way to them.
 *
 * Exit      0 done, 1 failed, 2 usage
 * Source    SPEC.md section 16
 */
#include "base/sandbox.h"
#include "base/text.h"
#include "ctl/account_verbs.h"
#include "ctl/books.h"
#include "ctl/channel_verbs.h"
#include "ctl/check.h"
#include "ctl/context_verbs.h"
#include "ctl/daemon.h"
#include "ctl/doctor_run.h"
#include "ctl/errands.h"
#include "ctl/explain_run.h"
#include "ctl/limits.h"
#include "ctl/models_run.h"
#include "ctl/session_verbs.h"
#include "ctl/show.h"
#include "ctl/tokens_run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command {
	const char *name;
	int (*run)(struct ctl *ctl, int argc, char **argv);
	const char *arguments, *help, *example;
} table[] = {
    {"check", check_run, "[-v] [--json] [FILE]", "read the configuration and print every fault",
        "sluicectl check"},
    {"options", check_options_run, "[--json | --example]",
        "every setting: type, default, bounds, meaning", "sluicectl options | grep cooldown"},
    {"start", daemon_start_run,
        "[--listen ADDR] [--workers N] [--socket-mode MODE] [--program FILE] [--json]",
        "run a pool under your own account, unless one runs already",
        "@reboot sluicectl -c /etc/sluice/sluice.json start >/dev/null"},
    {"stop", daemon_stop_run, "[--json]", "end the pool; running answers may end first",
        "sluicectl stop"},
    {"restart", daemon_restart_run, "[--json]",
        "let the running pool become the program and configuration on disk", "sluicectl restart"},
    {"status", show_status_run, "[--json]", "channels and accounts as they are now",
        "sluicectl status"},
    {"account", account_verbs_run,
        "list | show ID | credits ID N | enable|disable|revive|clear ID... [--all] [--channel C] [--realm R]",
        "look at accounts and change their state", "sluicectl account clear openai/a1"},
    {"channel", channel_verbs_run, "list | triggers NAME [TRIGGER...|none|default] [--json]",
        "breakers of channels, and what may open them", "sluicectl channel triggers openai none"},
    {"session", session_verbs_run, "list | drop HASH | drop [--client C] --id NAME  [--json]",
        "which conversation stays on which account", "sluicectl session drop 1f0e9a"},
    {"sessions", session_verbs_list, "[--json]", "the same as session list", "sluicectl sessions"},
    {"context", context_verbs_run,
        "list [--client C] | show ONE | export ONE [-o FILE] | drop ONE | drop HASH... | "
        "drop --client C | drop --all [--yes]  [--json]\n"
        "       ONE is HASH, as list shows it, or [--client C] --id NAME",
        "the conversations that are kept for clients",
        "sluicectl context show --client alice --id talk-1"},
    {"explain", explain_run,
        "--model M [--task T] [--tokens N] [--session S] [--client C] [--realm R] [--json]",
        "who would serve a request now, and why each other account would not",
        "sluicectl explain --model gpt-4o"},
    {"models", models_run, "[--json]",
        "models, where they go, and how fast, sound and dear each is there", "sluicectl models"},
    {"limits", limits_run, "[--json]", "who rests until when, and why", "sluicectl limits"},
    {"costs", books_costs_run, "[--json]", "measured prices by account and model",
        "sluicectl costs"},
    {"usage", books_usage_run, "[--days N] [--json]",
        "requests, tokens and costs by day, client, account and model", "sluicectl usage --days 7"},
    {"events", show_events_run, "[-n N] [--json]", "what happened to accounts, newest last",
        "sluicectl events -n 50"},
    {"probe", errands_probe_run, "[ACCOUNT...] [--models] [--json]",
        "ask accounts now: healthy, rate_limited or failed", "sluicectl probe openai/a1"},
    {"tick", errands_tick_run, "[--json]", "run the periodic work that is due, for cron",
        "* * * * * sluicectl -c /etc/sluice/sluice.json tick >/dev/null"},
    {"degrade", errands_degrade_run, "[on | off | auto] [--json]",
        "refuse all requests with degrade.message, by hand", "sluicectl degrade on"},
    {"tokens", tokens_run, "--model M [FILE | -] [--json]", "how many tokens a text is for a model",
        "sluicectl tokens --model gpt-4o prompt.txt"},
    {"doctor", doctor_run,
        "[--url URL] [--token T | --user NAME[:PASSWORD]] [--ca-file FILE | --insecure] [--http2] [--long | --silence S] [--json]",
        "what is wrong here, or through the web server, and what mends it",
        "sluicectl doctor --url https://host/llm --token sl-..."},
    {"version", show_version_run, "[--json]", "the version of this program", "sluicectl version"},
};

static void
usage(FILE *to)
{
	fputs("usage: sluicectl [-c FILE] [--json] COMMAND ...\n\n", to);
	for (size_t i = 0; i < NELEM(table); i++)
		fprintf(to, "  %-8s  %s\n", table[i].name, table[i].help);
	fputs("\nsluicectl COMMAND --help shows its arguments and an example.\n", to);
}

static void
help(const struct command *command)
{
	printf("usage: sluicectl [-c FILE] %s %s\n\n%s\n\nexample:\n    %s\n", command->name,
	    command->arguments, command->help, command->example);
}

static int
unknown(const char *word)
{
	static const struct {
		const char *verb, *group;
	} verbs[] = {{"disable", "account"}, {"enable", "account"}, {"clear", "account"},
	    {"revive", "account"}, {"credits", "account"}, {"triggers", "channel"},
	    {"drop", "session"}, {"export", "context"}};
	const char *nearest = NULL, *group = "";
	size_t best = 4;

	for (size_t i = 0; i < NELEM(table); i++) {
		size_t distance = text_distance(text_span(table[i].name), text_span(word), 3);

		if (distance < best) {
			best = distance;
			nearest = table[i].name;
		}
	}
	for (size_t i = 0; i < NELEM(verbs); i++)
		if (strcmp(verbs[i].verb, word) == 0) {
			group = verbs[i].group;
			nearest = verbs[i].verb;
		}
	fprintf(stderr, "sluicectl: no command '%s'", word);
	if (nearest != NULL)
		fprintf(stderr, "; did you mean '%s%s%s'?", group, group[0] == '\0' ? "" : " ",
		    nearest);
	fputs("; see sluicectl --help\n", stderr);
	return CTL_USAGE;
}

static bool
wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

static int
run(struct ctl *ctl, int argc, char **argv)
{
	for (size_t i = 0; i < NELEM(table); i++) {
		if (strcmp(argv[0], table[i].name) != 0)
			continue;
		if (wants_help(argc, argv)) {
			help(&table[i]);
			return CTL_DONE;
		}
		return table[i].run(ctl, argc, argv);
	}
	return unknown(argv[0]);
}

int
main(int argc, char **argv)
{
	struct ctl ctl = {.out = stdout, .err = stderr};
	int at = 1;

	sandbox_begin();
	ctl.color = isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == NULL;
	while (at < argc && argv[at][0] == '-') {
		if (strcmp(argv[at], "-c") == 0 && at + 1 < argc) {
			ctl.conf_given = argv[at + 1];
			at += 2;
		} else if (strcmp(argv[at], "--json") == 0) {
			ctl.json = true;
			at++;
		} else {
			bool asked = wants_help(argc, argv);

			usage(asked ? stdout : stderr);
			return asked ? CTL_DONE : CTL_USAGE;
		}
	}
	if (at == argc) {
		usage(stderr);
		return CTL_USAGE;
	}
	return run(&ctl, argc - at, argv + at);
}
