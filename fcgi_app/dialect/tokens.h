/*
 * tokens - how many tokens a text or a conversation is for a model: exactly where the rank tables of OpenAI's encodings
 * are at hand, else estimated.
 *
 * Exact     texts of OpenAI's models, by cl100k_base and o200k_base; what is around them (messages, tools, pictures) by
 *           formats.md G.5, which nobody has published
 * Estimated DeepSeek, Qwen and Claude before 3 by estimate.h; Claude as a share more than o200k_base; models of which
 *           nothing is known as o200k_base. All of them by estimate.h where there are no tables
 * Around    what the API puts around messages, tools and calls; images by their size, never by their base64
 * Memory    the tables are mapped from a file and shared by all processes; per process: what the splitter needs
 * Source    formats.md G; SPEC.md section 13
 */
#ifndef DIALECT_TOKENS_H
#define DIALECT_TOKENS_H

#include "base/err.h"
#include "dialect/estimate.h"
#include "dialect/form.h"
#include "dialect/picture.h"
#include "dialect/vocab.h"

struct tokens; /* one per process; NULL is fine everywhere: all is estimated */

/* Map the file. ERR_NOT_FOUND: there is none; ERR_BAD_INPUT: not such a file, or damaged. */
enum err tokens_open(const char *path, struct tokens **tokens_out, struct why *why) MUST_CHECK;
void tokens_close(struct tokens **tokens);

/* Is every bit of the file as it was made? Reads all of it. */
bool tokens_are_whole(const struct tokens *tokens);
/* Was it cut since it was opened? All is estimated then. */
bool tokens_are_lost(const struct tokens *tokens);
/* By an encoding of OpenAI's; each byte that is no UTF-8 is taken for U+FFFD. */
int64_t tokens_exact(struct tokens *tokens, enum vocab_encoding encoding, struct span text);

struct tokens_model {
	struct tokens *tokens; /* NULL: estimated */
	struct estimate_model by;
	struct picture_price picture;
	bool coded; /* by the tables, if perhaps those of another model */
	bool exact; /* texts are counted as the model does */
};
struct tokens_model tokens_model(struct tokens *tokens, struct span model);

int64_t tokens_text(const struct tokens_model *model, struct span text);
/* A turn with what the API puts around it. */
int64_t tokens_turn(const struct tokens_model *model, const struct form_turn *turn);
/* What there is beside turns: tools, schema, the begin of the answer. */
int64_t tokens_frame(const struct tokens_model *model, const struct form *form);
/* = frame and all turns */
int64_t tokens_form(const struct tokens_model *model, const struct form *form);
/* Is that what the model itself would say? False where there are tools, calls, pictures or a schema. */
bool tokens_are_exact(const struct tokens_model *model, const struct form *form);

/* Hundredths of a token, before the model's share: for the sums of others here. */
int64_t tokens_hundredths(const struct tokens_model *model, struct span text);

#endif
