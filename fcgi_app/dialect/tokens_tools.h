/*
 * tokens_tools - what tools and the schema of an answer cost in tokens.
 *
 * OpenAI    each function and its properties as OpenAI writes them out for the model: a line for each with name, type and
 *           description, and the values of an enum. What has properties of its own counts as JSON
 * Others    the JSON without blanks, by nine tenths; Claude adds what it says about tools
 * Accuracy  about 5 tokens a function
 * Source    formats.md G.5, G.6
 */
#ifndef DIALECT_TOKENS_TOOLS_H
#define DIALECT_TOKENS_TOOLS_H

#include "dialect/tokens.h"

struct tokens_tools {
	int64_t hundredths; /* of texts, as tokens_hundredths() */
	int64_t tokens;
};

struct tokens_tools tokens_tools(const struct tokens_model *model, const struct form *form);

#endif
