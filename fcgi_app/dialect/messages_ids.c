#include "dialect/messages_ids.h"

#include <stdlib.h>
#include <string.h>

static int
compare_texts(struct span a, struct span b)
{
	int order = a.n == b.n && a.n > 0 ? memcmp(a.p, b.p, a.n) : 0;

	return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

static int
compare_turns(const struct messages_id *a, const struct messages_id *b)
{
	return (a->turn > b->turn) - (a->turn < b->turn);
}

static int
by_id(const void *left, const void *right)
{
	const struct messages_id *a = left, *b = right;
	int order = compare_texts(a->id, b->id);

	return order != 0 ? order : compare_turns(a, b);
}

static int
by_turn(const void *left, const void *right)
{
	const struct messages_id *a = left, *b = right;
	int order = compare_turns(a, b);

	return order != 0 ? order : compare_texts(a->id, b->id);
}

static size_t
count_calls(const struct form *form)
{
	size_t n = 0;

	for (size_t i = 0; i < form->nturns; i++)
		for (size_t k = 0; k < form->turns[i].nparts; k++)
			n += form->turns[i].parts[k].kind == FORM_CALL;
	return n;
}

/* All calls, sorted by id and then turn. */
static struct messages_ids
collect(struct arena *arena, const struct form *form)
{
	size_t n = count_calls(form);
	struct messages_ids all = {.list = arena_alloc(arena, (n + 1) * sizeof *all.list)};

	for (size_t i = 0; i < form->nturns; i++)
		for (size_t k = 0; k < form->turns[i].nparts; k++) {
			const struct form_part *part = &form->turns[i].parts[k];

			if (part->kind == FORM_CALL)
				all.list[all.n++] = (struct messages_id){
				    .turn = i, .id = form_id(arena, FORM_MESSAGES, part->call.id)};
		}
	if (all.n > 1)
		qsort(all.list, all.n, sizeof *all.list, by_id);
	return all;
}

/* Of what no id has, so that it is none that a host gave. */
static struct span
another(struct arena *arena, struct span id, size_t nth)
{
	struct span parts[] = {id, SPAN("\n"), text_span(arena_print(arena, "%zu", nth))};

	return form_id(arena, FORM_MESSAGES, text_span(arena_join(arena, parts, NELEM(parts))));
}

struct messages_ids
messages_ids_find(struct arena *arena, const struct form *form)
{
	struct messages_ids ids = collect(arena, form);
	size_t kept = 0, nth = 0;

	for (size_t i = 1; i < ids.n; i++) {
		struct messages_id id = ids.list[i];

		nth = compare_texts(id.id, ids.list[i - 1].id) == 0 ? nth + 1 : 0;
		if (nth == 0)
			continue;
		id.sent = another(arena, id.id, nth);
		ids.list[kept++] = id;
	}
	ids.n = kept;
	if (ids.n > 1)
		qsort(ids.list, ids.n, sizeof *ids.list, by_turn);
	return ids;
}

struct span
messages_ids_of(struct arena *arena, const struct messages_ids *ids, size_t turn, struct span id)
{
	const struct messages_id key = {.turn = turn, .id = form_id(arena, FORM_MESSAGES, id)};
	const struct messages_id *found = NULL;

	if (ids->n > 0)
		found = bsearch(&key, ids->list, ids->n, sizeof key, by_turn);
	return found != NULL ? found->sent : key.id;
}
