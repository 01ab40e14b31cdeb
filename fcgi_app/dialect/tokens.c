#include "dialect/tokens.h"

#include "base/buf.h"
#include "dialect/bpe.h"
#include "dialect/split.h"
#include "dialect/tokens_tools.h"

#include <stdlib.h>

/* Tokens around the texts: formats.md G.5, G.6. */
#define MESSAGE 4 /* with its role */
#define NAME 1
#define ANSWER 3 /* the begin of what is asked for */
#define CALL 8
#define PICTURE 1000 /* of unknown size */
#define PAGE 2000
#define PAGE_BYTES 50000 /* of base64: a guess, as the pages are not looked for */
#define MEMO_FROM 16384  /* bytes of a text, from which on a memo is worth its memory */
#define SOUND_BYTES 2000 /* of base64 a token, at 128 kbit/s */

struct tokens {
	struct vocab vocab;
	struct split *split;
	struct bpe_room room;
};

enum err
tokens_open(const char *path, struct tokens **tokens_out, struct why *why)
{
	struct tokens *tokens;
	struct vocab vocab;
	enum err err = vocab_open(path, &vocab, why);

	*tokens_out = NULL;
	if (err != ERR_OK)
		return err;
	tokens = calloc(1, sizeof *tokens);
	if (tokens == NULL)
		die("no memory");
	tokens->vocab = vocab;
	tokens->split = split_new();
	*tokens_out = tokens;
	return ERR_OK;
}

void
tokens_close(struct tokens **tokens)
{
	if (*tokens == NULL)
		return;
	vocab_close(&(*tokens)->vocab);
	split_free(&(*tokens)->split);
	free((*tokens)->room.memo);
	free(*tokens);
	*tokens = NULL;
}

bool
tokens_are_whole(const struct tokens *tokens)
{
	return vocab_whole(&tokens->vocab);
}

bool
tokens_are_lost(const struct tokens *tokens)
{
	return vocab_is_lost(&tokens->vocab);
}

static int64_t
count_valid(struct tokens *tokens, enum vocab_encoding encoding, struct span text)
{
	const struct vocab_table *table = &tokens->vocab.tables[encoding];
	struct span piece;
	int64_t n = 0;

	if (tokens->room.memo == NULL && text.n >= MEMO_FROM)
		tokens->room.memo = calloc(1, sizeof *tokens->room.memo); /* or none */
	split_begin(tokens->split, encoding, text);
	while (split_next(tokens->split, &piece))
		n += (int64_t)bpe_count(table, piece, &tokens->room, NULL);
	return n;
}

/* Bytes of the character that begins there; 0: none does. */
static size_t
character(struct span text)
{
	for (size_t n = 1; n <= 4 && n <= text.n; n++)
		if (text_utf8((struct span){text.p, n}))
			return n;
	return 0;
}

/* Each byte that is no UTF-8 is counted as U+FFFD. */
static int64_t
count_mended(struct tokens *tokens, enum vocab_encoding encoding, struct span text)
{
	struct buf mended;
	int64_t n;

	buf_init(&mended, 3 * text.n + 1);
	for (size_t at = 0; at < text.n;) {
		size_t length = character(text_from(text, at));

		if (length > 0)
			buf_add(&mended, text.p + at, length);
		else
			buf_z(&mended, "\xef\xbf\xbd");
		at += length > 0 ? length : 1;
	}
	n = count_valid(tokens, encoding, buf_text(&mended));
	buf_release(&mended);
	return n;
}

int64_t
tokens_exact(struct tokens *tokens, enum vocab_encoding encoding, struct span text)
{
	return text_utf8(text) ? count_valid(tokens, encoding, text)
	                       : count_mended(tokens, encoding, text);
}

struct tokens_model
tokens_model(struct tokens *tokens, struct span model)
{
	struct tokens_model out = {
	    .tokens = tokens,
	    .by = estimate_model(model),
	    .picture = picture_price(estimate_bare(model)),
	};

	out.coded = tokens != NULL && !tokens_are_lost(tokens) &&
	            (out.by.table == ESTIMATE_O200K || out.by.table == ESTIMATE_CL100K);
	out.exact = out.coded && out.by.openai;
	return out;
}

