#include "choose.h"

#include "store/cursor.h"

#include <stdio.h>

static double
rank_of(struct choose *c, const struct pool_seat *seat)
{
	uint32_t number = (uint32_t)(seat - c->j.pc->seats);
	struct strategy_facts facts = {
	    .number = number,
	    .cursor = c->cursor,
	    .index = seat->index,
	    .weight = c->j.channel->accounts[seat->index].weight,
	    .in_flight = c->j.pc->in_flight[number],
	    .quota_left = -1,
	};

	judge_facts(&c->j, seat, strategy_needs(c->strategy), &facts);
	return strategy_rank(c->strategy, &facts);
}

static void
fill(struct choose *c, const struct pool_seat *seat, const struct account_row *row,
    struct score_candidate *candidate)
{
	judge_candidate(&c->j, seat, row, candidate);
	if (c->strategy != CONF_ADAPTIVE)
		candidate->rank = rank_of(c, seat);
}

typedef void visit_fn(
    struct choose *c, const struct pool_seat *seat, const struct account_row *row);

/* Why the session's account does not serve this request, in the words of sticky.h. */
static void
note_trouble(struct choose *c, enum score_out out)
{
	struct pick_session *session = &c->j.reason.session;

	switch (out) {
	case SCORE_IN: session->trouble = STICKY_FINE; break;
	case SCORE_FULL:
	case SCORE_TRIED: session->trouble = STICKY_SHORT; break;
	case SCORE_COOLING:
	case SCORE_BREAKER:
	case SCORE_MODEL_COOLING:
	case SCORE_QUOTA:
		session->trouble = STICKY_RESTING;
		session->rest_left_ms =
		    c->j.until_ms > c->j.now.v ? c->j.until_ms - c->j.now.v : INT64_MAX;
		break;
	case SCORE_DISABLED:
	case SCORE_REALM:
	case SCORE_MODEL:
	case SCORE_NO_WEIGHT:
	case SCORE_MODEL_MISSING:
	case SCORE_TIER:
	case SCORE_COST:
	case SCORE_BOUND:
	case SCORE__MAX: session->trouble = STICKY_LASTING; break;
	}
}

static void
visit_judge(struct choose *c, const struct pool_seat *seat, const struct account_row *row)
{
	enum score_out out = judge_account(&c->j, seat, row);
	struct score_candidate candidate;

	c->j.pc->judged[seat->index] = (uint8_t)out;
	if (c->j.reason.session.bound && c->j.reason.session.account == seat - c->j.pc->seats)
		note_trouble(c, out);
	if (out != SCORE_IN) {
		c->j.reason.out[out]++;
		return;
	}
	judge_standing(&c->j, seat, row, &candidate);
	score_survey(&c->board, &candidate);
}

static void
visit_offer(struct choose *c, const struct pool_seat *seat, const struct account_row *row)
{
	struct score_candidate candidate;
	enum score_out out;

	if (c->j.pc->judged[seat->index] != SCORE_IN)
		return;
	fill(c, seat, row, &candidate);
	out = score_offer(&c->board, &candidate);
	c->j.pc->judged[seat->index] = (uint8_t)out;
	c->j.reason.out[out]++;
}

/* Was it a candidate? Then the score, not the judge, left it out. */
static bool
is_candidate(enum score_out out)
{
	return out == SCORE_IN || out == SCORE_TIER || out == SCORE_COST || out == SCORE_BOUND;
}

static void
visit_show(struct choose *c, const struct pool_seat *seat, const struct account_row *row)
{
	struct pick_seen seen = {
	    .account = seat->index,
	    .out = (enum score_out)c->j.pc->judged[seat->index],
	};
	uint32_t number = (uint32_t)(seat - c->j.pc->seats);

	if (c->j.pc->in_flight[number] > 0)
		seen.in_flight = judge_in_flight(&c->j, number);
	(void)judge_account(&c->j, seat, row); /* again, for the end of its rest */
	seen.until_ms = c->j.until_ms;
	if (is_candidate(seen.out)) {
		fill(c, seat, row, &seen.candidate);
		if (c->strategy == CONF_ADAPTIVE)
			seen.terms = score_terms(&c->board, &seen.candidate);
	}
	if (seen.out == SCORE_IN)
		seen.share = score_share(&c->board, &seen.candidate);
	c->show(&seen, c->show_arg);
}

