#include "dialect/tokens.h"

#include "dialect/picture.h"

/* Tokens around the texts: formats.md G.5, G.6. */
#define MESSAGE 4 /* with its role */
#define ANSWER 3  /* the begin of what is asked for */
#define CALL 8
#define TOOL 7
#define TOOLS 12 /* once */
#define TOOLS_CLAUDE 346
#define PICTURE 1000 /* of unknown size */
#define PAGE 2000
#define PAGE_BYTES 50000 /* of base64: a guess, as the pages are not looked for */
#define SOUND_BYTES 2000 /* of base64 a token, at 128 kbit/s */

struct tokens {
	int spare;
};

enum err
tokens_open(const char *path, struct tokens **tokens_out, struct why *why)
{
	*tokens_out = NULL;
	err_why(why, "%s: there is no such file", path);
	return ERR_NOT_FOUND;
}

void
tokens_close(struct tokens **tokens)
{
	*tokens = NULL;
}

struct tokens_model
tokens_model(struct tokens *tokens, struct span model)
{
	return (struct tokens_model){.tokens = tokens, .by = estimate_model(model)};
}

struct count {
	const struct tokens_model *model;
	int64_t text; /* hundredths, by the table */
	int64_t tokens;
};

static int64_t
hundredths(const struct tokens_model *model, struct span text)
{
	return estimate_text(model->by.table, text);
}

static void
add_text(struct count *c, struct span text)
{
	c->text += hundredths(c->model, text);
}

/* JSON of tools is dearer than it is counted: formats.md G.5. */
static void
add_schema(struct count *c, struct span text)
{
	c->text += hundredths(c->model, text) * 9 / 10;
}

static void
add_media(struct count *c, enum form_kind kind, const struct form_media *media)
{
	struct picture_size size;

	if (media->plain.n > 0)
		add_text(c, media->plain);
	else if (kind == FORM_AUDIO)
		c->tokens += (int64_t)(media->data.n / SOUND_BYTES) + 1;
	else if (kind == FORM_DOCUMENT)
		c->tokens += PAGE * ((int64_t)(media->data.n / PAGE_BYTES) + 1);
	else if (!picture_size(media->data, &size))
		c->tokens += PICTURE;
	else if (c->model->by.claude)
		c->tokens += picture_tokens_claude(&size);
	else
		c->tokens += picture_tokens_tiles(&size, text_is(media->detail, "low"));
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

static void
add_tools(struct count *c, const struct form *form)
{
	if (form->ntools > 0)
		c->tokens += c->model->by.claude ? TOOLS_CLAUDE : TOOLS;
	for (size_t i = 0; i < form->ntools; i++) {
		const struct form_tool *tool = &form->tools[i];

		add_text(c, tool->name);
		add_text(c, tool->description);
		add_schema(c, tool->schema);
		add_schema(c, tool->format);
		add_schema(c, tool->raw);
		c->tokens += TOOL;
	}
}

static int64_t
total(const struct count *c)
{
	return c->tokens + (c->text * c->model->by.percent + 9999) / 10000;
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
	struct count c = {.model = model, .tokens = MESSAGE};

	add_text(&c, turn->name);
	for (size_t p = 0; p < turn->nparts; p++)
		add_part(&c, &turn->parts[p]);
	return total(&c);
}

int64_t
tokens_frame(const struct tokens_model *model, const struct form *form)
{
	struct count c = {.model = model, .tokens = ANSWER};

	add_tools(&c, form);
	add_schema(&c, form->schema);
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
