#include "elect.h"

#define FLOOR_PPM 50000 /* of the success rate in draws: who failed is measured again some time */
#define SESSION_STEP_PPM 250000 /* the rate moves sessions in such steps only */
#define LOG_BITS 40

const char *
elect_out_text(enum elect_out out)
{
	static const char *const texts[ELECT__MAX] = {
	    [ELECT_FULL] = "every usable account is busy",
	    [ELECT_EXHAUSTED] = "no account can be had now",
	    [ELECT_OPEN] = "its channel's breaker is open",
	    [ELECT_RESTS] = "rests after failures",
	    [ELECT_TRIED] = "was tried in this request",
	    [ELECT_SMALL] = "its context window is too small",
	    [ELECT_TASK] = "is for other tasks",
	    [ELECT_WIRE] = "speaks another wire format",
	};

	return texts[out];
}

bool
elect_is_spare(enum elect_out out)
{
	return out == ELECT_FULL || out == ELECT_EXHAUSTED || out == ELECT_OPEN;
}

bool
elect_is_final(enum elect_out out)
{
	return out == ELECT_TRIED || out == ELECT_TASK || out == ELECT_WIRE;
}

/* ---- order ---- */

/* The lower tier, then the lower value, comes first. */
struct rank {
	int tier;
	int64_t value;
};

static struct rank
rank_of(const struct elect_candidate *candidates, size_t i, int strategy, uint32_t min_success_ppm)
{
	const struct elect_candidate *c = &candidates[i];

	switch ((enum conf_routing)strategy) {
	case CONF_ROUTE_WEIGHTED_RANDOM: return (struct rank){!c->served, 0};
	case CONF_ROUTE_PERFORMANCE:
		if (c->success_ppm >= min_success_ppm)
			return (struct rank){0, c->first_ms};
		return (struct rank){1, ELECT_RATE_ONE - (int64_t)c->success_ppm};
	case CONF_ROUTE_COST_FIRST: return (struct rank){!c->priced, c->priced ? c->cost : 0};
	case CONF_ROUTE_TASK:
	case CONF_ROUTE_MIXED: return (struct rank){!c->lists_task, (int64_t)i};
	}
	return (struct rank){0, 0};
}

static int
compare(struct rank a, struct rank b)
{
	if (a.tier != b.tier)
		return a.tier < b.tier ? -1 : 1;
	return (a.value > b.value) - (a.value < b.value);
}

/* What may be asked now: those that are in; if none is, the best kind of spare ones. */
static enum elect_out
group_of(const struct elect_candidate *candidates, size_t n)
{
	enum elect_out best = ELECT__MAX;

	for (size_t i = 0; i < n; i++)
		if ((candidates[i].out == ELECT_IN || elect_is_spare(candidates[i].out)) &&
		    candidates[i].out < best)
			best = candidates[i].out;
	return best;
}

/* ---- draws ---- */

static double
weight_of(const struct elect_candidate *c, int strategy, bool by_session)
{
	uint32_t ppm = c->success_ppm < FLOOR_PPM ? FLOOR_PPM : c->success_ppm;

	if (strategy != CONF_ROUTE_WEIGHTED_RANDOM)
		return c->weight;
	if (by_session)
		ppm = (ppm + SESSION_STEP_PPM - 1) / SESSION_STEP_PPM * SESSION_STEP_PPM;
	return c->weight * ppm / ELECT_RATE_ONE;
}

/* splitmix64 */
static uint64_t
mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* -log2(x / 2^64), bit by bit: the mantissa squared is beyond 2 where the next bit is 1. */
static double
minus_log2(uint64_t x)
{
	int zeros = __builtin_clzll(x | 1);
	double mantissa = (double)(x | 1) / (double)(1ULL << (63 - zeros)), log = -1.0 - zeros;

	for (double bit = 0.5; bit > 1.0 / (double)(1ULL << LOG_BITS); bit /= 2) {
		mantissa *= mantissa;
		if (mantissa >= 2) {
			mantissa /= 2;
			log += bit;
		}
	}
	return -log;
}

