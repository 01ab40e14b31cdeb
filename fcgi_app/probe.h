/*
 * probe - looking at accounts without a request: who is asked how, and what an answer does to an account's rows. Pure.
 *
 * Recovery  asks accounts that do not serve. GET /models proves key and network: it brings back who was disabled by
 *           disable_after, and ends a breaker that network or auth failures alone opened. With probe.recover_chat one
 *           token of chat is asked of who rests by a guessed rate limit, or whose breaker is open, not before half of
 *           the time is over; its success ends both. Hard credit and stated rests stay. A failure changes nothing, but
 *           a stated reset may move the deadline later.
 * Active    asks accounts that do serve for one token of chat. The answer counts as a request's would; where no name of
 *           a model is known GET /models takes its place, and then it changes nothing.
 * Order     an answer to a question from before the account's last counted failure brings nobody back
 * Source    SPEC.md sections 6 ("A probe made while cooling never escalates"), 8, 10
 */
#ifndef PROBE_H
#define PROBE_H

#include "base/json.h"
#include "classify.h"
#include "rest.h"
#include "store/health.h"

enum probe_way { PROBE_NOT, PROBE_MODELS, PROBE_CHAT };

/* In rows: the numbers are part of the format. */
enum probe_result {
	PROBE_NEVER = 0,
	PROBE_HEALTHY = 1,
	PROBE_RATE_LIMITED = 2,
	PROBE_FAILED = 3,
};

/* "healthy"; NULL for PROBE_NEVER and what is none. */
const char *probe_result_name(unsigned result);
enum probe_result probe_result_of(enum verdict verdict);

/* How the recovery probe asks this account now. */
enum probe_way probe_recovery(
    const struct account_row *row, const struct account_stat *stat, bool chat, struct wall_ms now);

/* The first name of a model, not a pattern, that the configuration gives for this account; "" = none. */
struct span probe_model(const struct conf *conf, const struct conf_channel *channel,
    const struct conf_account *account);

/* Path below base_url and body of one token of chat, on the channel's wire. */
const char *probe_chat_path(const struct conf_channel *channel);
void probe_chat_body(
    const struct conf_channel *channel, struct span model, struct span prompt, struct buf *out);
/* The JSON text of an answer, plain or the first event of a stream. */
struct span probe_text(struct span body);
/* Has it the shape of an answer of that wire? */
bool probe_is_chat(struct arena *arena, enum provider_wire wire, struct span text);

struct probe_case {
	enum probe_way way;
	bool active;  /* the account served when it was asked */
	bool disable; /* probe.on_failure */
	const struct classify_finding *finding;
	struct health_time time; /* when it was asked, and what is now */
	const struct conf_policy *policy;
	const struct health_policy *health;
};

/* What changed, for the journal and for the rest of a model. */
struct probe_effect {
	enum health_state from, to;
	int64_t old_until_ms, until_ms;
	bool noted; /* the note of the account is to be written anew */
	struct health_change change;
	struct rest model; /* this model rests on this account */
};

void probe_apply(struct account_row *row, struct account_stat *stat, const struct probe_case *probe,
    struct probe_effect *effect_out);

#endif
