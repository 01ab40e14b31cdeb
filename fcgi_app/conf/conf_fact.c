#include "conf/conf_fact.h"

#include "conf/known.h"
#include "conf/setting.h"

#include <inttypes.h>

/* A price with a hole would be free where it is not written. */
void
conf_fact_finish_cost(struct load *load, const struct tree *node, struct conf_cost *cost)
{
	static const char *const needed[] = {"input", "output"};
	const struct tree *t = tree_member(node, SPAN("cost"));

	if (t == NULL || t->type != TREE_OBJECT)
		return;
	for (size_t i = 0; i < NELEM(needed); i++)
		if (tree_member(t, text_span(needed[i])) == NULL)
			load_fault(load, t, needed[i],
			    "is missing: 0 is free; where a price is unknown leave cost out");
	cost->given = true;
	if (tree_member(t, SPAN("cached")) == NULL)
		cost->cached_micros = cost->input_micros;
	else if (cost->cached_micros > cost->input_micros)
		load_note(load, tree_member(t, SPAN("cached")), NULL, "is above input");
}

void
conf_fact_check_sizes(
    struct load *load, const struct tree *node, int64_t context_window, int64_t *max_output)
{
	const struct tree *window = tree_member(node, SPAN("context_window"));
	const struct tree *output = tree_member(node, SPAN("max_output"));

	if (window != NULL && context_window > 0 && context_window < CONF_WINDOW_MIN)
		load_fault(load, window, NULL,
		    "%" PRId64 " tokens do not hold a single message: at least %d, or 0 = unknown",
		    context_window, CONF_WINDOW_MIN);
	if (context_window == 0 || *max_output <= context_window)
		return;
	if (output != NULL)
		load_fault(load, output, NULL,
		    "an answer of %" PRId64
		    " tokens does not fit into the context_window of %" PRId64,
		    *max_output, context_window);
	/* one that comes from elsewhere was meant for a larger window */
	*max_output = context_window;
}

static void
read_fact(struct load *load, const struct tree *node, struct conf_fact *fact)
{
	struct setting_into into = {.group = OPTIONS_FACT, .base = fact};

	fact->name = arena_copy(load->arena, node->key);
	if (fact->name.n == 0)
		load_fault(load, node, NULL, "a model's name must not be empty");
	if (node->type != TREE_OBJECT) {
		setting_mistyped(load, node, "an object");
		return;
	}
	setting_defaults(load, &into);
	setting_read(load, node, &into, "");
	conf_fact_finish_cost(load, node, &fact->cost);
	conf_fact_check_sizes(load, node, fact->context_window, &fact->max_output);
}

static void
read_facts(struct load *load, const struct tree *root)
{
	struct conf *conf = load->conf;

	conf->facts = arena_alloc(load->arena, (root->n + 1) * sizeof *conf->facts);
	for (const struct tree *t = root->first; t != NULL; t = t->next)
		if (!t->repeated)
			read_fact(load, t, &conf->facts[conf->nfacts++]);
	known_sort(conf->facts, conf->nfacts);
}

void
conf_fact_read_all(struct load *load)
{
	const char *file = load->file;
	bool holds_keys = load->holds_keys;
	struct source *source;
	const struct tree *root;

	if (load->conf->models_file.n == 0)
		return;
	root = load_file(load, load->conf->models_file.p, &source);
	if (root != NULL)
		read_facts(load, root);
	load->file = file;
	load->holds_keys = holds_keys;
}
