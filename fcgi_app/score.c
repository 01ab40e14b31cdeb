#include "score.h"

#include <string.h>

#define MS_PER_HOUR 3600000.0

const char *
score_out_name(enum score_out out)
{
	static const char *const names[SCORE__MAX] = {
	    [SCORE_IN] = "eligible",
	    [SCORE_DISABLED] = "disabled",
	    [SCORE_REALM] = "other realm",
	    [SCORE_MODEL] = "does not serve the model",
	    [SCORE_NO_WEIGHT] = "weight 0",
	    [SCORE_TRIED] = "tried in this request",
	    [SCORE_COOLING] = "cooling",
	    [SCORE_BREAKER] = "breaker open",
	    [SCORE_MODEL_COOLING] = "model cooling",
	    [SCORE_MODEL_MISSING] = "model missing",
	    [SCORE_FULL] = "full",
	    [SCORE_QUOTA] = "quota used up",
	    [SCORE_TIER] = "a better priority is free",
	};

	return names[out];
}

void
score_begin(struct score_board *board, const struct score_rule *rule, struct wall_ms now)
{
	board->rule = rule;
	board->now = now;
	board->any = false;
	board->priority = INT64_MAX;
	board->most_credits_micros = 0;
	board->n = 0;
}

void
score_survey(struct score_board *board, const struct score_candidate *candidate)
{
	if (!board->any || candidate->priority < board->priority) {
		board->any = true;
		board->priority = candidate->priority;
		board->most_credits_micros = 0;
	}
	if (candidate->priority == board->priority && candidate->has_credits &&
	    candidate->credits_micros > board->most_credits_micros)
		board->most_credits_micros = candidate->credits_micros;
}

static double
idle_term(const struct score_board *board, struct wall_ms picked)
{
	double idle_ms = (double)(board->now.v - picked.v), term;

	if (picked.v == 0)
		return board->rule->idle_weight_max;
	if (idle_ms < 0)
		return 0;
	term = idle_ms / MS_PER_HOUR * board->rule->idle_weight_per_hour;
	return term < board->rule->idle_weight_max ? term : board->rule->idle_weight_max;
}

static double
credit_term(const struct score_board *board, const struct score_candidate *candidate)
{
	if (!candidate->has_credits || candidate->credits_micros <= 0 ||
	    board->most_credits_micros <= 0)
		return 0;
	return (double)candidate->credits_micros / (double)board->most_credits_micros *
	       board->rule->credit_factor;
}

static double
success_term(const struct score_board *board, const struct score_candidate *candidate)
{
	double requests = (double)candidate->success + (double)candidate->errors;

	return board->rule->success_factor *
	       (requests > 0 ? (double)candidate->success / requests : 0.5);
}

struct score_terms
score_terms(const struct score_board *board, const struct score_candidate *candidate)
{
	struct score_terms terms = {
	    .credits = credit_term(board, candidate),
	    .idle = idle_term(board, candidate->picked),
	    .success = success_term(board, candidate),
	};

	terms.weight = (terms.credits + terms.idle + terms.success) * candidate->weight;
	return terms;
}

static bool
picked_before(const struct score_candidate *a, const struct score_candidate *b)
{
	if (a->picked.v != b->picked.v)
		return a->picked.v < b->picked.v;
	return a->picked.v != 0 && (int32_t)(a->picked_txn - b->picked_txn) < 0;
}

/* Does a come before b on the short list? */
static bool
before(const struct score_entry *a, const struct score_entry *b)
{
	size_t n = a->candidate.id.n < b->candidate.id.n ? a->candidate.id.n : b->candidate.id.n;
	int order;

	if (a->terms.weight > b->terms.weight || a->terms.weight < b->terms.weight)
		return a->terms.weight > b->terms.weight;
	if (picked_before(&a->candidate, &b->candidate) ||
	    picked_before(&b->candidate, &a->candidate))
		return picked_before(&a->candidate, &b->candidate);
	order = n == 0 ? 0 : memcmp(a->candidate.id.p, b->candidate.id.p, n);
	return order != 0 ? order < 0 : a->candidate.id.n < b->candidate.id.n;
}

enum score_out
score_offer(struct score_board *board, const struct score_candidate *candidate)
{
	struct score_terms terms;
	struct score_entry entry;
	unsigned at;

	if (candidate->priority != board->priority)
		return SCORE_TIER;
	terms = score_terms(board, candidate);
	if (board->n == board->rule->shortlist &&
	    terms.weight < board->best[board->n - 1].terms.weight)
		return SCORE_IN; /* the common case of a long scan */
	entry = (struct score_entry){*candidate, terms};
	for (at = board->n; at > 0 && before(&entry, &board->best[at - 1]); at--)
		continue;
	if (at == board->rule->shortlist)
		return SCORE_IN;
	if (board->n < board->rule->shortlist)
		board->n++;
	memmove(
	    &board->best[at + 1], &board->best[at], (board->n - 1 - at) * sizeof board->best[0]);
	board->best[at] = entry;
	return SCORE_IN;
}

static bool
rested(const struct score_board *board, const struct score_entry *entry)
{
	int64_t since = board->now.v - entry->candidate.picked.v;

	/* a clock that was set back must not lock anybody out */
	return entry->candidate.picked.v == 0 || since < 0 || since >= board->rule->min_pick_gap_ms;
}

static size_t
least_recent(const struct score_board *board)
{
	unsigned at = 0;

	for (unsigned i = 1; i < board->n; i++)
		if (picked_before(&board->best[i].candidate, &board->best[at].candidate))
			at = i;
	return board->best[at].candidate.account;
}

bool
score_draw(const struct score_board *board, uint64_t random, size_t *account_out)
{
	double unit = (double)(random >> 11) / 9007199254740992.0; /* 2^53: uniform in [0, 1) */
	double sum = 0, at;
	unsigned rested_n = 0, last = 0;

	if (board->n == 0)
		return false;
	for (unsigned i = 0; i < board->n; i++)
		if (rested(board, &board->best[i])) {
			sum += board->best[i].terms.weight;
			rested_n++;
			last = i;
		}
	if (rested_n == 0) {
		*account_out = least_recent(board);
		return true;
	}
	at = sum > 0 ? unit * sum : unit * rested_n;
	for (unsigned i = 0; i < board->n; i++) {
		if (!rested(board, &board->best[i]))
			continue;
		at -= sum > 0 ? board->best[i].terms.weight : 1;
		if (at < 0) {
			last = i;
			break;
		}
	}
	*account_out = board->best[last].candidate.account;
	return true;
}
