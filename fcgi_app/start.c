#include "start.h"

#include "base/clock.h"
#include "base/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool
start_failed(const char *text)
{
	fprintf(stderr, "sluice: %s\n", text);
	return false;
}

bool
start_conf(const char *given, char path_out[PATH_MAX], struct conf **conf_out)
{
	struct conf_report report = {.n = 0};
	struct why why;
	bool ok;

	if (conf_find(given, path_out, PATH_MAX, &why) != ERR_OK)
		return start_failed(why.text);
	ok = conf_load(path_out, conf_out, &report, &why) == ERR_OK;
	for (size_t i = 0; i < report.n && !ok; i++)
		start_failed(report.at[i].text);
	if (!ok && report.n == 0)
		start_failed(why.text);
	conf_report_release(&report);
	return ok;
}

static bool
open_log(const struct conf *conf, struct log **log_out)
{
	struct log *log = log_open(
	    conf->log.target.p, (enum log_level)conf->log.level, conf->log.format == CONF_LOG_JSON);
	struct why why;

	if (log == NULL) {
		err_why(
		    &why, "cannot open log.target '%s': %s", conf->log.target.p, strerror(errno));
		return start_failed(why.text);
	}
	*log_out = log;
	return true;
}

bool
start_user(const struct conf *conf, struct log **log_out)
{
	bool stayed_root = false;
	struct why why;

	if (sandbox_drop_root(conf->server.user.p, conf->path.p, &stayed_root, &why) != ERR_OK)
		return start_failed(why.text);
	if (!open_log(conf, log_out))
		return false;
	if (stayed_root)
		log_fields(*log_out, LOG_LEVEL_WARN, clock_wall(),
		    "running as root: set server.user, or let another user own the configuration",
		    LOG_TEXT("configuration", conf->path));
	return true;
}
