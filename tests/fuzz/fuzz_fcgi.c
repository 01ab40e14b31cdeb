/*
 * A peer's bytes, in two pieces, through the guard and libfcgi, which must never end the process: no more of a body is read than came, and what goes back are whole records.
 */
#include "base/clock.h"
#include "base/err.h"
#include "fcgi.h"

#include <fcgiapp.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MUST(condition) ((condition) ? (void)0 : die("%s", #condition))
#define MOST 60000 /* what a socket takes at once */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
check_back(int fd)
{
	static uint8_t back[1 << 18];
	size_t n = 0, at = 0;
	ssize_t got;

	while ((got = recv(fd, back + n, sizeof back - n, MSG_DONTWAIT)) > 0)
		n += (size_t)got;
	while (at < n) {
		MUST(at + 8 <= n && back[at] == 1);
		at += 8 + (size_t)back[at + 4] * 256 + back[at + 5] + back[at + 6];
	}
	MUST(at == n);
}

static void
serve(struct exchange *x, size_t most)
{
	char body[999];
	ssize_t got;
	size_t n = 0;

	for (char **p = x->params; *p != NULL; p++)
		MUST(strchr(*p, '=') != NULL);
	while ((got = x->read(x->io, body, sizeof body)) > 0)
		n += (size_t)got;
	MUST(n <= most);
	x->write(x->io, body, sizeof body);
	x->flush(x->io);
	x->write(x->io, body, n < sizeof body ? n : sizeof body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct watch watch;
	static struct fcgi *fcgi;
	struct exchange *x;
	struct why why;
	size_t first = n == 0 ? 0 : bytes[n - 1] % (n + 1);
	int pair[2];

	if (fcgi == NULL) {
		MUST(FCGX_Init() == 0 && watch_open(&watch, 1000) >= 0);
		fcgi = fcgi_new(&watch, clock_mono, -1);
	}
	if (n > MOST || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		return 0;
	MUST(send(pair[1], bytes, first, MSG_NOSIGNAL) >= 0);
	MUST(send(pair[1], bytes + first, n - first, MSG_NOSIGNAL) >= 0);
	shutdown(pair[1], SHUT_WR);
	x = fcgi_begin(fcgi, pair[0], 100, &why);
	if (x != NULL) {
		serve(x, n);
		fcgi_end(fcgi);
	}
	check_back(pair[1]);
	close(pair[1]);
	return 0;
}