int64_t
tokens_hundredths(const struct tokens_model *model, struct span text)
{
	enum vocab_encoding encoding =
	    model->by.table == ESTIMATE_CL100K ? VOCAB_CL100K : VOCAB_O200K;

	int64_t n = model->coded ? tokens_exact(model->tokens, encoding, text) : 0;

	return model->coded && !tokens_are_lost(model->tokens)
	           ? 100 * n
	           : estimate_text(model->by.table, text);
}

struct count {
	const struct tokens_model *model;
	int64_t text; /* hundredths, by the table */
	int64_t tokens;
};

static void
add_text(struct count *c, struct span text)
{
	c->text += tokens_hundredths(c->model, text);
}

static int64_t
picture(const struct tokens_model *model, const struct form_media *media)
{
	struct picture_size size;

	if (!picture_size(media->data, &size))
		return PICTURE;
	return model->by.claude
	           ? picture_tokens_claude(&size)
	           : picture_tokens(&model->picture, &size, text_is(media->detail, "low"));
}

static void
add_media(struct count *c, enum form_kind kind, const struct form_media *media)
{
	if (media->plain.n > 0)
		add_text(c, media->plain);
	else if (kind == FORM_AUDIO)
		c->tokens += (int64_t)(media->data.n / SOUND_BYTES) + 1;
	else if (kind == FORM_DOCUMENT)
		c->tokens += PAGE * ((int64_t)(media->data.n / PAGE_BYTES) + 1);
	else
		c->tokens += picture(c->model, media);
}

/* Parts of a result are texts and media only, so this goes one step deep. */
static void
add_plain_part(struct count *c, const struct form_part *part)
{
	switch (part->kind) {
	case FORM_TEXT:
	case FORM_REFUSAL:
	case FORM_THOUGHT:
	case FORM_OPAQUE: add_text(c, part->text); break;
	case FORM_IMAGE:
	case FORM_DOCUMENT:
	case FORM_AUDIO: add_media(c, part->kind, &part->media); break;
	case FORM_CALL:
		add_text(c, part->call.name);
		add_text(c, part->call.arguments);
		c->tokens += CALL;
		break;
	case FORM_RESULT: break;
	}
}

static void
add_part(struct count *c, const struct form_part *part)
{
	const struct form_result *result = &part->result;

	add_plain_part(c, part);
	if (part->kind != FORM_RESULT)
		return;
	c->tokens += MESSAGE;
	for (size_t i = 0; i < result->nparts; i++)
		add_plain_part(c, &result->parts[i]);
}

static int64_t
total(const struct count *c)
{
	return c->tokens + (c->text * c->model->by.percent + 5000) / 10000;
}

int64_t
tokens_text(const struct tokens_model *model, struct span text)
{
	struct count c = {.model = model};

	add_text(&c, text);
	return total(&c);
}

int64_t
tokens_turn(const struct tokens_model *model, const struct form_turn *turn)
{
	/* each result is a message of its own */
	struct count c = {.model = model, .tokens = turn->role == FORM_TOOL ? 0 : MESSAGE};

	if (turn->name.n > 0) {
		add_text(&c, turn->name);
		c.tokens += NAME;
	}
	for (size_t p = 0; p < turn->nparts; p++)
		add_part(&c, &turn->parts[p]);
	return total(&c);
}

int64_t
tokens_frame(const struct tokens_model *model, const struct form *form)
{
	struct count c = {.model = model, .tokens = ANSWER};
	struct tokens_tools tools = tokens_tools(model, form);

	c.text += tools.hundredths;
	c.tokens += tools.tokens;
	return total(&c);
}

int64_t
tokens_form(const struct tokens_model *model, const struct form *form)
{
	int64_t n = tokens_frame(model, form);

	for (size_t i = 0; i < form->nturns; i++)
		n += tokens_turn(model, &form->turns[i]);
	return n;
}

static bool
is_text(const struct form_turn *turn)
{
	for (size_t i = 0; i < turn->nparts; i++)
		if (turn->parts[i].kind != FORM_TEXT && turn->parts[i].kind != FORM_REFUSAL)
			return false;
	return turn->role != FORM_TOOL;
}

bool
tokens_are_exact(const struct tokens_model *model, const struct form *form)
{
	if (!model->exact || tokens_are_lost(model->tokens) || form->ntools > 0 ||
	    form->schema.n > 0)
		return false;
	for (size_t i = 0; i < form->nturns; i++)
		if (!is_text(&form->turns[i]))
			return false;
	return true;
}
