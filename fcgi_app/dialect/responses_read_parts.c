#include "dialect/responses_read.h"

#include "dialect/chat_media.h"

#include <stdio.h>

#define WHERE_BYTES 96

enum {
	TYPE,
	TEXT,
	REFUSAL,
	IMAGE_URL,
	FILE_ID,
	FILE_DATA,
	FILE_URL,
	FILENAME,
	DETAIL,
	AUDIO,
	PART__MAX
};

static const char *const part_paths[PART__MAX] = {
    [TYPE] = "type",
    [TEXT] = "text",
    [REFUSAL] = "refusal",
    [IMAGE_URL] = "image_url",
    [FILE_ID] = "file_id",
    [FILE_DATA] = "file_data",
    [FILE_URL] = "file_url",
    [FILENAME] = "filename",
    [DETAIL] = "detail",
    [AUDIO] = "input_audio",
};

struct place {
	struct responses_reader *r;
	struct form_turn *turn;
	const char *where;
	size_t in; /* its list; SIZE_MAX: a string */
	struct scan_value v[PART__MAX];
};

static struct span
text_at(const struct place *p, size_t member)
{
	return responses_string(p->r->arena, &p->v[member]);
}

static struct form_part *
add(const struct place *p, enum form_kind kind)
{
	struct form_part *part = form_add_part(p->r->arena, p->turn, kind);

	part->in = p->in;
	return part;
}

static void
add_text(const struct place *p, enum form_kind kind, struct span text)
{
	if (text.n > 0)
		add(p, kind)->text = text;
}

static enum err
read_text(const struct place *p)
{
	if (p->v[TEXT].type != SCAN_STRING)
		return responses_read_refuse(p->r, "'%s.text' must be a string", p->where);
	add_text(p, FORM_TEXT, text_at(p, TEXT));
	return ERR_OK;
}

static enum err
read_refusal(const struct place *p)
{
	if (p->v[REFUSAL].type != SCAN_STRING)
		return responses_read_refuse(p->r, "'%s.refusal' must be a string", p->where);
	add_text(p, FORM_REFUSAL, text_at(p, REFUSAL));
	return ERR_OK;
}

static enum err
read_image(const struct place *p)
{
	struct form_media media = {.file_id = text_at(p, FILE_ID), .detail = text_at(p, DETAIL)};
	struct scan_value url = p->v[IMAGE_URL];

	if (url.type == SCAN_OBJECT) /* as chat has it */
		url = responses_member(&url, "url");
	if (url.type == SCAN_STRING) {
		if (!chat_media_image(p->r->arena, scan_string(p->r->arena, url.raw), &media))
			return responses_read_refuse(p->r,
			    "'%s.image_url' must be an http(s) URL or base64 data in a data URL",
			    p->where);
	} else if (media.file_id.n == 0) {
		return responses_read_refuse(p->r, "'%s' has no 'image_url'", p->where);
	}
	add(p, FORM_IMAGE)->media = media;
	return ERR_OK;
}

static enum err
read_file(const struct place *p)
{
	struct form_media media = {.title = text_at(p, FILENAME),
	    .file_id = text_at(p, FILE_ID),
	    .url = text_at(p, FILE_URL)};
	struct span data = text_at(p, FILE_DATA);

	if (data.n == 0 && media.file_id.n == 0 && media.url.n == 0)
		return responses_read_refuse(p->r, "'%s' is a file without data", p->where);
	if (data.n > 0 && !chat_media_document(p->r->arena, data, &media))
		return responses_read_refuse(p->r, "'%s.file_data' is not base64", p->where);
	add(p, FORM_DOCUMENT)->media = media;
	return ERR_OK;
}

static enum err
read_audio(const struct place *p)
{
	struct scan_value data = responses_member(&p->v[AUDIO], "data");
	struct scan_value format = responses_member(&p->v[AUDIO], "format");
	struct form_part *part;

	if (data.type != SCAN_STRING)
		return responses_read_refuse(
		    p->r, "'%s.input_audio' must be an object with 'data'", p->where);
	part = add(p, FORM_AUDIO);
	part->media.data = scan_string(p->r->arena, data.raw);
	part->media.media_type = responses_string(p->r->arena, &format);
	return ERR_OK;
}

static const struct kind {
	const char *type;
	enum err (*read)(const struct place *p);
} kinds[] = {
    {"input_text", read_text},
    {"output_text", read_text},
    {"text", read_text},
    {"refusal", read_refusal},
    {"input_image", read_image},
    {"input_file", read_file},
    {"input_audio", read_audio},
};

static enum err
read_part(struct place *p, const struct scan_value *value)
{
	static struct scan_plan *plan;
	struct span type;

	if (value->type != SCAN_OBJECT)
		return responses_read_refuse(p->r, "'%s' must be a content part", p->where);
	if (!responses_scan(&plan, part_paths, PART__MAX, value->raw, p->v))
		return responses_read_refuse(p->r, "'%s' cannot be read", p->where);
	for (size_t i = 0; i < PART__MAX; i++)
		if (p->v[i].type == SCAN_NULL)
			p->v[i].type = SCAN_ABSENT;
	type = text_at(p, TYPE);
	for (size_t i = 0; i < NELEM(kinds); i++)
		if (text_is(type, kinds[i].type))
			return kinds[i].read(p);
	return responses_read_refuse(
	    p->r, "'%s.type' '%.*s' is not known here", p->where, (int)text_cut(type, 60), type.p);
}

enum err
responses_read_parts(struct responses_reader *r, struct form_turn *turn,
    const struct scan_value *value, const char *where)
{
	char place[WHERE_BYTES];
	struct place p = {.r = r, .turn = turn, .where = place, .in = SIZE_MAX};
	struct scan_value part;
	struct span none;
	size_t at = 0;
	enum err err = ERR_OK;

	if (value->type == SCAN_ABSENT || value->type == SCAN_NULL)
		return ERR_OK;
	if (value->type == SCAN_STRING) {
		add_text(&p, FORM_TEXT, scan_string(r->arena, value->raw));
		return ERR_OK;
	}
	if (value->type != SCAN_ARRAY)
		return responses_read_refuse(
		    r, "'%s' must be a string or an array of parts", where);
	for (size_t i = 0; err == ERR_OK && scan_next(value->raw, &at, &none, &part); i++) {
		snprintf(place, sizeof place, "%s[%zu]", where, i);
		p.in = i;
		err = read_part(&p, &part);
	}
	return err;
}
