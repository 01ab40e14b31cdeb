/*
 * daemon - a pool of one's own without root or systemd: `start`, `stop`, `restart`.
 *
 * They find the pool by state_dir/pool.pid (pidfile.h), so stop and restart also work on one that a web server or systemd
 * has started. Run as root, they become the user that the pool runs as.
 *
 * Source    SPEC.md section 2
 */
#ifndef CTL_DAEMON_H
#define CTL_DAEMON_H

#include "conf/conf.h"
#include "ctl/ctl_command.h"
#include "pidfile.h"

#include <limits.h>

/* In state_dir: standard error of a pool that was started from here. */
#define DAEMON_LOG "pool.log"

struct daemon {
	struct conf *conf;   /* NULL: it has a fault */
	char path[PATH_MAX]; /* of the configuration */
	char dir[PATH_MAX];  /* state_dir */
	int fd;              /* the pidfile; -1 = there is none */
	struct pidfile_text text;
};

/*
 * Configuration and pidfile, which is made when `create`. Else the pool is found also by a configuration with faults, which
 * are told. False: it was said why.
 */
bool daemon_open(struct ctl *ctl, struct daemon *d, bool create);
/* The state_dir of a configuration that does not load. False: it cannot be told. */
bool daemon_salvage(struct daemon *d);
void daemon_close(struct daemon *d);
/* The pid of the pool that runs, 0 = none, -1 = one without a pid here; d->text is read. */
pid_t daemon_pid(struct daemon *d);
/* True, and said: there is a pool, and it cannot be reached from here. */
bool daemon_is_foreign(struct ctl *ctl, struct daemon *d);
/* One line for people, or an object for programs: what was done, and the pool. */
void daemon_say(struct ctl *ctl, const struct daemon *d, const char *done, bool changed);
/* Wait until that process no longer holds the file. False: it still does after `ms`. */
bool daemon_wait_gone(struct ctl *ctl, struct daemon *d, pid_t pid, int64_t ms);

int daemon_start_run(struct ctl *ctl, int argc, char **argv);
int daemon_stop_run(struct ctl *ctl, int argc, char **argv);
int daemon_restart_run(struct ctl *ctl, int argc, char **argv);

#endif
