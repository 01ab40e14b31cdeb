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
	    [SCORE_COST] = "a cheaper tier is free",
	    [SCORE_BOUND] = "has sessions, others have none",
	};

	return names[out];
}

void
score_begin(
    struct score_board *board, const struct score_rule *rule, struct wall_ms now, uint64_t random)
{
	board->rule = rule;
	board->now = now;
	board->random = random;
	board->any = false;
	board->priority = INT64_MAX;
	memset(board->groups, 0, sizeof board->groups);
	board->cost_tier = 0;
	board->only_unbound = false;
	board->most_credits_micros = 0;
	board->sum = 0;
	board->equal = board->n = 0;
}

void
score_survey(struct score_board *board, const struct score_candidate *candidate)
{
	struct score_group *group = &board->groups[candidate->cost_tier][candidate->bound];

	if (!board->any || candidate->priority < board->priority) {
		board->any = true;
		board->priority = candidate->priority;
		memset(board->groups, 0, sizeof board->groups);
	}
	if (candidate->priority != board->priority)
		return;
	group->n++;
	if (candidate->has_credits && candidate->credits_micros > group->most_credits_micros)
		group->most_credits_micros = candidate->credits_micros;
}

void
score_close(struct score_board *board, bool explore, bool prefer_unbound)
{
	const struct score_group *group;
	unsigned tier = 0;

	while (
	    tier + 1 < SCORE_COST_TIERS && board->groups[tier][0].n + board->groups[tier][1].n == 0)
		tier++;
	if (explore && board->groups[1][0].n + board->groups[1][1].n > 0)
		tier = 1;
	group = board->groups[tier];
	board->cost_tier = (uint8_t)tier;
	board->only_unbound = prefer_unbound && group[0].n > 0;
	board->most_credits_micros = group[0].most_credits_micros;
	if (!board->only_unbound && group[1].most_credits_micros > board->most_credits_micros)
		board->most_credits_micros = group[1].most_credits_micros;
}

/* splitmix64: uniform, and good enough that neighbouring states have nothing in common. */
static double
next_unit(struct score_board *board)
{
	uint64_t z = board->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	z ^= z >> 31;
	return (double)(z >> 11) / 9007199254740992.0; /* 2^53: in [0, 1) */
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

	terms.weight =
	    (terms.credits + terms.idle + terms.success) * candidate->weight * candidate->factor;
	return terms;
}

static bool
picked_before(const struct score_candidate *a, const struct score_candidate *b)
{
	if (a->picked.v != b->picked.v)
		return a->picked.v < b->picked.v;
	return a->picked.v != 0 && (int32_t)(a->picked_txn - b->picked_txn) < 0;
}

/* Between two of the same weight or rank: least recently picked, then id. */
static bool
tie_before(const struct score_candidate *a, const struct score_candidate *b)
{
	size_t n = a->id.n < b->id.n ? a->id.n : b->id.n;
	int order;

	if (picked_before(a, b) || picked_before(b, a))
		return picked_before(a, b);
	order = n == 0 ? 0 : memcmp(a->id.p, b->id.p, n);
	return order != 0 ? order < 0 : a->id.n < b->id.n;
}

/* Does a come before b on the short list? */
static bool
before(const struct score_entry *a, const struct score_entry *b)
{
	if (a->terms.weight > b->terms.weight || a->terms.weight < b->terms.weight)
		return a->terms.weight > b->terms.weight;
	return tie_before(&a->candidate, &b->candidate);
}

static void
insert(struct score_board *board, const struct score_entry *entry)
{
	unsigned at = board->n;

	while (at > 0 && before(entry, &board->best[at - 1]))
		at--;
	if (at == board->rule->shortlist)
		return;
	if (board->n < board->rule->shortlist)
		board->n++;
	memmove(
	    &board->best[at + 1], &board->best[at], (board->n - 1 - at) * sizeof board->best[0]);
	board->best[at] = *entry;
}

