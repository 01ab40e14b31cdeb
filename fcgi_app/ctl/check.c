#include "ctl/check.h"

#include "base/emit.h"
#include "conf/conf.h"
#include "conf/options.h"

#include <limits.h>
#include <string.h>

#define OUTPUT_BYTES ((size_t)256 << 20)

static const char check_help[] =
    "usage: sluicectl [-c FILE] check [-v] [--json] [FILE]\n"
    "\n"
    "Read the configuration and report every fault in it, with file, line and key. Exits 1 if there is any.\n"
    "  -v, --print   then print the effective configuration, keys masked; it parses to the same\n"
    "  --json        one JSON object instead\n"
    "\n"
    "example: sluicectl check /etc/sluice/sluice.json\n";

static const char options_help[] = "usage: sluicectl options [--json | --example]\n"
                                   "\n"
                                   "List every setting: path, type, default, bounds and meaning.\n"
                                   "  --json      as a JSON array\n"
                                   "  --example   as a configuration file with every default\n"
                                   "\n"
                                   "example: sluicectl options | grep -A 2 cooldown\n";

struct checked {
	const char *file;
	struct conf *conf; /* NULL if there are faults */
	struct conf_report report;
	bool print;
};

static size_t
count_accounts(const struct conf *conf)
{
	size_t n = 0;

	for (size_t i = 0; i < conf->nchannels; i++)
		n += conf->channels[i].naccounts;
	return n;
}

static void
write_out(struct ctl *ctl, struct buf *text)
{
	fwrite(text->p, 1, text->n, ctl->out);
	buf_release(text);
}

static void
tell(struct ctl *ctl, const struct checked *checked)
{
	const struct conf *conf = checked->conf;
	struct buf text;

	for (size_t i = 0; i < checked->report.n; i++)
		fprintf(ctl->err, "%s%s\n",
		    checked->report.at[i].level == CONF_NOTE ? "note: " : "",
		    checked->report.at[i].text);
	if (checked->report.faults > checked->report.n)
		fprintf(ctl->err, "%s: %zu faults in all\n", checked->file, checked->report.faults);
	if (conf != NULL && checked->print) {
		buf_init(&text, OUTPUT_BYTES);
		conf_print(conf, &text);
		write_out(ctl, &text);
	} else if (conf != NULL) {
		fprintf(ctl->out, "%s: ok (channels %zu, accounts %zu, models %zu", checked->file,
		    conf->nchannels, count_accounts(conf), conf->nmodels);
		if (conf->models_file.n > 0)
			fprintf(ctl->out, ", names in models_file %zu", conf->nfacts);
		fputs(")\n", ctl->out);
	}
}

static void
emit_findings(struct emit *e, const struct conf_report *report)
{
	emit_array(e, "findings");
	for (size_t i = 0; i < report->n; i++) {
		emit_object(e, NULL);
		emit_z(e, "level", report->at[i].level == CONF_NOTE ? "note" : "fault");
		emit_z(e, "text", report->at[i].text);
		emit_end(e);
	}
	emit_end(e);
}

static void
tell_json(struct ctl *ctl, const struct checked *checked)
{
	const struct conf *conf = checked->conf;
	struct buf text, printed;
	struct emit e;

	buf_init(&text, OUTPUT_BYTES);
	buf_init(&printed, OUTPUT_BYTES);
	emit_init(&e, &text);
	emit_object(&e, NULL);
	emit_bool(&e, "ok", conf != NULL);
	emit_z(&e, "file", checked->file);
	emit_findings(&e, &checked->report);
	if (conf != NULL) {
		emit_i64(&e, "channels", (int64_t)conf->nchannels);
		emit_i64(&e, "accounts", (int64_t)count_accounts(conf));
		emit_i64(&e, "models", (int64_t)conf->nmodels);
		emit_i64(&e, "names_in_models_file", (int64_t)conf->nfacts);
	}
	if (conf != NULL && checked->print) {
		conf_print(conf, &printed);
		emit_raw(&e, "configuration", text_trim(buf_text(&printed)));
	}
	emit_end(&e);
	buf_char(&text, '\n');
	write_out(ctl, &text);
	buf_release(&printed);
}

static int
check_file(struct ctl *ctl, const char *given, bool print)
{
	struct checked checked = {.print = print};
	char path[PATH_MAX];
	struct why why;

	if (conf_find(given, path, sizeof path, &why) != ERR_OK) {
		fprintf(ctl->err, "%s\n", why.text);
		return CTL_FAILED;
	}
	checked.file = path;
	if (conf_load(path, &checked.conf, &checked.report, &why) != ERR_OK &&
	    checked.report.n == 0)
		fprintf(ctl->err, "%s\n", why.text);
	if (ctl->json)
		tell_json(ctl, &checked);
	else
		tell(ctl, &checked);
	conf_report_release(&checked.report);
	if (checked.conf == NULL)
		return CTL_FAILED;
	conf_free(&checked.conf);
	return CTL_DONE;
}

static int
misuse(struct ctl *ctl, const char *help, const char *argument)
{
	fprintf(ctl->err, "unexpected argument '%s'\n%s", argument, help);
	return CTL_USAGE;
}

int
check_run(struct ctl *ctl, int argc, char **argv)
{
	const char *file = NULL;
	bool print = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(check_help, ctl->out);
			return CTL_DONE;
		}
		if (strcmp(argv[i], "--json") == 0)
			ctl->json = true;
		else if (strcmp(argv[i], "-v") == 0 || strcmp(argv[i], "--print") == 0)
			print = true;
		else if (argv[i][0] == '-' || file != NULL)
			return misuse(ctl, check_help, argv[i]);
		else
			file = argv[i];
	}
	return check_file(ctl, file != NULL ? file : ctl->conf_given, print);
}

int
check_options_run(struct ctl *ctl, int argc, char **argv)
{
	bool example = false;
	struct buf text;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(options_help, ctl->out);
			return CTL_DONE;
		}
		if (strcmp(argv[i], "--json") == 0)
			ctl->json = true;
		else if (strcmp(argv[i], "--example") == 0)
			example = true;
		else
			return misuse(ctl, options_help, argv[i]);
	}
	buf_init(&text, OUTPUT_BYTES);
	if (example)
		options_print_example(&text);
	else if (ctl->json)
		options_print_json(&text);
	else
		options_print_table(&text);
	write_out(ctl, &text);
	return CTL_DONE;
}
