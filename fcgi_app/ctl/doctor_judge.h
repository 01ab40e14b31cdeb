/*
 * doctor_judge - what the doctor makes of what it measured: which set-up this is, whether a stream streams. Pure.
 *
 * Source    hosting.md 0, 1, 7
 */
#ifndef CTL_DOCTOR_JUDGE_H
#define CTL_DOCTOR_JUDGE_H

#include "base/arena.h"

/* A web server and the way in which it runs the gateway. */
enum doctor_setup {
	DOCTOR_UNKNOWN,
	DOCTOR_APACHE, /* which module is not known */
	DOCTOR_FCGID,
	DOCTOR_FCGID_HTACCESS,
	DOCTOR_PROXY_FCGI,
	DOCTOR_APACHE_CGI,
	DOCTOR_CGI_HTACCESS,
	DOCTOR_LIGHTTPD, /* how is not known */
	DOCTOR_LIGHTTPD_SPAWN,
	DOCTOR_LIGHTTPD_EXTERNAL,
	DOCTOR_LIGHTTPD_CGI,
	DOCTOR_NGINX,
	DOCTOR_SETUP__MAX
};

struct doctor_setup_row {
	const char *id, *name; /* the id is that of README.md's table */
	const char *file;      /* where its settings stand */
	const char *auth;      /* ... and who may call */
};
extern const struct doctor_setup_row doctor_judge_setups[DOCTOR_SETUP__MAX];

/* What the gateway told of a request: its echo (doctor.h). */
struct doctor_seen {
	struct span version, mode, route, client, auth_mode, user_variable, authorization,
	    store_error;
	struct span software, role, script_name, path_info, script_filename, document_root,
	    auth_type;
	bool admin, api_key;
	int64_t pid;
};

/* Read the echo; false: it is none. Lives in the arena. */
bool doctor_judge_seen(struct arena *arena, struct span json, struct doctor_seen *seen_out);

/* By what the gateway told. */
enum doctor_setup doctor_judge_setup(const struct doctor_seen *seen);
/* By the Server header alone. */
enum doctor_setup doctor_judge_server(struct span server);

enum doctor_flow {
	DOCTOR_STREAMS,
	DOCTOR_AT_ONCE, /* all events together */
	DOCTOR_LUMPS,   /* some together */
	DOCTOR_CUT,     /* not all came */
};

/* n of `wanted` events: when each was sent and when it came, ms, by two clocks; gap_ms between the sendings. */
struct doctor_arrivals {
	const int64_t *sent, *came;
	size_t n, wanted;
	int64_t gap_ms;
};
/* *late_out: the most that an event lay about, more than the quickest, ms. */
enum doctor_flow doctor_judge_flow(const struct doctor_arrivals *a, int64_t *late_out);

/* The "ms" of each event of a stream; how many were read. */
size_t doctor_judge_sent(struct span stream, int64_t *sent, size_t max);

#endif
