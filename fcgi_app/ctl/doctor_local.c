#include "ctl/doctor_local.h"

#include "base/clock.h"
#include "dialect/tokens.h"
#include "store/disk.h"
#include "tokenizer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

void
doctor_local_conf(struct doctor *d)
{
	char said[SAID];

	if (!attach_step(d, STEP_CONF, said)) {
		doctor_problem(d, DOCTOR_CONFIG, "%s", said);
		return;
	}
	doctor_ok(d, "it loads: %zu channel%s", d->a.conf->nchannels,
	    d->a.conf->nchannels == 1 ? "" : "s");
}

/* A file, here or in a folder here, that is not `uid`'s; the gateway could not use it. */
static bool
find_stray(int at, uid_t uid, bool inside, char name_out[NAME_MAX + 1])
{
	DIR *dir = fdopendir(at);
	const struct dirent *e;
	bool found = false;
	struct stat st;
	int fd;

	while (dir != NULL && !found && (e = readdir(dir)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		found = st.st_uid != uid;
		if (found)
			snprintf(name_out, NAME_MAX + 1, "%s", e->d_name);
		else if (!inside && S_ISDIR(st.st_mode)) {
			fd = openat(
			    dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
			found = fd >= 0 && find_stray(fd, uid, true, name_out);
		}
	}
	if (dir != NULL)
		closedir(dir);
	else
		close(at);
	return found;
}

static bool
files_are_ours(struct doctor *d, const char *dir)
{
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];

	if (at < 0 || !find_stray(at, geteuid(), false, name))
		return true;
	doctor_problem(d, DOCTOR_STATE_DIR,
	    "'%s' in '%s' does not belong to user %u, who cannot use it: chown -R %u '%s'", name,
	    dir, (unsigned)geteuid(), (unsigned)geteuid(), dir);
	return false;
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
	if ((rc == STORE_OK || rc == STORE_NONE) && !files_are_ours(d, dir))
		return;
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
doctor_local_tokens(struct doctor *d)
{
	struct tokens *tokens = NULL;
	char path[PATH_MAX];
	struct why why;

	if (!tokenizer_find(d->a.conf->state_dir.p, path))
		doctor_note(d, DOCTOR_NO_TOKENS,
		    "no " TOKENIZER_FILE ": tokens are estimated for every model");
	else if (tokens_open(path, &tokens, &why) != ERR_OK)
		doctor_problem(d, DOCTOR_NO_TOKENS, "%s", why.text);
	else if (!tokens_are_whole(tokens))
		doctor_problem(d, DOCTOR_NO_TOKENS, "%s: it is damaged", path);
	else
		doctor_ok(d, "counted exactly for OpenAI's models, by '%s'", path);
	tokens_close(&tokens);
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
