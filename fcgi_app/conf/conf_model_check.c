#include "conf/conf_model_check.h"

#include <inttypes.h>

/* The node of the i-th target. */
static const struct tree *
target_node(const struct tree *node, size_t i)
{
	const struct tree *t = tree_member(node, SPAN("targets"))->first;

	while (i-- > 0)
		t = t->next;
	return t;
}

/* Failures, rests and figures are kept by channel and model: a twin could not be told from the other. */
static void
check_twins(struct load *load, const struct tree *node, const struct conf_model *model)
{
	for (size_t i = 1; i < model->ntargets; i++)
		for (size_t j = 0; j < i; j++) {
			const struct conf_target *a = &model->targets[i], *b = &model->targets[j];

			if (a->channel != b->channel || !text_equal(a->model, b->model))
				continue;
			load_fault(load, target_node(node, i), NULL,
			    "is targets[%zu] again: name it once, with the weight of both", j);
			break;
		}
}

static void
check_weights(struct load *load, const struct tree *node, const struct conf_model *model)
{
	if (conf_strategy(load->conf, model) != CONF_ROUTE_WEIGHTED_RANDOM || model->ntargets == 0)
		return;
	for (size_t i = 0; i < model->ntargets; i++)
		if (model->targets[i].weight > 0)
			return;
	load_fault(load, node, "targets", "all have the weight 0: none would ever be drawn");
}

static bool
is_by_task(int strategy)
{
	return strategy == CONF_ROUTE_TASK || strategy == CONF_ROUTE_MIXED;
}

static void
check_strategy(struct load *load, const struct tree *node, const struct conf_model *model)
{
	if (is_by_task(model->strategy) && !conf_has_tasks(model))
		load_note(load, tree_member(node, SPAN("strategy")), NULL,
		    "no target lists a task, so that there is nothing to choose by");
}

/* Has the channel an account that may serve this? *realm_out: is one left with the entry's realm? */
static bool
has_account(const struct conf_channel *ch, struct span model, struct span realm, bool *realm_out)
{
	bool found = false;

	*realm_out = false;
	for (size_t i = 0; i < ch->naccounts; i++) {
		const struct conf_account *account = &ch->accounts[i];

		if (!conf_serves(&account->models, model))
			continue;
		found = true;
		*realm_out |= realm.n == 0 || text_equal(account->realm, realm);
	}
	return found;
}

/* Accounts of accounts_dir come and go: of those nothing is said. */
static void
check_target(struct load *load, const struct tree *node, const struct conf_model *model,
    const struct conf_target *target)
{
	const struct conf_channel *ch = &load->conf->channels[target->channel];
	bool in_realm;

	if (!conf_serves(&ch->models, target->model))
		load_note(load, node, NULL,
		    "channel '%s' does not list '%.*s': it goes there through this entry alone",
		    ch->name.p, (int)target->model.n, target->model.p);
	if (ch->naccounts == 0 || ch->accounts_dir.n > 0)
		return;
	if (!has_account(ch, target->model, model->realm, &in_realm))
		load_note(load, node, NULL, "no account of channel '%s' serves '%.*s'", ch->name.p,
		    (int)target->model.n, target->model.p);
	else if (!in_realm)
		load_note(load, node, NULL,
		    "no account of channel '%s' that serves it has the realm '%s'", ch->name.p,
		    model->realm.p);
}

void
conf_model_check(struct load *load, const struct tree *node, const struct conf_model *model)
{
	const struct tree *list = tree_member(node, SPAN("targets"));
	size_t i = 0;

	check_twins(load, node, model);
	check_weights(load, node, model);
	check_strategy(load, node, model);
	for (const struct tree *t = list->first; t != NULL; t = t->next)
		check_target(load, t, model, &model->targets[i++]);
}

static void
offer_literals(struct nearest *nearest, const struct conf_strings *patterns)
{
	for (size_t i = 0; i < patterns->n; i++)
		if (conf_is_name(patterns->at[i]))
			nearest_offer(nearest, patterns->at[i]);
}

/* Can anybody be asked for this model? Else a fault with the nearest name. */
static void
check_served(struct load *load, const struct tree *node, struct span model)
{
	const struct conf *conf = load->conf;
	struct nearest nearest;

	if (model.n == 0 || conf->nchannels == 0 || conf_model(conf, model) != NULL)
		return;
	nearest_init(&nearest, model);
	for (size_t i = 0; i < conf->nmodels; i++)
		nearest_offer(&nearest, conf->models[i].name);
	for (size_t i = 0; i < conf->nchannels; i++) {
		if (conf_serves(&conf->channels[i].models, model))
			return;
		offer_literals(&nearest, &conf->channels[i].models);
	}
	load_misnamed(load, node, "no model that anybody serves", &nearest);
}

static void
check_task(struct load *load, const struct tree *t, const struct conf_task *task)
{
	const struct tree *node = t->type == TREE_ARRAY ? t->first : t;

	for (size_t i = 0; i < task->models.n && node != NULL; i++, node = node->next) {
		struct span name = task->models.at[i];

		if (text_is(name, CONF_AUTO) && conf_model(load->conf, name) == NULL)
			load_fault(load, node, NULL, "'auto' is the choice by tasks itself");
		else
			check_served(load, node, name);
		if (t->type != TREE_ARRAY)
			break;
	}
}

static void
check_routing(struct load *load, const struct tree *root)
{
	const struct conf *conf = load->conf;
	const struct tree *tasks = tree_at(root, "routing.tasks");
	size_t i = 0;

	for (const struct tree *t = tasks == NULL ? NULL : tasks->first; t != NULL; t = t->next)
		if (!t->repeated && i < conf->routing.ntasks)
			check_task(load, t, &conf->routing.tasks[i++]);
	check_served(load, tree_at(root, "routing.classifier"), conf->routing.classifier);
	if (is_by_task(conf->routing.default_strategy) && !conf_speaks_of_tasks(conf))
		load_note(load, tree_at(root, "routing.default"), NULL,
		    "there are no tasks: neither in routing.tasks nor of any model");
}

static void
check_context(struct load *load, const struct tree *root)
{
	const struct conf *conf = load->conf;
	const struct tree *trim = tree_at(root, "context.trim");

	check_served(load, tree_at(root, "context.summary_model"), conf->context.summary_model);
	if (conf->context.trim == CONF_TRIM_SUMMARY && conf->context.summary_model.n == 0)
		load_fault(
		    load, trim, NULL, "needs context.summary_model, which writes the summary");
	if (conf->context.max_tokens > 0 && conf->context.max_tokens < CONF_WINDOW_MIN)
		load_fault(load, tree_at(root, "context.max_tokens"), NULL,
		    "%" PRId64 " tokens do not hold a single message: at least %d, or 0",
		    conf->context.max_tokens, CONF_WINDOW_MIN);
}

void
conf_model_check_uses(struct load *load, const struct tree *root)
{
	check_routing(load, root);
	check_context(load, root);
}