/* Rows are read where they lie in the map: nothing may be written between. */
static inline __attribute__((always_inline)) enum store_rc
each_account(struct choose *c, visit_fn *visit)
{
	for (uint32_t first = 0; first < c->j.pc->top; first += ACCOUNT_SHARD) {
		const char *rows;
		unsigned n;
		enum store_rc rc =
		    account_shard(c->j.txn, c->j.pc->number, first / ACCOUNT_SHARD, &rows, &n);

		if (rc != STORE_OK)
			return rc;
		if (n > c->j.pc->top - first)
			n = c->j.pc->top - first;
		for (unsigned i = 0; i < n; i++)
			if (c->j.pc->seats[first + i].index != UINT32_MAX)
				visit(c, &c->j.pc->seats[first + i], account_at(rows, i));
	}
	return STORE_OK;
}

static struct score_rule
rule_of(const struct conf_policy *policy)
{
	int64_t shortlist = policy->pool.shortlist;

	return (struct score_rule){
	    .way = strategy_way((enum conf_strategy)policy->pool.strategy),
	    .credit_factor = policy->pool.credit_factor,
	    .success_factor = policy->pool.success_factor,
	    .idle_weight_per_hour = policy->pool.idle_weight_per_hour,
	    .idle_weight_max = policy->pool.idle_weight_max,
	    .min_pick_gap_ms = policy->pool.min_pick_gap_ms,
	    .shortlist = shortlist < 1                 ? 1
	                 : shortlist > SCORE_SHORT_MAX ? SCORE_SHORT_MAX
	                                               : (unsigned)shortlist,
	};
}

static enum pick_result
reason_of(const struct judge *j)
{
	const unsigned *out = j->reason.out;

	if (out[SCORE_FULL] > 0)
		return PICK_FULL;
	if (out[SCORE_COOLING] + out[SCORE_BREAKER] + out[SCORE_MODEL_COOLING] > 0 ||
	    (out[SCORE_QUOTA] > 0 && j->reason.earliest.v != 0))
		return PICK_COOLING;
	if (out[SCORE_TRIED] > 0)
		return PICK_TRIED;
	if (out[SCORE_MODEL_MISSING] > 0 || (out[SCORE_MODEL] > 0 && out[SCORE_DISABLED] == 0))
		return PICK_MISSING;
	return PICK_NOBODY;
}

/* What the strategy remembers between picks. */
static enum store_rc
read_strategy(struct choose *c)
{
	unsigned needs = strategy_needs(c->strategy);
	enum store_rc rc = STORE_OK;

	c->cursor = CURSOR_NOBODY;
	if (needs & STRATEGY_CURSOR)
		rc = cursor_get(c->j.txn, c->j.pc->number, &c->cursor);
	if (rc == STORE_OK && (needs & STRATEGY_SMOOTH))
		rc = cursor_smooth_get(c->j.txn, c->j.pc->number, c->j.pc->smooth, c->j.pc->top);
	return rc;
}

/* Everybody who could have been picked gains its weight; who was picked pays the sum. */
static enum store_rc
write_smooth(struct choose *c, uint32_t picked)
{
	struct pool_channel *pc = c->j.pc;
	double total = 0;

	for (uint32_t n = 0; n < pc->top; n++) {
		uint32_t index = pc->seats[n].index;

		if (index == UINT32_MAX || pc->judged[index] != SCORE_IN)
			continue;
		pc->smooth[n] += (int32_t)(c->j.channel->accounts[index].weight * 1000);
		total += c->j.channel->accounts[index].weight * 1000;
	}
	pc->smooth[picked] -= (int32_t)total;
	return cursor_smooth_put(c->j.txn, pc->number, pc->smooth, pc->top);
}

static enum store_rc
write_strategy(struct choose *c, uint32_t picked)
{
	unsigned needs = strategy_needs(c->strategy);
	enum store_rc rc = STORE_OK;

	if (needs & STRATEGY_CURSOR)
		rc = cursor_put(c->j.txn, c->j.pc->number, picked);
	if (rc == STORE_OK && (needs & STRATEGY_SMOOTH))
		rc = write_smooth(c, picked);
	return rc;
}

