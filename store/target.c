#include "store/target.h"

/* The ratio: tokens that "1, as nobody has said otherwise" stands for; the most that one answer and all of them do. */
#define RATIO_FIRST 512
#define RATIO_SHORT 256 /* less in one prompt: many of them must not speak for a long one */
#define RATIO_ANSWER 16384
#define RATIO_ALL 65536
#define RATIO_LEAST \
	(TARGET_RATIO_ONE / 4) /* of one answer; whatever is beyond was counted wrongly */
#define RATIO_MOST (TARGET_RATIO_ONE * 6)

#define OUTPUT_SHARE 8 /* one answer moves the smoothed length by an eighth */

static uint64_t
sum_capped(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void
learn_ratio(struct target_row *row, uint64_t estimated, uint64_t reported)
{
	uint64_t weight = estimated < RATIO_ANSWER ? estimated : RATIO_ANSWER, seen;

	if (estimated < RATIO_SHORT || reported == 0)
		return;
	seen = reported / estimated >= RATIO_MOST / TARGET_RATIO_ONE
	           ? RATIO_MOST
	           : (uint64_t)((unsigned __int128)reported * TARGET_RATIO_ONE / estimated);
	if (seen < RATIO_LEAST)
		seen = RATIO_LEAST;
	if (row->ratio_ppm == 0) {
		row->ratio_ppm = TARGET_RATIO_ONE;
		row->ratio_weight = RATIO_FIRST;
	}
	row->ratio_ppm = (uint32_t)((row->ratio_ppm * (uint64_t)row->ratio_weight + seen * weight) /
	                            (row->ratio_weight + weight));
	row->ratio_weight = row->ratio_weight + weight < RATIO_ALL
	                        ? (uint32_t)(row->ratio_weight + weight)
	                        : RATIO_ALL;
	row->ratio_n += row->ratio_n < UINT32_MAX;
}

/* Rounded towards what was seen, so that equal answers are reached. */
static void
learn_output(struct target_row *row, uint64_t tokens)
{
	uint32_t seen = tokens < UINT32_MAX ? (uint32_t)tokens : UINT32_MAX;
	uint32_t old = row->output_tokens;
	uint32_t gap = seen > old ? seen - old : old - seen;
	uint32_t step = gap / OUTPUT_SHARE + (gap % OUTPUT_SHARE != 0);

	if (seen == 0)
		return;
	row->output_tokens = old == 0 ? seen : seen > old ? old + step : old - step;
}

static void
settle_failure(struct target_row *row, const struct target_policy *policy, struct wall_ms now)
{
	if (row->consecutive == 0)
		row->streak_ms = now.v;
	row->consecutive += row->consecutive < UINT32_MAX;
	if (row->consecutive >= policy->fail_after)
		row->rest_until_ms = now.v + policy->cooldown_ms;
}

static void
settle_success(struct target_row *row, const struct target_outcome *outcome,
    const struct target_policy *policy, struct wall_ms now)
{
	row->consecutive = 0;
	row->rest_until_ms = row->streak_ms = 0;
	row->success_ms = now.v;
	if (outcome->first_content_ms >= 0)
		window_add(
		    &row->first, policy->window_ms, now, (uint64_t)outcome->first_content_ms);
	learn_ratio(row, outcome->estimated, outcome->reported);
	learn_output(row, outcome->output_tokens);
}

void
target_settle(struct target_row *row, const struct target_outcome *outcome,
    const struct target_policy *policy, struct wall_ms now)
{
	window_add(&row->calls, policy->window_ms, now, outcome->failed);
	if (outcome->failed)
		settle_failure(row, policy, now);
	else
		settle_success(row, outcome, policy, now);
	if (outcome->cost_micros < 0)
		return;
	row->cost_micros = sum_capped(row->cost_micros, (uint64_t)outcome->cost_micros);
	row->cost_tokens = sum_capped(row->cost_tokens, outcome->tokens);
}

enum target_state
target_state(const struct target_row *row, const struct target_policy *policy, struct wall_ms now)
{
	if (row->rest_until_ms == 0)
		return TARGET_OPEN;
	return row->rest_until_ms > now.v && row->rest_until_ms - now.v <= policy->cooldown_ms
	           ? TARGET_RESTS
	           : TARGET_TRIAL;
}

void
target_sums(const struct target_row *row, const struct target_policy *policy, struct wall_ms now,
    struct target_sums *sums_out)
{
	window_sum(&row->calls, policy->window_ms, now, &sums_out->calls, &sums_out->failures);
	window_sum(
	    &row->first, policy->window_ms, now, &sums_out->first_n, &sums_out->first_sum_ms);
}

uint32_t
target_success_ppm(const struct target_sums *sums)
{
	if (sums->calls == 0 || sums->failures > sums->calls)
		return sums->calls == 0 ? 1000000 : 0;
	return (
	    uint32_t)((unsigned __int128)(sums->calls - sums->failures) * 1000000 / sums->calls);
}

bool
target_is_alone(const struct target_row *row, const struct target_channel *channel)
{
	/* its own successes end the row of failures, so what came since was another's */
	return row->streak_ms != 0 && channel->success_ms >= row->streak_ms;
}

int64_t
target_correct(const struct target_row *row, int64_t estimated)
{
	uint32_t ratio = row->ratio_ppm;
	__int128 tokens;

	if (ratio == 0 || estimated <= 0)
		return estimated;
	if (ratio < TARGET_RATIO_ONE / 2)
		ratio = TARGET_RATIO_ONE / 2;
	if (ratio > TARGET_RATIO_ONE * 3)
		ratio = TARGET_RATIO_ONE * 3;
	tokens = ((__int128)estimated * ratio + TARGET_RATIO_ONE - 1) / TARGET_RATIO_ONE;
	return tokens < INT64_MAX ? (int64_t)tokens : INT64_MAX;
}
