#include "weigh.h"

#include "dialect/trim.h"

static bool
counts_alike(const struct tokens_model *a, const struct tokens_model *b)
{
	return a->by.table == b->by.table && a->by.percent == b->by.percent &&
	       a->by.claude == b->by.claude && a->exact == b->exact;
}

static const struct weigh_kind *
find(const struct weigh *w, const struct tokens_model *by)
{
	for (unsigned i = 0; i < w->nkinds; i++)
		if (counts_alike(&w->kinds[i].by, by))
			return &w->kinds[i];
	return NULL;
}

int64_t
weigh_prompt(struct weigh *w, struct span model)
{
	struct weigh_kind kind = {.by = tokens_model(w->tokens, model)};
	const struct weigh_kind *known = find(w, &kind.by);

	if (w->form == NULL)
		return -1;
	if (known != NULL)
		return known->prompt;
	kind.prompt = w->least ? trim_least(w->form, &kind.by) : tokens_form(&kind.by, w->form);
	if (w->nkinds < WEIGH_KINDS_MAX)
		w->kinds[w->nkinds++] = kind;
	return kind.prompt;
}

int64_t
weigh_counted(const struct weigh *w, struct span model)
{
	const struct weigh_kind *known;
	struct tokens_model by;

	if (w->least || w->nkinds == 0)
		return 0;
	by = tokens_model(w->tokens, model);
	known = find(w, &by);
	return known == NULL ? 0 : known->prompt;
}
