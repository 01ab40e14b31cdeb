#include "dialect/openai.h"
#include "dialect/read.h"

/* Images and sound: what is asked passes, and so does what comes, be it JSON, text, bytes or a stream. */

static enum err
check(const struct dialect_request *request, struct why *why)
{
	return dialect_check_model(request, why);
}

/* Of a stream: "image_generation.partial_image", "transcript.text.done" ... */
static enum dialect_part
part_of(struct span type)
{
	static const char *const ends[] = {".completed", ".done", ".completed\"", ".done\""};

	for (size_t i = 0; i < NELEM(ends); i++)
		if (text_ends(type, ends[i]))
			return PART_FINISH;
	return PART_CONTENT;
}

static bool
is_error(const struct scan_value *error)
{
	return error->type == SCAN_OBJECT || error->type == SCAN_STRING;
}

static enum dialect_part
event(const struct sse_event *event, struct dialect_tap *tap)
{
	static const char *const paths[] = {"type", "error", "usage"};
	struct scan_value v[NELEM(paths)];
	enum dialect_part part;

	if (tap->ended || !event->has_data || event->data.n == 0)
		return PART_NOTHING;
	if (text_is(text_trim(event->data), "[DONE]"))
		return PART_END;
	if (scan_pick(event->data, paths, v, NELEM(paths), NULL) != ERR_OK) {
		tap->invalid++;
		tap->content = true;
		return PART_CONTENT;
	}
	if (is_error(&v[1]) || (v[0].type == SCAN_STRING && scan_is(v[0].raw, "error")))
		return PART_ERROR;
	openai_usage(&v[2], &tap->usage);
	part = v[0].type == SCAN_STRING ? part_of(v[0].raw) : PART_CONTENT;
	tap->content = true;
	tap->finished |= part == PART_FINISH;
	return part;
}

static bool
answer(struct span body, struct dialect_tap *tap)
{
	static const char *const paths[] = {"error", "usage"};
	struct scan_value v[NELEM(paths)];

	if (!text_starts(text_trim(body), "{") ||
	    scan_pick(body, paths, v, NELEM(paths), NULL) != ERR_OK || is_error(&v[0]))
		return false;
	openai_usage(&v[1], &tap->usage);
	return true;
}

#define MEDIA(variable, called, at, by_forms)       \
	const struct dialect dialect_##variable = { \
	    .name = called,                         \
	    .path = at,                             \
	    .judged = false,                        \
	    .streams = true,                        \
	    .usage_option = false,                  \
	    .media = true,                          \
	    .forms = by_forms,                      \
	    .check = check,                         \
	    .event = event,                         \
	    .answer = answer,                       \
	    .end_marker = "",                       \
	    .error_body = openai_error_body,        \
	    .error_event = openai_error_event,      \
	}

MEDIA(images, "images", "/images/generations", false);
MEDIA(image_edits, "image_edits", "/images/edits", true);
MEDIA(image_variations, "image_variations", "/images/variations", true);
MEDIA(speech, "speech", "/audio/speech", false);
MEDIA(transcriptions, "transcriptions", "/audio/transcriptions", true);
MEDIA(translations, "translations", "/audio/translations", true);
