/*
 * probe_run - ask accounts and write down what came of it: the two jobs, and `sluicectl probe`.
 *
 * A run asks a few accounts, from where the last one stopped, each with a transaction of its own. It ends early where
 * a request waits (errand.h): an account whose answer was given up is asked again in the next round, not in this one,
 * so that one silent provider does not keep the others from being asked.
 *
 * Cursor    place of the next account among all of the configuration, 0 = the round is over
 * Source    SPEC.md section 10
 */
#ifndef PROBE_RUN_H
#define PROBE_RUN_H

#include "probe.h"
#include "serve.h"

enum probe_round { PROBE_RECOVERY, PROBE_ACTIVE };

/* A part of a round; true: there is more to do. */
bool probe_run(struct serve *s, enum probe_round round, uint64_t *cursor);

struct probe_report {
	enum probe_way way;
	enum probe_result result; /* PROBE_NEVER: given up, or not written */
	enum verdict verdict;
	int status;
	char model[256]; /* of a chat */
	char why[256];   /* the provider's words, "" = healthy */
};

/* Now, whatever the account's state: by chat where a model is known and `chat`, else by GET /models. */
void probe_run_one(
    struct serve *s, size_t channel, size_t account, bool chat, struct probe_report *report_out);

#endif