static void
offer_adaptive(struct score_board *board, const struct score_candidate *candidate)
{
	struct score_terms terms = score_terms(board, candidate);

	if (board->n < board->rule->shortlist ||
	    terms.weight >= board->best[board->n - 1].terms.weight)
		insert(board, &(struct score_entry){*candidate, terms});
}

static void
offer_least(struct score_board *board, const struct score_candidate *candidate)
{
	const struct score_candidate *best = &board->best[0].candidate;

	if (board->n > 0 && (candidate->rank > best->rank ||
	                        (!(candidate->rank < best->rank) && !tie_before(candidate, best))))
		return;
	board->best[0].candidate = *candidate;
	board->n = 1;
}

/* One pass, one place: each replaces the one before with the chance that its weight has in the sum so far. */
static void
offer_random(struct score_board *board, const struct score_candidate *candidate)
{
	double weight = candidate->rank * candidate->factor;

	if (weight > 0) {
		board->sum += weight;
		if (next_unit(board) * board->sum >= weight)
			return;
	} else {
		if (board->sum > 0 || next_unit(board) * ++board->equal >= 1)
			return; /* never drawn while somebody has a weight */
	}
	board->best[0].candidate = *candidate;
	board->n = 1;
}

enum score_out
score_offer(struct score_board *board, const struct score_candidate *candidate)
{
	if (candidate->priority != board->priority)
		return SCORE_TIER;
	if (candidate->cost_tier != board->cost_tier)
		return SCORE_COST;
	if (board->only_unbound && candidate->bound)
		return SCORE_BOUND;
	switch (board->rule->way) {
	case SCORE_ADAPTIVE: offer_adaptive(board, candidate); break;
	case SCORE_LEAST: offer_least(board, candidate); break;
	case SCORE_RANDOM: offer_random(board, candidate); break;
	}
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

/* Those of the short list that are drawn from. */
struct draw {
	double sum; /* of their weights */
	unsigned n, last;
};

static struct draw
draw_of(const struct score_board *board)
{
	struct draw draw = {.sum = 0};

	for (unsigned i = 0; i < board->n; i++)
		if (rested(board, &board->best[i])) {
			draw.sum += board->best[i].terms.weight;
			draw.n++;
			draw.last = i;
		}
	return draw;
}

static size_t
draw_adaptive(struct score_board *board)
{
	struct draw draw = draw_of(board);
	double at;

	if (draw.n == 0)
		return least_recent(board);
	at = next_unit(board) * (draw.sum > 0 ? draw.sum : draw.n);
	for (unsigned i = 0; i < board->n; i++) {
		if (!rested(board, &board->best[i]))
			continue;
		at -= draw.sum > 0 ? board->best[i].terms.weight : 1;
		if (at < 0)
			return board->best[i].candidate.account;
	}
	return board->best[draw.last].candidate.account;
}

static double
share_adaptive(const struct score_board *board, size_t account)
{
	struct draw draw = draw_of(board);

	if (draw.n == 0)
		return board->n > 0 && least_recent(board) == account ? 1 : 0;
	for (unsigned i = 0; i < board->n; i++)
		if (board->best[i].candidate.account == account && rested(board, &board->best[i]))
			return draw.sum > 0 ? board->best[i].terms.weight / draw.sum : 1.0 / draw.n;
	return 0;
}

double
score_share(const struct score_board *board, const struct score_candidate *candidate)
{
	double weight = candidate->rank * candidate->factor;

	switch (board->rule->way) {
	case SCORE_ADAPTIVE: return share_adaptive(board, candidate->account);
	case SCORE_RANDOM:
		if (board->sum > 0)
			return weight > 0 ? weight / board->sum : 0;
		return board->equal > 0 ? 1.0 / board->equal : 0;
	case SCORE_LEAST: break;
	}
	return board->n > 0 && board->best[0].candidate.account == candidate->account ? 1 : 0;
}

bool
score_draw(struct score_board *board, size_t *account_out)
{
	if (board->n == 0)
		return false;
	*account_out = board->rule->way == SCORE_ADAPTIVE ? draw_adaptive(board)
	                                                  : board->best[0].candidate.account;
	return true;
}
