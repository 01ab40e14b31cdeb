#include "ctl/doctor_local.h"

#include "base/clock.h"
#include "store/disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAID 480

enum step { STEP_CONF, STEP_OWNER, STEP_STORE };

/* Run a step of attach.h and catch what it would print. */
static bool
attach_step(struct doctor *d, enum step step, char said[SAID])
{
	struct ctl quiet = *d->ctl;
	char *text = NULL;
	struct span span;
	size_t n = 0;
	bool ok = false;

	quiet.err = open_memstream(&text, &n);
	if (quiet.err == NULL)
		die("no memory");
	switch (step) {
	case STEP_CONF: ok = attach_conf(&quiet, &d->a); break;
	case STEP_OWNER: ok = attach_owner(&quiet, d->a.conf); break;
	case STEP_STORE: ok = attach_store(&quiet, &d->a, false); break;
	}
	fclose(quiet.err);
	span = text_trim((struct span){text, n});
	if (text_starts(span, "sluicectl: "))
		span = text_from(span, strlen("sluicectl: "));
	text_clean(said, SAID, span);
	free(text);
	return ok;
}

/* A variable that a client could send never counts; who names one waits for it in vain. */
static struct span
forgeable_variable(const struct conf *conf)
{
	for (size_t i = 0; i < conf->auth.user_variables.n; i++)
		if (text_starts(conf->auth.user_variables.at[i], "HTTP_"))
			return conf->auth.user_variables.at[i];
	return (struct span){"", 0};
}

void
doctor_local_conf(struct doctor *d)
{
	struct span variable;
	char said[SAID];

	if (!attach_step(d, STEP_CONF, said)) {
		doctor_problem(d, DOCTOR_CONFIG, "%s", said);
		return;
	}
	variable = forgeable_variable(d->a.conf);
	if (variable.n > 0)
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "auth.user_variables names %.*s, which a client could send: it never counts",
		    (int)variable.n, variable.p);
	else
		doctor_ok(d, "it loads: %zu channels", d->a.conf->nchannels);
}

void
doctor_local_state_dir(struct doctor *d)
{
	const char *dir = d->a.conf->state_dir.p;
	struct store_why why;
	enum store_rc rc;
	struct stat st;
	char said[SAID];

	if (stat(dir, &st) != 0) {
		if (errno == ENOENT)
			doctor_note(d, DOCTOR_NO_TROUBLE,
			    "'%s' is not there yet: the gateway makes it when it first runs", dir);
		else
			doctor_problem(d, DOCTOR_STATE_DIR, "'%s': %s", dir, strerror(errno));
		return;
	}
	if (!attach_step(d, STEP_OWNER, said)) {
		doctor_problem(d, DOCTOR_STATE_DIR, "%s", said);
		return;
	}
	rc = disk_dir(dir, false, &why);
	d->has_state = rc == STORE_OK;
	if (rc != STORE_OK && rc != STORE_NONE)
		doctor_problem(d, DOCTOR_STATE_DIR, "%s", why.text);
	else if (rc == STORE_NONE)
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "no store in '%s' yet: the gateway makes it when it first runs", dir);
	else if (why.text[0] != '\0')
		doctor_note(d, DOCTOR_NO_TROUBLE, "%s", why.text);
	else
		doctor_ok(d, "'%s' is private, writable for user %u, on a local disk", dir,
		    (unsigned)geteuid());
}

void
doctor_local_store(struct doctor *d)
{
	char said[SAID];

	if (attach_step(d, STEP_STORE, said))
		doctor_ok(d, "it opens");
	else
		doctor_problem(d, DOCTOR_STORE, "%s", said);
	attach_leave(&d->a);
}

void
doctor_local_pass(struct doctor *d, struct why *why)
{
	char said[SAID];

	if (d->nonce[0] != '\0')
		return;
	if (d->a.conf == NULL) {
		err_why(why, "the configuration does not load here");
		return;
	}
	/* a gateway that had never run may have made it meanwhile */
	if (!d->has_state && !attach_step(d, STEP_OWNER, said)) {
		err_why(why, "%s", said);
		return;
	}
	if (doctor_pass_make(d->a.conf->state_dir.p, clock_wall(), d->nonce, &d->pass_fd, why) !=
	    ERR_OK)
		d->nonce[0] = '\0';
}
