#include "dialect/chat_parts.h"

#include "dialect/chat_media.h"
#include "dialect/seal.h"
#include "dialect/value.h"

#include <stdio.h>

#define WHERE_BYTES 96

void
chat_parts_pick(struct chat_reader *r, struct span object, const char *const *names,
    struct scan_value *out, size_t n, const char *where)
{
	struct scan_value value;
	struct span name;
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		out[i] = (struct scan_value){.type = SCAN_ABSENT};
	while (scan_next(object, &at, &name, &value)) {
		size_t i = 0;

		while (i < n && !scan_is(name, names[i]))
			i++;
		if (value.type == SCAN_NULL)
			value = (struct scan_value){.type = SCAN_ABSENT};
		if (i < n) {
			out[i] = value;
		} else if (value.type != SCAN_ABSENT) {
			struct span plain = scan_string(r->arena, name);

			form_add_extra(r->arena, r->form,
			    text_span(arena_join(r->arena,
			        (const struct span[]){text_span(where), SPAN("."), plain}, 3)),
			    value.raw);
		}
	}
}

enum err
chat_parts_text(struct chat_reader *r, const struct scan_value *value, const char *where,
    const char *name, struct span *out)
{
	*out = (struct span){"", 0};
	if (value->type == SCAN_ABSENT || value->type == SCAN_NULL)
		return ERR_OK;
	if (value->type != SCAN_STRING) {
		err_why(
		    r->why, "'%s%s%s' must be a string", where, *where == '\0' ? "" : ".", name);
		return ERR_BAD_INPUT;
	}
	*out = scan_string(r->arena, value->raw);
	return ERR_OK;
}

enum {
	TYPE,
	TEXT,
	REFUSAL,
	IMAGE_URL,
	DETAIL,
	FILE_ID,
	FILE_DATA,
	FILE_URL,
	FILE_NAME,
	FILE_OBJECT,
	AUDIO,
	THINKING,
	CACHE,
	PART__MAX
};

static const char *const part_names[PART__MAX] = {
    [TYPE] = "type",
    [TEXT] = "text",
    [REFUSAL] = "refusal",
    [IMAGE_URL] = "image_url",
    [DETAIL] = "detail",
    [FILE_ID] = "file_id",
    [FILE_DATA] = "file_data",
    [FILE_URL] = "file_url",
    [FILE_NAME] = "filename",
    [FILE_OBJECT] = "file",
    [AUDIO] = "input_audio",
    [THINKING] = "thinking",
    [CACHE] = "cache_control",
};

/* One part of a message's content. */
struct part {
	struct chat_reader *r;
	struct form_turn *turn;
	const char *where;
	size_t in; /* "content"; SIZE_MAX: it is a string */
	struct scan_value v[PART__MAX];
};

static enum err
refuse(const struct part *p, const char *text)
{
	err_why(p->r->why, "'%s' %s", p->where, text);
	return ERR_BAD_INPUT;
}

static struct form_part *
add(const struct part *p, enum form_kind kind)
{
	struct form_part *part = form_add_part(p->r->arena, p->turn, kind);

	part->in = p->in;
	if (p->v[CACHE].type == SCAN_OBJECT)
		part->cache_control = p->v[CACHE].raw;
	return part;
}

static enum err
read_string(
    const struct part *p, const struct scan_value *value, enum form_kind kind, const char *name)
{
	struct span text;
	enum err err = chat_parts_text(p->r, value, p->where, name, &text);

	if (err == ERR_OK && text.n > 0)
		add(p, kind)->text = text;
	return err;
}

static enum err
read_text(const struct part *p)
{
	if (p->v[TEXT].type == SCAN_ABSENT)
		return refuse(p, "has no 'text'");
	return read_string(p, &p->v[TEXT], FORM_TEXT, "text");
}

static enum err
read_refusal(const struct part *p)
{
	return read_string(p, &p->v[REFUSAL], FORM_REFUSAL, "refusal");
}

/* {"image_url":{"url","detail"}}; other hosts' clients write {"image_url":"..."}, and file_id. */
static enum err
read_image(const struct part *p)
{
	static const char *const names[] = {"url", "detail"};
	struct scan_value v[NELEM(names)] = {p->v[IMAGE_URL], p->v[DETAIL]};
	struct form_media media = {.detail = {"", 0}};
	struct span url;
	enum err err;

	if (p->v[IMAGE_URL].type == SCAN_OBJECT)
		chat_parts_pick(p->r, p->v[IMAGE_URL].raw, names, v, NELEM(names), p->where);
	err = chat_parts_text(p->r, &v[0], p->where, "image_url", &url);
	if (err == ERR_OK)
		err = chat_parts_text(p->r, &v[1], p->where, "detail", &media.detail);
	if (err == ERR_OK)
		err = chat_parts_text(p->r, &p->v[FILE_ID], p->where, "file_id", &media.file_id);
	if (err != ERR_OK)
		return err;
	if (url.n == 0 && media.file_id.n == 0)
		return refuse(p, "is an image without a URL");
	if (url.n > 0 && !chat_media_image(p->r->arena, url, &media))
		return refuse(p, "has an image whose URL is neither http(s) nor base64 data");
	add(p, FORM_IMAGE)->media = media;
	return ERR_OK;
}

