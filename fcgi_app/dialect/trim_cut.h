/*
 * trim_cut - shorten what is left of a conversation when no turn of it may go any more.
 *
 * Which     texts of turns, of results and of documents, and thoughts without a seal; never arguments of calls, nor what
 *           is not text
 * How       all texts above one level of tokens are cut to it, so the longest give most and small ones nothing; each is
 *           cut in the middle
 * Time      a text is counted whole once, and its cut form a few times
 */
#ifndef DIALECT_TRIM_CUT_H
#define DIALECT_TRIM_CUT_H

#include "dialect/tokens.h"

struct trim_cut {
	struct arena *arena;
	const struct tokens_model *model;
	struct form_turn *turns; /* changed in place: copies, where something is cut */
	int64_t *tokens;         /* of each turn; changed with it */
	const bool *fixed;       /* turns that stay as they are */
	size_t nturns;
	int64_t excess; /* tokens that have to go */
	size_t changed; /* turns that were cut */
	int64_t
	    cuttable; /* tokens that could go at most, where the excess is more: nothing was cut then */
};

/* Whether the excess is gone. Else some of it may be. */
bool trim_cut(struct trim_cut *cut);

#endif