static void
breaker_event(struct choose *c)
{
	const struct breaker_change *change = &c->j.reason.breaker;
	struct journal_row *event = &c->j.reason.events[0];

	if (!change->moved)
		return;
	*event = (struct journal_row){
	    .level = change->warn ? JOURNAL_WARN : JOURNAL_INFO,
	    .at_ms = c->j.now.v,
	    .old_until_ms = change->old_until_ms,
	    .new_until_ms = change->until_ms,
	};
	text_clean(event->channel, sizeof event->channel, c->j.channel->name);
	snprintf(event->from, sizeof event->from, "%s", breaker_state_name(change->from));
	snprintf(event->to, sizeof event->to, "%s", breaker_state_name(change->to));
	snprintf(event->cause, sizeof event->cause, "%s",
	    change->trigger != 0 ? breaker_trigger_name(change->trigger) : "channel breaker");
	text_clean(event->rule, sizeof event->rule, text_span(change->text));
	c->j.reason.nevents = 1;
}

/* Bring the channel's breaker up to date and ask it. Writes nothing yet. */
static enum store_rc
ask_breaker(struct choose *c, enum breaker_answer *answer_out)
{
	struct breaker_policy policy = pick_breaker_policy(&c->j.channel->policy);
	enum store_rc rc = breaker_get(c->j.txn, c->j.pc->number, &c->breaker);
	struct breaker_facts facts = {
	    .active = c->j.active,
	    .fallback = c->j.wish->fallback,
	    .consecutive = c->j.consecutive,
	};

	if (rc != STORE_OK && rc != STORE_NONE)
		return rc;
	if (c->breaker.state == BREAKER_HALF_OPEN)
		facts.permits = judge_permits(&c->j, c->breaker.round);
	breaker_look(&c->breaker, &facts, &policy, c->j.now, &c->j.reason.breaker);
	*answer_out = breaker_admit(&c->breaker, &policy);
	breaker_event(c);
	return STORE_OK;
}

/* This account or none: tried and resting as it may be, but within its limit. */
static void
choose_insisted(struct choose *c, struct choose_one *choice_out)
{
	size_t account = c->j.wish->insist;
	enum score_out out = c->j.pc->judged[account];

	*choice_out = (struct choose_one){account, SLOT_REQUEST};
	if (out != SCORE_IN && out != SCORE_COOLING && out != SCORE_TRIED)
		c->j.reason.result = reason_of(&c->j);
	else if (judge_has_room(&c->j, &c->j.pc->seats[c->j.pc->numbers[account]]))
		c->j.reason.result = PICK_TAKEN;
	else
		c->j.reason.result = PICK_FULL;
}

/* The session's own account, if it can serve. */
static bool
choose_bound(struct choose *c, struct choose_one *choice_out)
{
	const struct pick_session *session = &c->j.reason.session;

	if (!session->bound || session->trouble != STICKY_FINE)
		return false;
	*choice_out = (struct choose_one){c->j.pc->seats[session->account].index, SLOT_REQUEST};
	c->j.reason.result = PICK_TAKEN;
	c->by_session = true;
	return true;
}

static enum store_rc
close_survey(struct choose *c)
{
	const struct conf_policy *policy = &c->j.channel->policy;
	int64_t last_ms;
	enum store_rc rc = STORE_OK;

	if (c->j.tiers && policy->pool.cost_explore_ms > 0) {
		rc = price_explored_get(c->j.txn, c->j.pc->number, &last_ms);
		c->explore = rc == STORE_OK &&
		             price_explores(last_ms, policy->pool.cost_explore_ms, c->j.now);
	}
	score_close(&c->board, c->explore, c->j.count_bound);
	return rc;
}

/* Everybody who was judged eligible, onto the board. */
static enum store_rc
rank(struct choose *c)
{
	enum store_rc rc = close_survey(c);

	c->ranked = true;
	return rc == STORE_OK ? each_account(c, visit_offer) : rc;
}

static void
choose_probe(struct choose *c, struct choose_one *choice_out)
{
	c->j.reason.result = reason_of(&c->j);
	if (c->j.reason.result == PICK_FULL || c->j.wish->no_probe || !c->j.has_probe ||
	    judge_probe_runs(&c->j))
		return;
	*choice_out = (struct choose_one){c->j.probe, SLOT_PROBE};
	c->j.reason.result = PICK_TAKEN;
}

