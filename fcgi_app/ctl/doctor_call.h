/*
 * doctor_call - one HTTP request of `sluicectl doctor` to the web server, and when what came back.
 *
 * No redirect is followed, no proxy used, the path sent as it is. A call may be interrupted: SIGINT and SIGTERM are blocked
 * by who uses this, and one that is pending ends the call.
 *
 * Units     milliseconds since the request began
 * Memory    the body belongs to the answer: doctor_call_release()
 */
#ifndef CTL_DOCTOR_CALL_H
#define CTL_DOCTOR_CALL_H

#include "base/buf.h"

#define DOCTOR_CALL_EVENTS 64
#define DOCTOR_CALL_HEADERS 8

enum doctor_fault {
	DOCTOR_FAULT_NONE,
	DOCTOR_FAULT_CONNECT, /* no name, no connection */
	DOCTOR_FAULT_TLS,
	DOCTOR_FAULT_TIMEOUT,
	DOCTOR_FAULT_BROKEN, /* the connection ended inside the answer, or before it */
	DOCTOR_FAULT_INTERRUPTED,
};

/* The same for all calls of a run. */
struct doctor_peer {
	const char *url;          /* without a slash at its end */
	const char *token, *user; /* "NAME:PASSWORD"; NULL = none */
	const char *ca_file;      /* NULL = the system's */
	bool insecure, http2;
};

struct doctor_call {
	const char *path;                         /* below the URL, with its query */
	bool anonymous;                           /* without the peer's credentials */
	bool compressed;                          /* Accept-Encoding: gzip, deflate */
	bool chunked;                             /* the body comes without a length */
	struct span body;                         /* with p NULL: GET, else POST */
	const char *headers[DOCTOR_CALL_HEADERS]; /* "Name: value", NULL behind the last */
	int64_t limit_ms;
};

struct doctor_answer {
	enum doctor_fault fault;
	char error[256]; /* of a fault, for people */
	int status;      /* 0 = none */
	int version;     /* 10, 11, 20, 30 */
	char server[128], content_type[96], encoding[32], location[256], service[16];
	char cache_control[64], accel[16];
	bool ours; /* the gateway itself answered: it names each request and its attempts */
	struct buf body;
	int64_t first_ms, end_ms; /* of the body; -1 = none */
	size_t nevents;           /* whole ones, the end mark left out */
	int64_t arrived[DOCTOR_CALL_EVENTS];
	bool done; /* the end mark came */
};

void doctor_call_run(const struct doctor_peer *peer, const struct doctor_call *call,
    struct doctor_answer *answer_out);
void doctor_call_release(struct doctor_answer *answer);

#endif