static enum err
read_file(const struct part *p)
{
	static const char *const names[] = {"file_data", "filename", "file_id", "file_url"};
	struct scan_value v[NELEM(names)] = {
	    p->v[FILE_DATA], p->v[FILE_NAME], p->v[FILE_ID], p->v[FILE_URL]};
	struct form_media media = {.title = {"", 0}};
	struct span data;
	enum err err;

	if (p->v[FILE_OBJECT].type == SCAN_OBJECT)
		chat_parts_pick(p->r, p->v[FILE_OBJECT].raw, names, v, NELEM(names), p->where);
	err = chat_parts_text(p->r, &v[0], p->where, "file_data", &data);
	if (err == ERR_OK)
		err = chat_parts_text(p->r, &v[1], p->where, "filename", &media.title);
	if (err == ERR_OK)
		err = chat_parts_text(p->r, &v[2], p->where, "file_id", &media.file_id);
	if (err == ERR_OK)
		err = chat_parts_text(p->r, &v[3], p->where, "file_url", &media.url);
	if (err != ERR_OK)
		return err;
	if (data.n == 0 && media.file_id.n == 0 && media.url.n == 0)
		return refuse(p, "is a file without data");
	if (data.n > 0 && !chat_media_document(p->r->arena, data, &media))
		return refuse(p, "has a file whose data is not base64");
	add(p, FORM_DOCUMENT)->media = media;
	return ERR_OK;
}

static enum err
read_audio(const struct part *p)
{
	static const char *const names[] = {"data", "format"};
	struct scan_value v[NELEM(names)];
	struct form_media media = {.url = {"", 0}};
	enum err err;

	if (p->v[AUDIO].type != SCAN_OBJECT)
		return refuse(p, "has no 'input_audio'");
	chat_parts_pick(p->r, p->v[AUDIO].raw, names, v, NELEM(names), p->where);
	err = chat_parts_text(p->r, &v[0], p->where, "input_audio.data", &media.data);
	if (err == ERR_OK)
		err =
		    chat_parts_text(p->r, &v[1], p->where, "input_audio.format", &media.media_type);
	if (err == ERR_OK)
		add(p, FORM_AUDIO)->media = media;
	return err;
}

/* Mistral: {"type":"thinking","thinking":[{"type":"text","text"}]} */
static enum err
read_thinking(const struct part *p)
{
	struct scan_value item;
	struct span none;
	size_t at = 0;
	enum err err = ERR_OK;

	if (p->v[THINKING].type == SCAN_STRING)
		return read_string(p, &p->v[THINKING], FORM_THOUGHT, "thinking");
	if (p->v[THINKING].type != SCAN_ARRAY)
		return refuse(p, "has no 'thinking'");
	while (err == ERR_OK && scan_next(p->v[THINKING].raw, &at, &none, &item)) {
		struct scan_value text = value_member(&item, "text");

		err = read_string(p, &text, FORM_THOUGHT, "thinking");
	}
	return err;
}

static const struct kind {
	const char *type;
	enum err (*read)(const struct part *p);
} kinds[] = {
    {"text", read_text},
    {"input_text", read_text},
    {"output_text", read_text},
    {"refusal", read_refusal},
    {"image_url", read_image},
    {"input_image", read_image},
    {"file", read_file},
    {"input_file", read_file},
    {"input_audio", read_audio},
    {"thinking", read_thinking},
};

static enum err
read_part(struct chat_reader *r, const struct scan_value *value, struct form_turn *turn,
    const char *where, size_t in)
{
	struct part p = {.r = r, .turn = turn, .where = where, .in = in};
	struct span type;
	enum err err;

	if (value->type == SCAN_STRING)
		return read_string(&p, value, FORM_TEXT, "text");
	if (value->type != SCAN_OBJECT)
		return refuse(&p, "must be an object with a 'type'");
	chat_parts_pick(r, value->raw, part_names, p.v, PART__MAX, where);
	err = chat_parts_text(r, &p.v[TYPE], where, "type", &type);
	if (err != ERR_OK)
		return err;
	if (type.n == 0 && p.v[TEXT].type != SCAN_ABSENT)
		return read_text(&p);
	for (size_t i = 0; i < NELEM(kinds); i++)
		if (text_is(type, kinds[i].type))
			return kinds[i].read(&p);
	err_why(r->why, "'%s' has the type '%.*s', which is not known here", where,
	    (int)text_cut(type, 60), type.p);
	return ERR_BAD_INPUT;
}

