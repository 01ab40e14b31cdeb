#include "weigh.h"

#include "dialect/trim.h"

static bool
counts_alike(const struct tokens_model *a, const struct tokens_model *b)
{
	return a->by.table == b->by.table && a->by.percent == b->by.percent &&
	       a->by.claude == b->by.claude && a->exact == b->exact;
}

int64_t
weigh_prompt(struct weigh *w, struct span model)
{
	struct weigh_kind kind = {.by = tokens_model(w->tokens, model)};

	if (w->form == NULL)
		return -1;
	for (unsigned i = 0; i < w->nkinds; i++)
		if (counts_alike(&w->kinds[i].by, &kind.by))
			return w->kinds[i].prompt;
	kind.prompt = w->least ? trim_least(w->form, &kind.by) : tokens_form(&kind.by, w->form);
	if (w->nkinds < WEIGH_KINDS_MAX)
		w->kinds[w->nkinds++] = kind;
	return kind.prompt;
}
