/*
 * trim - make a conversation fit: which turns stay, which go, which are shortened. Pure.
 *
 * Kept      whatever happens: the leading system and developer turns, the newest user turn, and with a call its result:
 *           neither is sent without the other
 * Order     dynamic: older tool exchanges (calls with their results) first, then whole rounds (a user turn
 *           and all up to the next one), oldest first; then single long texts and results are shortened, the longest
 *           first, in the middle, with a mark that says how much is missing, never inside of a character. What is not
 *           text (arguments of calls, pictures, sealed thoughts) is never cut.
 *           rounds: first all but the newest `rounds` rounds go, then as dynamic where it still does not fit
 * Budget    tokens for the whole, by `model`; 0 = no limit
 * Errors    ERR_BAD_INPUT: what must be kept does not fit and cannot be shortened: the client's 400, which says how large
 *           it is and how much fits
 * Time      about linear in turns and bytes: each is counted once, and a shortened one a few times
 * Source    SPEC.md section 13; cases.md CTX-02 to CTX-04
 */
#ifndef DIALECT_TRIM_H
#define DIALECT_TRIM_H

#include "base/err.h"
#include "dialect/tokens.h"

enum trim_way { TRIM_ROUNDS, TRIM_DYNAMIC };

struct trim_policy {
	const struct tokens_model *model;
	enum trim_way way;
	int64_t rounds;
	int64_t budget;
};

struct trim {
	struct form form;      /* what is left; turns that were shortened are copies */
	size_t messages;       /* that went or were shortened; 0: nothing was trimmed */
	int64_t before, after; /* tokens of the whole, with what is around it */
};

/* The whole conversation in; nothing of it is changed. */
enum err trim_form(struct arena *arena, const struct form *form, const struct trim_policy *policy,
    struct trim *trim_out, struct why *why) MUST_CHECK;

/*
 * Of each turn: does it begin a round? A user's does, unless it was said to results that nobody had answered yet: that
 * belongs to their round.
 */
void trim_rounds(const struct form *form, bool *begins);
/* A text with its middle taken out so that about `most` bytes stay: whole characters, and the mark. */
struct span trim_text(struct arena *arena, struct span text, size_t most);
/* Tokens of what is kept in any case: leading system and developer turns, the newest user turn, tools. */
int64_t trim_least(const struct form *form, const struct tokens_model *model);

#endif
