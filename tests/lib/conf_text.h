/*
 * conf_text - a configuration from a text, for tests of what works with one.
 */
#ifndef TESTS_LIB_CONF_TEXT_H
#define TESTS_LIB_CONF_TEXT_H

#include "conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Load `json`, in which ' stands for ". The file is in `dir` and is gone on return; a fault ends the test program. */
static inline struct conf *
conf_text(const char *dir, const char *json)
{
	struct why why = {""};
	struct conf *conf = NULL;
	char path[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/test.json", dir);
	f = fopen(path, "w");
	if (f == NULL)
		die("cannot write %s", path);
	for (const char *p = json; *p != '\0'; p++)
		fputc(*p == '\'' ? '"' : *p, f);
	fclose(f);
	chmod(path, 0600);
	if (conf_load(path, &conf, NULL, &why) != ERR_OK)
		die("%s", why.text);
	unlink(path);
	return conf;
}

/* The same in a directory of its own, for tests that need no other. */
static inline struct conf *
conf_alone(const char *json)
{
	char dir[] = "/tmp/sluice-conf-XXXXXX";
	struct conf *conf;

	if (mkdtemp(dir) == NULL)
		die("no temporary directory");
	conf = conf_text(dir, json);
	rmdir(dir);
	return conf;
}

#endif
