/*
 * doctor_row - what the checks of `sluicectl doctor` share: what is known so far, and how a check says what it found.
 *
 * A check is one row of the table in doctor_run.c. It says one thing, in one sentence: ok, a note, or a problem, which has
 * a trouble and with it a remedy.
 */
#ifndef CTL_DOCTOR_ROW_H
#define CTL_DOCTOR_ROW_H

#include "ctl/attach.h"
#include "ctl/doctor_call.h"
#include "ctl/doctor_remedy.h"
#include "doctor_pass.h"

enum doctor_result { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_PROBLEM };

struct doctor_finding {
	enum doctor_result result;
	enum doctor_trouble trouble;
	char text[700];
};

struct doctor {
	struct ctl *ctl;
	struct doctor_peer peer; /* url NULL: only what is here */
	int64_t silence_ms;      /* how long a silence to try */
	struct arena *arena;
	struct attach a;
	char nonce[DOCTOR_NONCE]; /* "" = none could be made */
	int pass_fd;

	/* what the checks found out, for those that come after */
	bool has_state;             /* a store is there, and we act as its owner */
	bool reached;               /* by HTTP */
	bool there;                 /* it is the gateway, or may be */
	bool echoed;                /* it told what it sees: `seen` */
	bool collected;             /* a stream does not stream, compressed or not */
	bool interrupted;           /* by a signal: nothing more is to be done */
	struct doctor_answer hello; /* to the first request, without its body */
	struct doctor_seen seen;
	enum doctor_setup setup;

	struct doctor_finding found;
	struct buf measured; /* JSON for programs, or empty */
};

void doctor_ok(struct doctor *d, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* DOCTOR_NO_TROUBLE: there is nothing to do. */
void doctor_note(struct doctor *d, enum doctor_trouble trouble, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void doctor_problem(struct doctor *d, enum doctor_trouble trouble, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Ask, with the operator's nonce; limit_ms 0 is the usual limit. Release the answer. */
void doctor_ask(struct doctor *d, const struct doctor_call *call, struct doctor_answer *answer_out);
/* "HTTP 502 of the web server", "no answer: connection refused", in `text`. */
#define DOCTOR_OUTCOME 360
void doctor_outcome(const struct doctor_answer *answer, char text[DOCTOR_OUTCOME]);
/* Not let in. */
bool doctor_is_refused(const struct doctor_answer *answer);
/* What the gateway's own error says: its code, or empty. Lives in the arena. */
struct span doctor_code(struct doctor *d, const struct doctor_answer *answer);

#endif
