#include "conf/conf.h"
#include "conf/source.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static const char system_wide[] = "/etc/sluice/sluice.json";

/* Without /proc: the name by which it was started, as long as nobody has left the directory. */
static bool
own_path(char self[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
	const char *started = (const char *)getauxval(AT_EXECFN);

	if (n > 0)
		self[n] = '\0';
	return n > 0 || (started != NULL && realpath(started, self) != NULL);
}

static bool
beside_binary(char *dst, size_t cap)
{
	char self[PATH_MAX];
	char *slash;

	if (!own_path(self))
		return false;
	slash = strrchr(self, '/');
	if (slash == NULL)
		return false;
	*slash = '\0';
	return (size_t)snprintf(dst, cap, "%s/sluice.json", self) < cap;
}

static bool
below_home(char *dst, size_t cap)
{
	struct passwd entry, *found = NULL;
	char room[4096];

	if (getpwuid_r(geteuid(), &entry, room, sizeof room, &found) != 0 || found == NULL)
		return false;
	return (size_t)snprintf(dst, cap, "%s/.config/sluice/sluice.json", found->pw_dir) < cap;
}

/* What was named outright is taken, there or not: reading it tells why not. */
static enum err
take_named(const char *named, char *path_out, size_t cap, struct why *why)
{
	char here[PATH_MAX];
	int n;

	if (named[0] == '/')
		n = snprintf(path_out, cap, "%s", named);
	else if (getcwd(here, sizeof here) != NULL)
		n = snprintf(path_out, cap, "%s/%s", here, named);
	else
		n = -1;
	if (n < 0 || (size_t)n >= cap) {
		err_why(
		    why, "the path '%.200s' is too long, or there is no current directory", named);
		return ERR_BAD_INPUT;
	}
	return ERR_OK;
}

enum err
conf_find(const char *given, char *path_out, size_t cap, struct why *why)
{
	const char *variable = getenv("SLUICE_CONFIG");
	bool (*const places[2])(char *, size_t) = {beside_binary, below_home};
	char at[2][PATH_MAX];
	bool have[2] = {false, false};

	if (given != NULL)
		return take_named(given, path_out, cap, why);
	if (variable != NULL && *variable != '\0')
		return take_named(variable, path_out, cap, why);
	for (size_t i = 0; i < NELEM(at); i++) {
		have[i] = places[i](at[i], PATH_MAX);
		if (have[i] && access(at[i], F_OK) == 0)
			return take_named(at[i], path_out, cap, why);
	}
	if (access(system_wide, F_OK) == 0)
		return take_named(system_wide, path_out, cap, why);
	err_why(why,
	    "no configuration: no -c, SLUICE_CONFIG is not set, and there is no %.100s, %.100s or %s",
	    have[0] ? at[0] : "sluice.json", have[1] ? at[1] : "~/.config/sluice/sluice.json",
	    system_wide);
	return ERR_NOT_FOUND;
}

bool
conf_changed(const struct conf *conf)
{
	for (const struct source *s = conf->sources; s != NULL; s = s->next)
		if (source_changed(s))
			return true;
	return false;
}

static bool
is_in_dir(const struct source *s, struct span dir)
{
	struct span path = text_span(s->path);

	return dir.n > 0 && path.n >= dir.n && memcmp(path.p, dir.p, dir.n) == 0 &&
	       (path.n == dir.n || path.p[dir.n] == '/');
}

bool
conf_dirs_changed(const struct conf *conf)
{
	for (size_t c = 0; c < conf->nchannels; c++)
		for (const struct source *s = conf->sources; s != NULL; s = s->next)
			if (is_in_dir(s, conf->channels[c].accounts_dir) && source_changed(s))
				return true;
	return false;
}

bool
conf_is_exposed(const struct conf *conf, struct span document_root)
{
	char root[PATH_MAX];

	if (document_root.n == 0 || document_root.n >= sizeof root ||
	    memchr(document_root.p, '\0', document_root.n) != NULL)
		return false;
	memcpy(root, document_root.p, document_root.n);
	root[document_root.n] = '\0';
	for (const struct source *s = conf->sources; s != NULL; s = s->next)
		if (source_is_below(s, root))
			return true;
	return false;
}
