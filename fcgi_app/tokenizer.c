#include "tokenizer.h"

#include "base/clock.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM "/proc/self/exe"

/* Without the slash at its end. A program that was replaced is called "... (deleted)", in the same folder. */
static bool
program_folder(char path[PATH_MAX], struct span *folder_out)
{
	ssize_t n = readlink(PROGRAM, path, PATH_MAX - 1);

	while (n > 0 && path[n - 1] != '/')
		n--;
	if (n <= 0)
		return false;
	*folder_out = (struct span){path, (size_t)n - 1};
	return true;
}

static bool
is_trusted(const char *path)
{
	struct stat st, program;

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return false;
	return st.st_uid == 0 || st.st_uid == geteuid() ||
	       (stat(PROGRAM, &program) == 0 && program.st_uid == st.st_uid);
}

static bool
is_there(char path[PATH_MAX], struct span folder, const char *below)
{
	int n = snprintf(path, PATH_MAX, "%.*s%s/" TOKENIZER_FILE, (int)folder.n, folder.p, below);

	return n > 0 && n < PATH_MAX && is_trusted(path);
}

bool
tokenizer_find(const char *state_dir, char path_out[PATH_MAX])
{
	char program[PATH_MAX];
	struct span own;

	if (program_folder(program, &own) &&
	    (is_there(path_out, own, "") || is_there(path_out, own, "/../share/sluice") ||
	        is_there(path_out, own, "/../../share/sluice")))
		return true;
	return (state_dir[0] != '\0' && is_there(path_out, text_span(state_dir), "/..")) ||
	       is_there(path_out, SPAN("/usr/local"), "/share/sluice") ||
	       is_there(path_out, SPAN("/usr"), "/share/sluice");
}

static void
tell(const struct serve *s, const char *path, const char *why)
{
	log_fields(s->log, LOG_LEVEL_WARN, clock_wall(),
	    "tokens are estimated: their tables cannot be read", LOG_Z("file", path),
	    LOG_Z("why", why));
}

struct tokens *
tokenizer_of(struct serve *s)
{
	char path[PATH_MAX] = "";
	struct why why;

	if (!s->tokens_sought && tokenizer_find(s->conf->state_dir.p, path) &&
	    tokens_open(path, &s->tokens, &why) != ERR_OK) {
		s->tokens = NULL;
		tell(s, path, why.text);
	}
	s->tokens_sought = true;
	/* it stays open: the running request has its address */
	if (s->tokens != NULL && !s->tokens_lost && tokens_are_lost(s->tokens)) {
		s->tokens_lost = true;
		tell(s, path, "the file was cut while it was in use; a reload takes it anew");
	}
	return s->tokens;
}
