#include "dialect/messages_source.h"

enum { TYPE, MEDIA_TYPE, DATA, URL, FILE_ID, CONTENT, SOURCE__MAX };

static const char *const names[SOURCE__MAX] = {
    [TYPE] = "type",
    [MEDIA_TYPE] = "media_type",
    [DATA] = "data",
    [URL] = "url",
    [FILE_ID] = "file_id",
    [CONTENT] = "content",
};

enum err
messages_source_text(struct messages_reader *r, const struct messages_place *place,
    const struct scan_value *v, struct span *out)
{
	static const char *const members[] = {"type", "text"};
	struct buf *joined;
	struct scan_value block, m[2];
	struct span none, text;
	size_t at = 0;

	if (v->type != SCAN_ARRAY)
		return messages_place_text(r, place, "content", v, false, out);
	joined = arena_buf(r->arena, SIZE_MAX / 4);
	for (size_t i = 0; scan_next(v->raw, &at, &none, &block); i++) {
		struct messages_place here = {place, "content", i};

		messages_place_pick(r, block.raw, members, m, 2, NULL);
		if (block.type != SCAN_OBJECT || m[0].type != SCAN_STRING ||
		    !scan_is(m[0].raw, "text"))
			return messages_place_refuse(r, &here, NULL, "must be a text block");
		if (messages_place_text(r, &here, "text", &m[1], false, &text) != ERR_OK)
			return ERR_BAD_INPUT;
		if (i > 0)
			buf_char(joined, '\n');
		buf_span(joined, text);
	}
	*out = buf_text(joined);
	return ERR_OK;
}

static enum err
read_data(struct messages_reader *r, const struct messages_place *place,
    const struct scan_value v[SOURCE__MAX], struct form_media *out)
{
	struct span type;
	enum err err = messages_place_text(r, place, "media_type", &v[MEDIA_TYPE], true, &type);

	if (err != ERR_OK)
		return err;
	out->media_type = form_media_type(r->arena, type);
	return messages_place_text(r, place, "data", &v[DATA], true, &out->data);
}

enum err
messages_source_read(struct messages_reader *r, const struct messages_place *up,
    const struct scan_value *value, enum messages_source_kind kind, struct form_media *out)
{
	struct messages_place place = {up, "source", SIZE_MAX};
	struct scan_value v[SOURCE__MAX];
	struct span type;

	if (value->type != SCAN_OBJECT)
		return messages_place_refuse(r, up, "source", "must be an object");
	messages_place_pick(r, value->raw, names, v, SOURCE__MAX, "messages.source");
	if (messages_place_text(r, &place, "type", &v[TYPE], true, &type) != ERR_OK)
		return ERR_BAD_INPUT;
	if (text_is(type, "base64"))
		return read_data(r, &place, v, out);
	if (text_is(type, "url"))
		return messages_place_text(r, &place, "url", &v[URL], true, &out->url);
	if (text_is(type, "file"))
		return messages_place_text(r, &place, "file_id", &v[FILE_ID], true, &out->file_id);
	if (kind == MESSAGES_DOCUMENT && text_is(type, "text")) {
		out->media_type = SPAN("text/plain");
		return messages_place_text(r, &place, "data", &v[DATA], true, &out->plain);
	}
	if (kind == MESSAGES_DOCUMENT && text_is(type, "content")) {
		out->media_type = SPAN("text/plain");
		return messages_source_text(r, &place, &v[CONTENT], &out->plain);
	}
	return messages_place_refuse(r, &place, "type", "is no kind of source that is known");
}
