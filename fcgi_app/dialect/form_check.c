#include "dialect/form.h"

#include <stdlib.h>
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
	int n = (int)text_cut(what, 80);

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

/* Ids of one turn's calls or results, sorted: a turn may hold hundred thousands. */
struct ids {
	struct id {
		struct span text;
		size_t part;
	} * list;
	size_t n;
};

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

/* A turn, with the ids that its calls or results need. */
struct place {
	const struct form *form;
	const struct form_turn *turn;
	struct ids own;   /* of its calls */
	struct ids other; /* of the results after it, or of the calls before it */
};

static enum err
check_call(const struct place *place, const struct form_call *call, size_t part, struct why *why)
{
	const struct form *form = place->form;
	const struct form_turn *turn = place->turn;

	if (call->name.n == 0)
		return refuse(form, turn, why, "calls a tool without a name", (struct span){"", 0});
	if (call->id.n == 0)
		return refuse(form, turn, why, "has no id for its call of", call->name);
	if (find_id(&place->own, call->id)->part != part)
		return refuse(form, turn, why, "has two calls with the id", call->id);
	if (!call->custom && !is_object(call->arguments))
		return refuse(form, turn, why,
		    "has arguments that are no whole JSON object, in its call", call->id);
	if (find_id(&place->other, call->id) == NULL)
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
	if (media->media_type.n == 0)
		return refuse(form, turn, why, "has an image of no known type", media->media_type);
	for (size_t i = 0; i < NELEM(types); i++)
		if (text_is(media->media_type, types[i]))
			return check_base64(form, turn, media->data, why);
	return refuse(form, turn, why,
	    "has an image that is neither PNG, JPEG, GIF nor WebP:", media->media_type);
}

static enum err
check_result(const struct place *place, const struct form_result *result, struct why *why)
{
	struct form_turn turn = *place->turn;
	enum err err = ERR_OK;

	turn.at = result->at > 0 ? result->at : turn.at;
	if (result->id.n == 0)
		return refuse(place->form, &turn, why, "does not say which call it answers",
		    (struct span){"", 0});
	if (find_id(&place->other, result->id) == NULL)
		return refuse(place->form, &turn, why,
		    "is the result of a call that the message before it does not make:",
		    result->id);
	for (size_t i = 0; i < result->nparts && err == ERR_OK; i++)
		if (result->parts[i].kind == FORM_IMAGE)
			err = check_image(place->form, &turn, &result->parts[i].media, why);
	return err;
}

static enum err
check_part(const struct place *place, size_t i, struct why *why)
{
	const struct form_part *part = &place->turn->parts[i];

	switch (part->kind) {
	case FORM_CALL: return check_call(place, &part->call, i, why);
	case FORM_RESULT: return check_result(place, &part->result, why);
	case FORM_IMAGE: return check_image(place->form, place->turn, &part->media, why);
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
	struct place place = {.form = form, .turn = turn};
	enum err err = ERR_OK;

	place.own = ids_of(turn, FORM_CALL);
	if (calls)
		place.other = ids_of(after->role == FORM_TOOL ? after : &none, FORM_RESULT);
	else
		place.other = ids_of(before->role == FORM_ASSISTANT ? before : &none, FORM_CALL);
	for (size_t i = 0; i < turn->nparts && err == ERR_OK; i++)
		err = check_part(&place, i, why);
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

		if (turn->nparts == 0 && turn->role == FORM_USER)
			return refuse(form, turn, why, "has no content", (struct span){"", 0});
		err = check_turn(form, at, why);
		if (err != ERR_OK)
			return err;
	}
	if (form->nturns > 0)
		return ERR_OK;
	err_why(why, "'%s' holds no message", list_of(form));
	return ERR_BAD_INPUT;
}
