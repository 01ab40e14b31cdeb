#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

static void
our_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGQUIT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGUSR2);
	sigaddset(set, SIGRTMIN);
}

int
watch_children(struct watch *watch)
{
	sigset_t set;

	our_signals(&set);
	sigaddset(&set, SIGCHLD);
	return signalfd(watch->signal_fd, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int
watch_open(struct watch *watch, int64_t drain_ms)
{
	sigset_t set;

	*watch = (struct watch){.signal_fd = -1, .client_fd = -1, .drain_ms = drain_ms};
	our_signals(&set);
	/* what a parent has blocked besides is let through */
	if (sigprocmask(SIG_SETMASK, &set, NULL) != 0)
		return -1;
	watch->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return watch->signal_fd;
}

static void
stop(struct watch *watch, struct mono_ms by)
{
	watch->stopping = true;
	watch->stop_by = by;
	watch->client_gone = watch->client_gone || watch->by_hangup;
}

void
watch_signals(struct watch *watch, struct mono_ms now)
{
	struct signalfd_siginfo info;

	while (read(watch->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo == SIGHUP) {
			watch->reload = true;
		} else if (info.ssi_signo == SIGUSR1) {
			watch->replace = true;
		} else if (info.ssi_signo == (uint32_t)SIGRTMIN) {
			watch->restart = true;
		} else if (info.ssi_signo == SIGQUIT) {
			watch->at_once = true;
			stop(watch, now);
		} else if (!watch->stopping &&
		           (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)) {
			/* a second signal does not start the drain anew */
			stop(watch, (struct mono_ms){now.v + watch->drain_ms});
		}
	}
}

void
watch_begin(struct watch *watch, int client_fd)
{
	watch->client_fd = client_fd;
	watch->client_gone = watch->by_hangup && watch->stopping;
	watch->half_closed = false;
}

short
watch_client_events(const struct watch *watch)
{
	/* a whole close is reported without being asked for */
	return watch->half_closed || watch->by_hangup ? 0 : POLLIN;
}

void
watch_client(struct watch *watch, struct mono_ms now)
{
	struct pollfd p = {
	    .fd = watch->client_fd, .events = watch->by_hangup ? 0 : POLLIN | POLLRDHUP};
	char byte;

	if (watch->client_fd < 0 || poll(&p, 1, 0) <= 0)
		return;
	if (p.revents & (POLLHUP | POLLERR | POLLNVAL)) {
		watch->client_gone = true;
		return;
	}
	if (watch->half_closed)
		return;
	if (recv(watch->client_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0) {
		watch->client_gone = true; /* an abort record, or a reset */
		return;
	}
	watch->half_closed = true;
	watch->half_closed_at = now;
}

bool
watch_is_late(const struct watch *watch, struct mono_ms now)
{
	return watch->deadline.v != 0 && now.v >= watch->deadline.v;
}

int64_t
watch_within(const struct watch *watch, int64_t ms, struct mono_ms now)
{
	int64_t left = watch->deadline.v - now.v;

	return watch->deadline.v != 0 && left < ms ? left : ms;
}

bool
watch_must_end(const struct watch *watch, struct mono_ms now)
{
	return watch->stopping && now.v >= watch->stop_by.v;
}

void
watch_sleep(struct watch *watch, int64_t ms, struct mono_ms (*clock)(void))
{
	struct mono_ms now = clock(), end = {now.v + watch_within(watch, ms, now)};

	while (now.v < end.v && !watch->client_gone && !watch_must_end(watch, now)) {
		struct pollfd p[2] = {{.fd = watch->signal_fd, .events = POLLIN},
		    {.fd = watch->client_fd, .events = watch_client_events(watch)}};
		int64_t left = end.v - now.v;

		if (watch->stopping && watch->stop_by.v < end.v)
			left = watch->stop_by.v - now.v;
		if (poll(p, watch->client_fd < 0 ? 1 : 2, (int)left) > 0) {
			if (p[0].revents != 0)
				watch_signals(watch, clock());
			if (watch->client_fd >= 0 && p[1].revents != 0)
				watch_client(watch, clock());
		}
		now = clock();
	}
}

bool
watch_wait(
    struct watch *watch, int fd, short events, struct mono_ms until, struct mono_ms (*clock)(void))
{
	for (;;) {
		struct pollfd p[2] = {
		    {.fd = watch->signal_fd, .events = POLLIN}, {.fd = fd, .events = events}};
		struct mono_ms now = clock();
		int64_t left = until.v - now.v;

		if (watch_must_end(watch, now) || left <= 0) {
			errno = left <= 0 ? EAGAIN : ECANCELED;
			return false;
		}
		if (watch->stopping && watch->stop_by.v - now.v < left)
			left = watch->stop_by.v - now.v;
		if (poll(p, 2, (int)(left < INT32_MAX ? left : INT32_MAX)) <= 0)
			continue;
		if (p[0].revents != 0)
			watch_signals(watch, now);
		if (p[1].revents != 0)
			return true;
	}
}
