#include "dialect/form.h"

#include <stdlib.h>
#include <string.h>

#define IMAGE_MAX_BYTES ((size_t)20 << 20) /* of base64, decoded */

/* Ids of one turn's calls or results, sorted: a turn may hold hundred thousands. */
struct ids {
	struct id {
		struct span text;
		size_t part;
	} * list;
	size_t n;
};

/* A turn, with the ids that its calls or results need. */
struct place {
	const struct form *form;
	const struct form_turn *turn;
	struct ids own;   /* of its calls */
	struct ids other; /* of the results after it, or of the calls before it */
	struct why *why;
};

static enum err
refuse(const struct place *place, const struct form_part *part, enum form_field field,
    const char *text, struct span what)
{
	char where[FORM_PLACE_BYTES];
	int n = (int)text_cut(what, 80);

	form_place(place->form, part, field, where, sizeof where);
	err_why(place->why, "'%s' %s%s%.*s%s", where, text, n > 0 ? " '" : "", n, what.p,
	    n > 0 ? "'" : "");
	return ERR_BAD_INPUT;
}

static bool
is_object(struct span json)
{
	return text_starts(text_trim(json), "{") && scan_pick(json, NULL, NULL, 0, NULL) == ERR_OK;
}

static int
compare_texts(struct span a, struct span b)
{
	int order = a.n == b.n && a.n > 0 ? memcmp(a.p, b.p, a.n) : 0;

	return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

static int
compare_ids(const void *left, const void *right)
{
	const struct id *a = left, *b = right;
	int order = compare_texts(a->text, b->text);

	return order != 0 ? order : (a->part > b->part) - (a->part < b->part);
}

/* Ends with free(ids.list). */
static struct ids
ids_of(const struct form_turn *turn, enum form_kind kind)
{
	struct ids ids = {.list = malloc((turn->nparts + 1) * sizeof *ids.list)};

	if (ids.list == NULL)
		die("no memory for %zu ids", turn->nparts);
	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_part *part = &turn->parts[i];

		if (part->kind == kind)
			ids.list[ids.n++] =
			    (struct id){kind == FORM_CALL ? part->call.id : part->result.id, i};
	}
	qsort(ids.list, ids.n, sizeof *ids.list, compare_ids);
	return ids;
}

/* The last part with that id, or NULL. */
static const struct id *
find_id(const struct ids *ids, struct span text)
{
	size_t low = 0, high = ids->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_texts(ids->list[middle].text, text) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && text_equal(ids->list[low - 1].text, text) ? &ids->list[low - 1] : NULL;
}

static enum err
check_call(const struct place *place, const struct form_part *part, size_t i)
{
	const struct form_call *call = &part->call;

	if (call->name.n == 0)
		return refuse(place, part, FORM_FIELD_CALL_NAME, "is missing", call->name);
	if (call->id.n == 0)
		return refuse(
		    place, part, FORM_FIELD_CALL_ID, "is missing, of the call of", call->name);
	if (find_id(&place->own, call->id)->part != i)
		return refuse(
		    place, part, FORM_FIELD_CALL_ID, "is the id of another call, too:", call->id);
	if (!call->custom && !is_object(call->arguments))
		return refuse(place, part, FORM_FIELD_ARGUMENTS,
		    "is no whole JSON object, in the call", call->id);
	if (find_id(&place->other, call->id) == NULL)
		return refuse(place, part, FORM_FIELD_CALL_ID,
		    "is of a call without a result in the messages right after it:", call->id);
	return ERR_OK;
}

