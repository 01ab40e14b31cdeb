/*
 * judge - one pick's view of its channel: why each account is out, and what the score must know of those that are in.
 *
 * Lives inside one transaction. Rows are read where they lie in the map, so nothing may be written between judge_open()
 * and the end of the scan.
 *
 * Source    SPEC.md section 7
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "pick.h"
#include "strategy.h"

#include "store/price.h"

#define JUDGE_DEAD_MAX \
	64 /* accounts freed of dead workers' leases in one pick; the rest by the next ones */

#define JUDGE_STRANGE_MAX 8 /* likewise */

/* May a probe try a resting account before its time? */
enum judge_probing {
	JUDGE_GUESSED, /* nobody said how long it would rest */
	JUDGE_STATED,  /* only with all_cooling: any */
	JUDGE_NEVER,   /* out of credit */
};

struct judge {
	struct txn *txn;
	const struct slot *slot;
	const struct pick_wish *wish;
	const struct conf_channel *channel;
	struct pool_channel *pc;
	struct wall_ms now;
	struct span model;
	int64_t most_rest_ms, most_backoff_ms; /* that any setting allows */
	struct slot_list *slots;
	struct price_view prices; /* of the model; used where `tiers` */
	struct quota_view quotas;
	bool tiers;
	bool count_bound; /* pc->bound is filled: the session has no account yet */
	struct pick_reason reason;
	/* facts for the channel's breaker */
	bool active;
	uint32_t consecutive;
	/* the account whose rest was looked at last: for explain, and for the session's account */
	int64_t until_ms;
	/* the best account for a probe while all are cooling */
	bool has_probe;
	size_t probe;
	int64_t probe_until_ms;
	uint32_t dead[JUDGE_DEAD_MAX]; /* account numbers with leases of dead workers */
	unsigned ndead;
	uint32_t strange[JUDGE_STRANGE_MAX]; /* account numbers with deadlines of a wrong clock */
	unsigned nstrange;
};

enum store_rc judge_open(struct judge *j, struct txn *txn, const struct slot *slot,
    const struct pick_wish *wish, struct wall_ms now) STORE_MUST_CHECK;
/* The scratch of the pool is clean again. */
void judge_close(struct judge *j);

/* SCORE_IN, or why it is out. */
enum score_out judge_account(
    struct judge *j, const struct pool_seat *seat, const struct account_row *row);
/* What score_survey() reads of a candidate, and nothing else: a long channel is looked at twice. */
void judge_standing(struct judge *j, const struct pool_seat *seat, const struct account_row *row,
    struct score_candidate *c);
void judge_candidate(struct judge *j, const struct pool_seat *seat, const struct account_row *row,
    struct score_candidate *c);

/* Tokens and requests of today, mean latency, quota: for the strategies that want them. */
void judge_facts(
    struct judge *j, const struct pool_seat *seat, unsigned needs, struct strategy_facts *facts);

/* Leases of an account whose worker lives; those of the dead are remembered for freeing. */
unsigned judge_in_flight(struct judge *j, uint32_t number);
/* Is the account below its limit, leases of dead workers not counted? */
bool judge_has_room(struct judge *j, const struct pool_seat *seat);
/* judge_mend.c: the longest rests that settings allow, and writing anew what is further ahead. */
void judge_allow(struct judge *j);
enum store_rc judge_mend(struct judge *j) STORE_MUST_CHECK;

/* At most one probe of a resting account at a time on a channel, over all processes. */
bool judge_probe_runs(const struct judge *j);
/* Half-open permits of this round whose holders live. */
unsigned judge_permits(const struct judge *j, uint32_t round);
/* Free what the scan found of dead workers: writes. */
enum store_rc judge_free_dead(struct judge *j) STORE_MUST_CHECK;

/* Quota limits of an account in the store's terms. */
struct quota_limits judge_limits(const struct conf_account *account);
struct quota_time judge_quota_time(const struct conf_channel *channel, struct wall_ms now);
/* Would this request fit? What workers reserved that are dead now does not count, and is noted for freeing. */
struct quota_fit judge_quota_fit(struct judge *j, const struct pool_seat *seat, uint32_t number);
/* The account has leases of dead workers. False: too many have for this pick. */
bool judge_note_dead(struct judge *j, uint32_t number);
/* What the account's dead leases had reserved is given back: writes. */
enum store_rc judge_return_quotas(struct judge *j, uint32_t number) STORE_MUST_CHECK;
/* The same for the lease that a dead former owner of our slot left. */
enum store_rc judge_inherit(struct txn *txn, const struct pool *pool, const struct slot_row *lease,
    struct wall_ms now) STORE_MUST_CHECK;

#endif
