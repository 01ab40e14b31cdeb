/*
 * estimate - how many tokens a text has, without a tokenizer.
 *
 * Text      one pass over runs of one kind (words, digits, punctuation, CJK ...), each with a weight for the tokenizer;
 *           95 % of files lie within about 10 % of the truth. A run of base64 or hex is told from words.
 * Models    Claude: the o200k column times 1.2, from 4.7 on times 1.55
 * Time      linear in the bytes
 * Source    formats.md G.5, G.6, G.7
 */
#ifndef DIALECT_ESTIMATE_H
#define DIALECT_ESTIMATE_H

#include "base/text.h"

enum estimate_table {
	ESTIMATE_O200K,
	ESTIMATE_CL100K,
	ESTIMATE_DEEPSEEK,
	ESTIMATE_QWEN,
	ESTIMATE_CLAUDE2, /* of Claude before 3 */
	ESTIMATE__MAX
};

struct estimate_model {
	enum estimate_table table;
	unsigned percent; /* of what the table says */
	bool claude;      /* counts images and tools as Anthropic does */
	bool openai;      /* one of OpenAI's: the table's encoding is its own */
};

/* Without who serves it ("openai/") and that it was tuned ("ft:"). */
struct span estimate_bare(struct span model);

/* By the model's name. */
struct estimate_model estimate_model(struct span model);

/* Hundredths of a token; UTF-8; what is none counts as some other character. */
int64_t estimate_text(enum estimate_table table, struct span text);

#endif
