#include "dialect/form.h"

#include <string.h>

#define IMAGE_MAX_BYTES ((size_t)20 << 20) /* of base64, decoded */

/* How a wire's clients call their list and the field. */
static const char *
list_of(const struct form *form)
{
	return form->from == FORM_RESPONSES ? "input" : "messages";
}

static enum err
refuse(const struct form *form, const struct form_turn *turn, struct why *why, const char *text,
    struct span what)
{
	int n = what.n < 80 ? (int)what.n : 80;

	if (turn->at == SIZE_MAX)
		err_why(why, "the system text %s%s%.*s%s", text, n > 0 ? " '" : "", n, what.p,
		    n > 0 ? "'" : "");
	else
		err_why(why, "'%s[%zu]' %s%s%.*s%s", list_of(form), turn->at, text,
		    n > 0 ? " '" : "", n, what.p, n > 0 ? "'" : "");
	return ERR_BAD_INPUT;
}

static bool
is_object(struct span json)
{
	return text_starts(text_trim(json), "{") && scan_pick(json, NULL, NULL, 0, NULL) == ERR_OK;
}

static bool
has_call(const struct form_turn *turn, struct span id)
{
	for (size_t i = 0; i < turn->nparts; i++)
		if (turn->parts[i].kind == FORM_CALL && text_equal(turn->parts[i].call.id, id))
			return true;
	return false;
}

static bool
has_result(const struct form_turn *turn, struct span id)
{
	for (size_t i = 0; i < turn->nparts; i++)
		if (turn->parts[i].kind == FORM_RESULT && text_equal(turn->parts[i].result.id, id))
			return true;
	return false;
}

static enum err
check_call(const struct form *form, size_t at, size_t part, struct why *why)
{
	const struct form_turn *turn = &form->turns[at], *next = turn + 1;
	const struct form_call *call = &turn->parts[part].call;
	struct form_turn before = {.parts = turn->parts, .nparts = part};

	if (call->name.n == 0)
		return refuse(form, turn, why, "calls a tool without a name", (struct span){"", 0});
	if (call->id.n == 0)
		return refuse(form, turn, why, "has no id for its call of", call->name);
	if (has_call(&before, call->id))
		return refuse(form, turn, why, "has two calls with the id", call->id);
	if (!call->custom && !is_object(call->arguments))
		return refuse(form, turn, why,
		    "has arguments that are no whole JSON object, in its call", call->id);
	if (at + 1 == form->nturns || next->role != FORM_TOOL || !has_result(next, call->id))
		return refuse(form, turn, why,
		    "makes a call without a result in the messages right after it:", call->id);
	return ERR_OK;
}

static enum err
check_base64(
    const struct form *form, const struct form_turn *turn, struct span data, struct why *why)
{
	if (data.n == 0)
		return refuse(form, turn, why, "has an image without data", data);
	if (data.n / 4 * 3 > IMAGE_MAX_BYTES)
		return refuse(
		    form, turn, why, "has an image of more than 20 MB", (struct span){"", 0});
	for (size_t i = 0; i < data.n; i++) {
		char c = data.p[i], low = text_lower(c);

		if ((low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
		    (c == '=' && i + 2 >= data.n))
			continue;
		return refuse(
		    form, turn, why, "has an image whose data is not base64", (struct span){"", 0});
	}
	return ERR_OK;
}

static enum err
check_image(const struct form *form, const struct form_turn *turn, const struct form_media *media,
    struct why *why)
{
	static const char *const types[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};

	if (media->url.n > 0 || media->file_id.n > 0)
		return ERR_OK;
	for (size_t i = 0; i < NELEM(types); i++)
		if (text_is(media->media_type, types[i]))
			return check_base64(form, turn, media->data, why);
	return refuse(form, turn, why,
	    "has an image that is neither PNG, JPEG, GIF nor WebP:", media->media_type);
}

static enum err
check_result(const struct form *form, size_t at, size_t part, struct why *why)
{
	const struct form_turn *turn = &form->turns[at];
	const struct form_result *result = &turn->parts[part].result;

	if (result->id.n == 0)
		return refuse(
		    form, turn, why, "does not say which call it answers", (struct span){"", 0});
	if (at == 0 || turn[-1].role != FORM_ASSISTANT || !has_call(turn - 1, result->id))
		return refuse(form, turn, why,
		    "is the result of a call that the message before it does not make:",
		    result->id);
	for (size_t i = 0; i < result->nparts; i++) {
		enum err err = result->parts[i].kind == FORM_IMAGE
		                   ? check_image(form, turn, &result->parts[i].media, why)
		                   : ERR_OK;

		if (err != ERR_OK)
			return err;
	}
	return ERR_OK;
}

static enum err
check_part(const struct form *form, size_t at, size_t part, struct why *why)
{
	const struct form_turn *turn = &form->turns[at];

	switch (turn->parts[part].kind) {
	case FORM_CALL: return check_call(form, at, part, why);
	case FORM_RESULT: return check_result(form, at, part, why);
	case FORM_IMAGE: return check_image(form, turn, &turn->parts[part].media, why);
	case FORM_TEXT:
	case FORM_REFUSAL:
	case FORM_DOCUMENT:
	case FORM_AUDIO:
	case FORM_THOUGHT:
	case FORM_OPAQUE: break;
	}
	return ERR_OK;
}

/* Of several results of one call the last counts: an agent that repeats itself is no reason to fail. */
static void
drop_repeated(struct form_turn *turn)
{
	size_t kept = 0;

	for (size_t i = 0; i < turn->nparts; i++) {
		struct form_turn rest = {
		    .parts = turn->parts + i + 1, .nparts = turn->nparts - i - 1};

		if (turn->parts[i].kind == FORM_RESULT &&
		    has_result(&rest, turn->parts[i].result.id))
			continue;
		if (kept != i)
			turn->parts[kept] = turn->parts[i];
		kept++;
	}
	turn->nparts = kept;
}

enum err
form_check(struct form *form, struct why *why)
{
	for (size_t at = 0; at < form->nturns; at++) {
		struct form_turn *turn = &form->turns[at];

		if (turn->role == FORM_TOOL)
			drop_repeated(turn);
		if (turn->nparts == 0 && turn->role == FORM_USER)
			return refuse(form, turn, why, "has no content", (struct span){"", 0});
		for (size_t i = 0; i < turn->nparts; i++) {
			enum err err = check_part(form, at, i, why);

			if (err != ERR_OK)
				return err;
		}
	}
	if (form->nturns > 0)
		return ERR_OK;
	err_why(why, "'%s' holds no message", list_of(form));
	return ERR_BAD_INPUT;
}