/* Among accounts: PICK_TAKEN and the choice, or why not. */
static enum store_rc
among_accounts(struct choose *c, struct choose_one *choice_out)
{
	enum store_rc rc;

	if (c->j.wish->insist != PICK_ANY) {
		choose_insisted(c, choice_out);
		return STORE_OK;
	}
	if (choose_bound(c, choice_out))
		return STORE_OK;
	rc = rank(c);
	if (rc != STORE_OK)
		return rc;
	choice_out->kind = SLOT_REQUEST;
	if (score_draw(&c->board, &choice_out->account))
		c->j.reason.result = PICK_TAKEN;
	else
		choose_probe(c, choice_out);
	return STORE_OK;
}

/* Behind the end of its chain a request may still try who rests, but has had its probe. */
static bool
is_closed_to(const struct choose *c, enum breaker_answer answer)
{
	bool last = c->j.wish->last_resort;

	switch (answer) {
	case BREAKER_YES: return false;
	case BREAKER_PERMIT: return last;
	case BREAKER_SPENT: break;
	case BREAKER_NO: return !last || c->breaker.trigger != BREAKER_POOL_EXHAUSTED;
	}
	return true;
}

enum store_rc
choose_account(struct choose *c, struct choose_one *choice_out)
{
	enum breaker_answer answer = BREAKER_YES;
	enum store_rc rc = each_account(c, visit_judge);

	if (rc == STORE_OK)
		rc = ask_breaker(c, &answer);
	if (rc != STORE_OK)
		return rc;
	c->permit = answer == BREAKER_PERMIT;
	if (is_closed_to(c, answer)) {
		c->j.reason.result = PICK_OPEN;
		c->j.reason.earliest.v = c->breaker.until_ms;
		return STORE_OK;
	}
	rc = among_accounts(c, choice_out);
	if (c->permit && c->j.reason.result == PICK_TAKEN && choice_out->kind == SLOT_REQUEST)
		choice_out->kind = SLOT_PERMIT;
	return rc;
}

/* What the strategy, the breaker and the prices remember of this pick. */
enum store_rc
choose_remember(struct choose *c, const struct choose_one *choice, uint32_t number)
{
	enum store_rc rc = STORE_OK;

	if (choice->kind == SLOT_PERMIT) {
		breaker_permit(&c->breaker);
		c->j.reason.breaker.write = true;
	}
	if (choice->kind != SLOT_PROBE && c->board.n > 0)
		rc = write_strategy(c, number);
	if (rc == STORE_OK && c->explore)
		rc = price_explored_put(c->j.txn, c->j.pc->number, c->j.now);
	return rc;
}

enum store_rc
choose_write(struct choose *c)
{
	enum store_rc rc = STORE_OK;

	if (c->j.reason.breaker.write)
		rc = breaker_put(c->j.txn, c->j.pc->number, &c->breaker);
	for (unsigned i = 0; i < c->j.reason.nevents && rc == STORE_OK; i++)
		rc = journal_add(c->j.txn, &c->j.reason.events[i]);
	return rc;
}

enum store_rc
choose_open(struct choose *c, struct txn *txn, const struct slot *slot,
    const struct pick_wish *wish, struct wall_ms now)
{
	enum store_rc rc = judge_open(&c->j, txn, slot, wish, now);

	c->strategy = (enum conf_strategy)c->j.channel->policy.pool.strategy;
	c->permit = c->explore = c->ranked = c->by_session = false;
	c->breaker.round = 0;
	c->rule = rule_of(&c->j.channel->policy);
	score_begin(&c->board, &c->rule, now, wish->random);
	return rc == STORE_OK ? read_strategy(c) : rc;
}

enum store_rc
choose_look(struct choose *c)
{
	enum breaker_answer answer = BREAKER_YES;
	enum store_rc rc = each_account(c, visit_judge);

	if (rc == STORE_OK)
		rc = ask_breaker(c, &answer);
	score_close(&c->board, false, false);
	if (rc == STORE_OK)
		rc = each_account(c, visit_offer);
	c->j.reason.result = c->board.n > 0 ? PICK_TAKEN : reason_of(&c->j);
	if (answer == BREAKER_NO || answer == BREAKER_SPENT)
		c->j.reason.result = PICK_OPEN;
	return rc;
}

enum store_rc
choose_show(struct choose *c, pick_seen_fn *fn, void *arg)
{
	struct pick_reason reason = c->j.reason; /* looking again must not change it */
	enum store_rc rc = c->ranked ? STORE_OK : rank(c);

	c->show = fn;
	c->show_arg = arg;
	if (rc == STORE_OK)
		rc = each_account(c, visit_show);
	c->j.reason = reason;
	return rc;
}
