#include "dialect/messages_place.h"

#define EXTRAS_LOOKED_AT 32

static void
print_place(struct buf *out, const struct messages_place *place)
{
	const struct messages_place *chain[8];
	size_t n = 0;

	for (; place != NULL && n < NELEM(chain); place = place->up)
		chain[n++] = place;
	for (; n > 0; n--) {
		if (out->n > 0)
			buf_char(out, '.');
		buf_z(out, chain[n - 1]->name);
		if (chain[n - 1]->index != SIZE_MAX)
			buf_print(out, "[%zu]", chain[n - 1]->index);
	}
}

enum err
messages_place_refuse(struct messages_reader *r, const struct messages_place *place,
    const char *member, const char *text)
{
	struct buf where;

	buf_init(&where, 256);
	print_place(&where, place);
	if (member != NULL)
		buf_print(&where, "%s%s", where.n > 0 ? "." : "", member);
	err_why(r->why, "'%.*s' %s", (int)where.n, where.n > 0 ? where.p : "", text);
	buf_release(&where);
	return ERR_BAD_INPUT;
}

void
messages_place_extra(
    struct messages_reader *r, const char *prefix, struct span name, struct span raw)
{
	const struct form *form = r->form;

	if (*prefix != '\0')
		name = text_span(arena_join(
		    r->arena, (const struct span[]){text_span(prefix), SPAN("."), name}, 3));
	for (size_t i = 0; i < form->nextras && i < EXTRAS_LOOKED_AT; i++)
		if (text_equal(form->extras[form->nextras - 1 - i].name, name))
			return;
	form_add_extra(r->arena, r->form, name, raw);
}

void
messages_place_pick(struct messages_reader *r, struct span object, const char *const *names,
    struct scan_value *values_out, size_t n, const char *prefix)
{
	struct scan_value v;
	struct span key;
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		values_out[i] = (struct scan_value){.type = SCAN_ABSENT};
	while (scan_next(object, &at, &key, &v)) {
		size_t i = 0;

		if (v.type == SCAN_NULL)
			continue;
		while (i < n && !scan_is(key, names[i]))
			i++;
		if (i < n)
			values_out[i] = v;
		else if (prefix != NULL)
			messages_place_extra(r, prefix, scan_string(r->arena, key), v.raw);
	}
}

enum err
messages_place_text(struct messages_reader *r, const struct messages_place *place,
    const char *member, const struct scan_value *v, bool wanted, struct span *out)
{
	*out = (struct span){"", 0};
	if (v->type == SCAN_STRING)
		*out = scan_string(r->arena, v->raw);
	else if (v->type != SCAN_ABSENT)
		return messages_place_refuse(r, place, member, "must be a string");
	if (wanted && out->n == 0)
		return messages_place_refuse(
		    r, place, member, v->type == SCAN_ABSENT ? "is missing" : "must not be empty");
	return ERR_OK;
}
