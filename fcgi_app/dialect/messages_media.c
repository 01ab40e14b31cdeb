#include "dialect/messages_writer.h"

#define IMAGE_MAX_BYTES ((size_t)5 << 20) /* decoded: formats.md C.4 */

static const char *const image_types[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};

static struct span
normal_type(struct arena *arena, struct span type, const char *missing)
{
	type = form_media_type(arena, type);
	return type.n == 0 ? text_span(missing) : type;
}

/* "data:TYPE;base64,DATA" becomes type and data. */
static bool
split_data_url(struct form_media *media)
{
	struct span url = media->url, head;
	size_t comma = text_find(url, SPAN(","));

	head = text_from((struct span){url.p, comma}, sizeof "data:" - 1);
	if (comma == url.n || head.n < 7 || !text_is_fold(text_from(head, head.n - 7), ";base64"))
		return false;
	media->media_type = (struct span){head.p, head.n - 7};
	media->data = text_from(url, comma + 1);
	media->url = (struct span){"", 0};
	return true;
}

static void
emit_source(struct messages_writer *w, const char *type, const char *key, struct span value)
{
	emit_object(&w->e, "source");
	emit_z(&w->e, "type", type);
	emit_text(&w->e, key, value);
	emit_end(&w->e);
}

static void
emit_data(struct messages_writer *w, const char *type, struct span media_type, struct span data)
{
	emit_object(&w->e, "source");
	emit_z(&w->e, "type", type);
	emit_text(&w->e, "media_type", media_type);
	emit_text(&w->e, "data", data);
	emit_end(&w->e);
}

/* What a file of the client's own provider holds is not known here. */
static enum err
prepare(struct messages_writer *w, const struct form_part *part, struct form_media *media)
{
	if (media->file_id.n > 0 && w->form->from != FORM_MESSAGES)
		return messages_writer_refuse(w, part,
		    "refers to a file by its id, which the provider of this model does not know");
	if (text_starts_fold(media->url, "data:") && !split_data_url(media))
		return messages_writer_refuse(w, part, "is a data URL that is not base64");
	if (media->url.n > 0 && !text_starts_fold(media->url, "https://") &&
	    !text_starts_fold(media->url, "http://"))
		return messages_writer_refuse(w, part, "is a URL that is neither http nor data");
	return ERR_OK;
}

static enum err
write_image(struct messages_writer *w, const struct form_part *part, struct form_media *media)
{
	size_t i = 0;

	media->media_type = normal_type(w->arena, media->media_type, "image/png");
	if (media->detail.n > 0 && !text_is(media->detail, "auto"))
		messages_writer_drop_one(
		    w, "messages.image_url.detail", "input.detail", "messages.detail");
	if (media->url.n == 0 && media->file_id.n == 0) {
		while (i < NELEM(image_types) && !text_is(media->media_type, image_types[i]))
			i++;
		if (i == NELEM(image_types))
			return messages_writer_refuse(
			    w, part, "is an image that is neither PNG, JPEG, GIF nor WebP");
		if (media->data.n == 0)
			return messages_writer_refuse(w, part, "is an image without data");
		if (media->data.n / 4 * 3 > IMAGE_MAX_BYTES)
			return messages_writer_refuse(w, part,
			    "is an image of more than 5 MB, which the provider of this model "
			    "does not take");
	}
	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", "image");
	if (media->file_id.n > 0)
		emit_source(w, "file", "file_id", media->file_id);
	else if (media->url.n > 0)
		emit_source(w, "url", "url", media->url);
	else
		emit_data(w, "base64", media->media_type, media->data);
	return ERR_OK;
}

static enum err
write_document(struct messages_writer *w, const struct form_part *part, struct form_media *media)
{
	media->media_type = normal_type(w->arena, media->media_type, "application/pdf");
	if (media->url.n == 0 && media->file_id.n == 0 && media->plain.n == 0 &&
	    (media->data.n == 0 || !text_is(media->media_type, "application/pdf")))
		return messages_writer_refuse(
		    w, part, "is a document that is neither PDF nor text");
	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", "document");
	if (media->file_id.n > 0)
		emit_source(w, "file", "file_id", media->file_id);
	else if (media->url.n > 0)
		emit_source(w, "url", "url", media->url);
	else if (media->plain.n > 0)
		emit_data(w, "text", SPAN("text/plain"), media->plain);
	else
		emit_data(w, "base64", media->media_type, media->data);
	if (media->title.n > 0)
		emit_text(&w->e, "title", media->title);
	return ERR_OK;
}

enum err
messages_media_write(struct messages_writer *w, const struct form_part *part)
{
	struct form_media media = part->media;
	enum err err = prepare(w, part, &media);

	if (err == ERR_OK && part->kind == FORM_AUDIO)
		err = messages_writer_refuse(
		    w, part, "is sound, which the provider of this model does not take");
	if (err == ERR_OK)
		err = part->kind == FORM_IMAGE ? write_image(w, part, &media)
		                               : write_document(w, part, &media);
	if (err != ERR_OK)
		return err;
	messages_writer_cache(w, part->cache_control);
	emit_end(&w->e);
	return ERR_OK;
}