enum err
chat_parts_read(struct chat_reader *r, const struct scan_value *content, struct form_turn *turn)
{
	char where[WHERE_BYTES];
	struct scan_value value;
	struct span none;
	size_t at = 0;
	enum err err = ERR_OK;

	if (content->type == SCAN_ABSENT || content->type == SCAN_NULL)
		return ERR_OK;
	snprintf(where, sizeof where, "messages[%zu].content", r->at);
	if (content->type == SCAN_STRING)
		return read_part(r, content, turn, where, SIZE_MAX);
	if (content->type != SCAN_ARRAY) {
		err_why(r->why, "'%s' must be a string or an array of parts", where);
		return ERR_BAD_INPUT;
	}
	for (size_t i = 0; err == ERR_OK && scan_next(content->raw, &at, &none, &value); i++) {
		snprintf(where, sizeof where, "messages[%zu].content[%zu]", r->at, i);
		err = read_part(r, &value, turn, where, i);
	}
	return err;
}

/* The bytes of `text` that "text-<first>-<end>" names; all that is left where it names none. */
static struct span
cut_text(struct span text, struct span id, size_t *used)
{
	struct span from, to;
	int64_t first, end, max = (int64_t)text.n;

	if (text_token(&id, "-", &from) && text_is(from, "text") && text_token(&id, "-", &from) &&
	    text_token(&id, "-", &to) && text_i64(from, (int64_t)*used, max, &first) &&
	    text_i64(to, first, max, &end)) {
		*used = (size_t)end;
		return (struct span){text.p + first, (size_t)(end - first)};
	}
	text = text_from(text, *used);
	*used += text.n;
	return text;
}

/* What one element of reasoning_details says. */
struct detail {
	struct span data, id, text;
};

static enum err
read_detail(struct chat_reader *r, struct span raw, struct detail *out)
{
	static const char *const names[] = {
	    "data", "id", "text", "signature", "summary", "type", "index", "format"};
	struct span texts[5];
	struct scan_value v[NELEM(names)];
	char where[WHERE_BYTES];

	snprintf(where, sizeof where, "messages[%zu].reasoning_details", r->at);
	chat_parts_pick(r, raw, names, v, NELEM(names), where);
	for (size_t i = 0; i < NELEM(texts); i++)
		if (chat_parts_text(r, &v[i], where, names[i], &texts[i]) != ERR_OK)
			return ERR_BAD_INPUT;
	*out = (struct detail){.data = texts[0].n > 0 ? texts[0] : texts[3],
	    .id = texts[1],
	    .text = texts[2].n > 0 ? texts[2] : texts[4]};
	if (out->data.n > 0 && !seal_open(out->data).marked) {
		form_add_extra(r->arena, r->form, SPAN("reasoning_details"), raw);
		out->data.n = 0;
	}
	return ERR_OK;
}

/* A detail without a seal says what the text says already, if there is one. */
static void
add_detail(struct chat_reader *r, const struct detail *detail, struct span text, size_t *used,
    struct form_turn *turn)
{
	struct form_part *part;

	if (detail->data.n == 0 && (detail->text.n == 0 || text.n > 0))
		return;
	part = form_add_part(r->arena, turn, FORM_THOUGHT);
	part->thought.seal = detail->data;
	part->thought.redacted = text_is(detail->id, CHAT_PARTS_REDACTED);
	if (part->thought.redacted)
		return;
	part->text = detail->text.n > 0 ? detail->text : cut_text(text, detail->id, used);
	if (detail->text.n > 0)
		*used = text.n;
}

enum err
chat_parts_thoughts(struct chat_reader *r, struct span text, const struct scan_value *details,
    struct form_turn *turn)
{
	size_t at = 0, used = 0;
	struct scan_value value;
	struct span none;

	while (details->type == SCAN_ARRAY && scan_next(details->raw, &at, &none, &value)) {
		struct detail detail;

		if (value.type != SCAN_OBJECT)
			continue;
		if (read_detail(r, value.raw, &detail) != ERR_OK)
			return ERR_BAD_INPUT;
		add_detail(r, &detail, text, &used, turn);
	}
	text = text_from(text, used);
	if (text_trim(text).n > 0)
		form_add_part(r->arena, turn, FORM_THOUGHT)->text = text;
	return ERR_OK;
}
