#include "dialect/estimate.h"

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

struct count {
	struct estimate_model model;
	int64_t text; /* hundredths, by the table */
	int64_t tokens;
};

static bool
starts(struct span model, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text_starts_fold(model, prefixes[i]))
			return true;
	return false;
}

/* The next number of at most two digits: dates are no versions. */
static int
next_number(struct span *name)
{
	struct span word;

	while (text_token(name, "-._@:/", &word)) {
		int64_t n;

		if (word.n <= 2 && text_i64(word, 0, 99, &n))
			return (int)n;
	}
	return -1;
}

static struct estimate_model
claude(struct span name)
{
	int major = next_number(&name), minor = next_number(&name);
	bool old = text_has_fold(name, "instant") || (major >= 0 && major < 3);

	if (old)
		return (struct estimate_model){ESTIMATE_CLAUDE2, 100, true};
	if (major < 0 || major > 4 || (major == 4 && minor >= 7))
		return (struct estimate_model){ESTIMATE_O200K, 155, true};
	return (struct estimate_model){ESTIMATE_O200K, 120, true};
}

struct estimate_model
estimate_model(struct span model)
{
	static const char *const newer[] = {"gpt-4o", "gpt-4.1", "gpt-4.5"};
	static const char *const older[] = {"gpt-4", "gpt-3.5", "text-embedding-"};
	struct estimate_model out = {ESTIMATE_O200K, 100, false};
	size_t at = text_find_fold(model, SPAN("claude"));

	if (at < model.n)
		return claude(text_from(model, at));
	if (text_has_fold(model, "deepseek"))
		out.table = ESTIMATE_DEEPSEEK;
	else if (text_has_fold(model, "qwen") || text_has_fold(model, "qwq"))
		out.table = ESTIMATE_QWEN;
	else if (starts(model, older, NELEM(older)) && !starts(model, newer, NELEM(newer)))
		out.table = ESTIMATE_CL100K;
	return out;
}

static void
add_text(struct count *c, struct span text)
{
	c->text += estimate_text(c->model.table, text);
}

/* JSON of tools is dearer than it is counted: formats.md G.5. */
static void
add_schema(struct count *c, struct span text)
{
	c->text += estimate_text(c->model.table, text) * 9 / 10;
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
	else if (c->model.claude)
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
		c->tokens += c->model.claude ? TOOLS_CLAUDE : TOOLS;
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

int64_t
estimate_form(const struct form *form, struct span model)
{
	struct count c = {.model = estimate_model(model), .tokens = ANSWER};

	for (size_t i = 0; i < form->nturns; i++) {
		const struct form_turn *turn = &form->turns[i];

		c.tokens += MESSAGE;
		add_text(&c, turn->name);
		for (size_t p = 0; p < turn->nparts; p++)
			add_part(&c, &turn->parts[p]);
	}
	add_tools(&c, form);
	add_schema(&c, form->schema);
	return c.tokens + (c.text * c.model.percent + 9999) / 10000;
}