/*
 * A race: each candidate's time is exponential with its weight as rate, from the draw and its identity alone. The shares
 * are those of the weights, and who leaves or comes moves nobody else's sessions.
 */
static double
time_of(const struct elect_candidate *c, double weight, uint64_t draw)
{
	return minus_log2(mix(draw ^ mix(c->identity))) / weight;
}

struct field {
	enum elect_out group;
	struct rank rank;
	int strategy;
	double sum;
	size_t n;
};

static struct field
field_of(
    const struct elect_candidate *candidates, size_t n, const struct elect_rule *rule, int strategy)
{
	struct field f = {.group = group_of(candidates, n), .strategy = strategy};

	for (size_t i = 0; i < n; i++) {
		struct rank rank = rank_of(candidates, i, strategy, rule->min_success_ppm);
		int order = f.n == 0 ? -1 : compare(rank, f.rank);

		if (candidates[i].out != f.group || order > 0)
			continue;
		if (order < 0) {
			f.rank = rank;
			f.sum = 0;
			f.n = 0;
		}
		f.sum += weight_of(&candidates[i], strategy, rule->by_session);
		f.n++;
	}
	return f;
}

/* Its weight among the equals of the field; negative: it is not one of them. Without any weight all are alike. */
static double
weight_in(const struct field *f, const struct elect_candidate *candidates, size_t i,
    const struct elect_rule *rule)
{
	struct rank rank = rank_of(candidates, i, f->strategy, rule->min_success_ppm);

	if (candidates[i].out != f->group || compare(rank, f->rank) != 0)
		return -1;
	return f->sum > 0 ? weight_of(&candidates[i], f->strategy, rule->by_session) : 1;
}

static size_t
choose_from(const struct field *f, const struct elect_candidate *candidates, size_t n,
    const struct elect_rule *rule)
{
	size_t best = ELECT_NOBODY;
	double least = 0;

	for (size_t i = 0; i < n; i++) {
		double weight = weight_in(f, candidates, i, rule), time;

		if (weight <= 0)
			continue;
		time = rule->likeliest && !rule->by_session
		           ? -weight
		           : time_of(&candidates[i], weight, rule->draw);
		if (best == ELECT_NOBODY || time < least) {
			best = i;
			least = time;
		}
	}
	return best;
}

/* ---- strategies ---- */

/* mixed is about one target: the task's, whether it can be had or not. */
static bool
first_is_out(const struct elect_candidate *candidates, size_t n)
{
	size_t first = ELECT_NOBODY;

	for (size_t i = 0; i < n; i++)
		if (candidates[i].out <= ELECT_TRIED &&
		    (first == ELECT_NOBODY ||
		        (candidates[i].lists_task && !candidates[first].lists_task)))
			first = i;
	return first != ELECT_NOBODY && candidates[first].out != ELECT_IN;
}

static int
strategy_of(const struct elect_candidate *candidates, size_t n, const struct elect_rule *rule)
{
	if (rule->strategy == CONF_ROUTE_MIXED && first_is_out(candidates, n))
		return rule->fallback;
	return rule->strategy;
}

size_t
elect_choose(const struct elect_candidate *candidates, size_t n, const struct elect_rule *rule)
{
	struct field f = field_of(candidates, n, rule, strategy_of(candidates, n, rule));

	return choose_from(&f, candidates, n, rule);
}

double
elect_share(const struct elect_candidate *candidates, size_t n, const struct elect_rule *rule,
    size_t candidate)
{
	struct field f = field_of(candidates, n, rule, strategy_of(candidates, n, rule));
	double weight = weight_in(&f, candidates, candidate, rule);

	if (weight <= 0)
		return 0;
	if (rule->by_session)
		return choose_from(&f, candidates, n, rule) == candidate ? 1 : 0;
	return weight / (f.sum > 0 ? f.sum : (double)f.n);
}
