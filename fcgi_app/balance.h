/*
 * balance - ask a channel's `balance.url` for the credits of each account, at the channel's times of day.
 *
 * What is paid for may serve again: credits above 0 end the rest of an account that was out of credit, and any rest of
 * one whose credits rose; the account's breaker stays, as it speaks of the chat path. A person's word acts alike.
 *
 * Due       the first of the channel's times since the account was last asked (or since this job ran first) is over.
 *           After a failure again 5 minutes later, BALANCE_TRIES times in all, then at the next of the times.
 * Cursor    when the job ran first, wall milliseconds
 * Source    SPEC.md sections 8 ("balance refresh"), 10
 */
#ifndef BALANCE_H
#define BALANCE_H

#include "serve.h"
#include "store/journal.h"

#define BALANCE_TRIES 6
#define BALANCE_RETRY_MS 300000
#define BALANCE_MOST 1e12 /* credits beyond it are a mistake */

/* Does any channel want it? */
bool balance_is_wanted(const struct conf *conf);
/* The time at which it is to be asked next; INT64_MAX = never. `first_run` as in the cursor. */
struct wall_ms balance_due(
    const struct conf_channel *channel, const struct account_stat *stat, struct wall_ms first_run);
/* The credits in an answer, in millionths; below 0 is 0. False: it has none at the pointer. */
bool balance_read(struct arena *arena, struct span body, struct span pointer, int64_t *micros_out);

struct balance_news {
	int64_t micros;
	bool had; /* they were known before: `before` */
	int64_t before;
	struct wall_ms now;
};
/* Put them into the rows. True: rests are over, those of models, too. */
bool balance_apply(
    struct account_row *row, struct account_stat *stat, const struct balance_news *news);

/* What is told of one account, and what came of it. */
struct balance_word {
	const struct pool *pool;
	size_t channel, account;
	int64_t micros;
	struct wall_ms now;
	const char *who; /* told it, for the journal */
	/* out */
	bool thawed;
	struct journal_row event; /* if thawed: journalled */
};
enum store_rc balance_write(struct txn *txn, struct balance_word *word) STORE_MUST_CHECK;

/* A part of the job; true: there is more to do. */
bool balance_run(struct serve *s, uint64_t *cursor);

#endif