static enum err
check_base64(const struct place *place, const struct form_part *part)
{
	const struct span data = part->media.data, none = {"", 0};

	if (data.n == 0)
		return refuse(place, part, FORM_FIELD_MEDIA, "is an image without data", none);
	if (data.n / 4 * 3 > IMAGE_MAX_BYTES)
		return refuse(
		    place, part, FORM_FIELD_MEDIA, "is an image of more than 20 MB", none);
	for (size_t i = 0; i < data.n; i++) {
		char c = data.p[i], low = text_lower(c);

		if ((low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
		    (c == '=' && i + 2 >= data.n))
			continue;
		return refuse(
		    place, part, FORM_FIELD_MEDIA, "is an image whose data is not base64", none);
	}
	return ERR_OK;
}

/* Providers fetch what a URL names: nothing of their own machines. */
static enum err
check_url(const struct place *place, const struct form_part *part)
{
	struct span url = part->media.url;

	if (url.n == 0 || text_starts_fold(url, "https://") || text_starts_fold(url, "http://") ||
	    text_starts_fold(url, "data:"))
		return ERR_OK;
	return refuse(
	    place, part, FORM_FIELD_MEDIA, "is a URL that is neither http(s) nor data:", url);
}

static enum err
check_image(const struct place *place, const struct form_part *part)
{
	static const char *const types[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};
	const struct form_media *media = &part->media;

	if (media->url.n > 0 || media->file_id.n > 0)
		return check_url(place, part);
	if (media->media_type.n == 0)
		return refuse(place, part, FORM_FIELD_MEDIA, "is an image of no known type",
		    media->media_type);
	for (size_t i = 0; i < NELEM(types); i++)
		if (text_is(media->media_type, types[i]))
			return check_base64(place, part);
	return refuse(place, part, FORM_FIELD_MEDIA,
	    "is an image that is neither PNG, JPEG, GIF nor WebP:", media->media_type);
}

static enum err
check_result(const struct place *place, const struct form_part *part)
{
	const struct form_result *result = &part->result;
	enum err err = ERR_OK;

	if (result->id.n == 0)
		return refuse(place, part, FORM_FIELD_RESULT_ID, "is missing", result->id);
	if (find_id(&place->other, result->id) == NULL)
		return refuse(place, part, FORM_FIELD_RESULT_ID,
		    "names a call that the message before it does not make:", result->id);
	for (size_t i = 0; i < result->nparts && err == ERR_OK; i++)
		if (result->parts[i].kind == FORM_IMAGE)
			err = check_image(place, &result->parts[i]);
		else
			err = check_url(place, &result->parts[i]);
	return err;
}

static enum err
check_part(const struct place *place, size_t i)
{
	const struct form_part *part = &place->turn->parts[i];

	switch (part->kind) {
	case FORM_CALL: return check_call(place, part, i);
	case FORM_RESULT: return check_result(place, part);
	case FORM_IMAGE: return check_image(place, part);
	case FORM_DOCUMENT: return check_url(place, part);
	case FORM_TEXT:
	case FORM_REFUSAL:
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
	struct ids ids = ids_of(turn, FORM_RESULT);
	size_t kept = 0;

	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_part *part = &turn->parts[i];

		if (part->kind == FORM_RESULT && part->result.id.n > 0 &&
		    find_id(&ids, part->result.id)->part != i)
			continue;
		if (kept != i)
			turn->parts[kept] = *part;
		kept++;
	}
	turn->nparts = kept;
	free(ids.list);
}

static enum err
check_turn(const struct form *form, size_t at, struct why *why)
{
	const struct form_turn none = {.nparts = 0}, *turn = &form->turns[at];
	const struct form_turn *after = at + 1 < form->nturns ? turn + 1 : &none;
	const struct form_turn *before = at > 0 ? turn - 1 : &none;
	bool calls = turn->role == FORM_ASSISTANT;
	struct place place = {.form = form, .turn = turn, .why = why};
	enum err err = ERR_OK;

	place.own = ids_of(turn, FORM_CALL);
	if (calls)
		place.other = ids_of(after->role == FORM_TOOL ? after : &none, FORM_RESULT);
	else
		place.other = ids_of(before->role == FORM_ASSISTANT ? before : &none, FORM_CALL);
	for (size_t i = 0; i < turn->nparts && err == ERR_OK; i++)
		err = check_part(&place, i);
	free(place.own.list);
	free(place.other.list);
	return err;
}

enum err
form_check(struct form *form, struct why *why)
{
	for (size_t at = 0; at < form->nturns; at++)
		if (form->turns[at].role == FORM_TOOL)
			drop_repeated(&form->turns[at]);
	for (size_t at = 0; at < form->nturns; at++) {
		const struct form_turn *turn = &form->turns[at];
		enum err err;

		if (turn->nparts == 0 && turn->role == FORM_USER) {
			const struct form_part none = {
			    .at = turn->at, .in = SIZE_MAX, .of = SIZE_MAX};
			const struct place place = {.form = form, .turn = turn, .why = why};

			return refuse(&place, &none, FORM_FIELD_CONTENT, "is empty", none.text);
		}
		err = check_turn(form, at, why);
		if (err != ERR_OK)
			return err;
	}
	if (form->nturns > 0)
		return ERR_OK;
	err_why(why, "'%s' holds no message", form_place_list(form));
	return ERR_BAD_INPUT;
}
