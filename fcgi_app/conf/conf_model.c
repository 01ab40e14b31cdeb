#include "conf/conf_model.h"

#include "base/emit.h"
#include "conf/conf_channel.h"
#include "conf/conf_fact.h"
#include "conf/conf_model_check.h"
#include "conf/expand.h"
#include "conf/known.h"
#include "conf/setting.h"

/* JSON text of a value, its strings expanded. As deep as a tree may be: 16. */
static bool
write_value(struct load *load, const struct tree *node, struct buf *out)
{
	static const char *const words[] = {
	    [TREE_NULL] = "null", [TREE_FALSE] = "false", [TREE_TRUE] = "true"};
	bool object = node->type == TREE_OBJECT, fine = true;
	struct span text;

	if (node->type <= TREE_TRUE) {
		buf_z(out, words[node->type]);
		return true;
	}
	if (node->type == TREE_NUMBER) {
		buf_span(out, node->text);
		return true;
	}
	if (node->type == TREE_STRING) {
		fine = expand_node(load, node, EXPAND_TEXT, &text);
		if (fine)
			emit_quoted(out, text);
		return fine;
	}
	buf_char(out, object ? '{' : '[');
	for (const struct tree *t = node->first; t != NULL; t = t->next) {
		if (t != node->first)
			buf_char(out, ',');
		if (object) {
			emit_quoted(out, t->key);
			buf_char(out, ':');
		}
		fine = write_value(load, t, out) && fine;
	}
	buf_char(out, object ? '}' : ']');
	return fine;
}

/* What only the request itself can say, and what the gateway sets in it. */
static bool
is_requests_own(struct span name)
{
	static const char *const own[] = {"model", "messages", "input", "prompt", "stream",
	    "stream_options", "previous_response_id", "conversation"};

	for (size_t i = 0; i < NELEM(own); i++)
		if (text_is(name, own[i]))
			return true;
	return name.n == 0;
}

static void
check_default(struct load *load, const struct tree *t, const struct tree **limit)
{
	int64_t n;

	if (is_requests_own(t->key))
		load_fault(load, t, NULL, "cannot have a default: the request itself says it");
	if (!conf_is_limit(t->key))
		return;
	if (*limit != NULL)
		load_fault(load, t, NULL, "is the same limit as %.*s", (int)(*limit)->key.n,
		    (*limit)->key.p);
	if (t->type != TREE_NUMBER || !text_i64(t->text, 1, INT32_MAX, &n))
		load_fault(load, t, NULL, "must be a whole number of tokens, at least 1");
	*limit = t;
}

static void
read_defaults(
    struct load *load, const struct tree *node, struct conf_header **list_out, size_t *n_out)
{
	const struct tree *defaults = tree_member(node, SPAN("defaults")), *limit = NULL;
	struct conf_header *list;
	size_t n = 0;

	if (defaults == NULL)
		return;
	if (defaults->type != TREE_OBJECT) {
		setting_mistyped(load, defaults, "an object");
		return;
	}
	list = arena_alloc(load->arena, (defaults->n + 1) * sizeof *list);
	for (const struct tree *t = defaults->first; t != NULL; t = t->next) {
		struct buf *json = arena_buf(load->work, LOAD_FILE_MAX);

		if (!t->repeated)
			check_default(load, t, &limit);
		if (t->repeated || !write_value(load, t, json))
			continue;
		list[n++] = (struct conf_header){
		    arena_copy(load->arena, t->key), arena_copy(load->arena, buf_text(json))};
	}
	*list_out = list;
	*n_out = n;
}

/* A field that neither the target nor a nearer entry wrote. */
struct lack {
	bool context_window, max_output, cost, tasks, defaults;
};

static bool
take(bool *lacks, const struct tree *node, struct span name)
{
	bool taken = *lacks && tree_member(node, name) != NULL;

	*lacks = *lacks && !taken;
	return taken;
}

static void
inherit(struct lack *lack, struct conf_target *target, const struct tree *node,
    const struct conf_model *from)
{
	if (take(&lack->context_window, node, SPAN("context_window")))
		target->context_window = from->context_window;
	if (take(&lack->max_output, node, SPAN("max_output")))
		target->max_output = from->max_output;
	if (take(&lack->cost, node, SPAN("cost")))
		target->cost = from->cost;
	if (take(&lack->tasks, node, SPAN("tasks")))
		target->tasks = from->tasks;
	if (take(&lack->defaults, node, SPAN("defaults"))) {
		target->defaults = from->defaults;
		target->ndefaults = from->ndefaults;
	}
}

/* What nobody wrote, out of models_file; the first fact that says it counts. */
static void
learn(const struct lack *lack, struct conf_target *target, const struct conf_fact *fact)
{
	if (fact == NULL)
		return;
	if (lack->context_window && target->context_window == 0)
		target->context_window = fact->context_window;
	if (lack->max_output && target->max_output == 0)
		target->max_output = fact->max_output;
	if (lack->cost && !target->cost.given)
		target->cost = fact->cost;
}

static struct lack
lack_of(const struct tree *node)
{
	return (struct lack){
	    .context_window = tree_member(node, SPAN("context_window")) == NULL,
	    .max_output = tree_member(node, SPAN("max_output")) == NULL,
	    .cost = tree_member(node, SPAN("cost")) == NULL,
	    .tasks = tree_member(node, SPAN("tasks")) == NULL,
	    .defaults = tree_member(node, SPAN("defaults")) == NULL,
	};
}

static void
inherit_all(struct load *load, const struct tree *node, struct conf_target *target,
    const struct conf_model *model)
{
	const struct tree *entry = node->parent->parent;
	const struct conf_model *own = conf_model(load->conf, target->model);
	struct lack lack = lack_of(node);

	if (own != NULL)
		inherit(&lack, target, tree_member(entry->parent, target->model), own);
	inherit(&lack, target, entry, model);
	learn(&lack, target, known_fact(load->conf, target->model));
	learn(&lack, target, known_fact(load->conf, model->name));
	conf_fact_check_sizes(load, node, target->context_window, &target->max_output);
}

/* An entry's own figures: they are told of it, and hold where the name is no target's. */
static void
learn_entry(struct load *load, const struct tree *node, struct conf_model *model)
{
	struct lack lack = lack_of(node);
	struct conf_target known = {.context_window = model->context_window,
	    .max_output = model->max_output,
	    .cost = model->cost};

	learn(&lack, &known, known_fact(load->conf, model->name));
	conf_fact_check_sizes(load, node, known.context_window, &known.max_output);
	model->context_window = known.context_window;
	model->max_output = known.max_output;
	model->cost = known.cost;
}

static void
read_model(struct load *load, const struct tree *node, struct conf_model *model)
{
	struct setting_into into = {.group = OPTIONS_MODEL, .base = model};
	char clean[160];

	model->strategy = -1;
	if (model->name.n == 0 || model->name.n > 128 ||
	    text_clean(clean, sizeof clean, model->name) != model->name.n ||
	    !text_is(model->name, clean))
		load_fault(load, node, NULL,
		    "a model's name must be 1 to 128 bytes without control characters");
	if (node->type != TREE_OBJECT) {
		setting_mistyped(load, node, "an object");
		return;
	}
	setting_defaults(load, &into);
	setting_read(load, node, &into, "");
	conf_fact_finish_cost(load, node, &model->cost);
	read_defaults(load, node, &model->defaults, &model->ndefaults);
	learn_entry(load, node, model);
	if (model->realm.n > 0 && !setting_is_name(model->realm))
		load_fault(load, tree_member(node, SPAN("realm")), NULL,
		    "must be 1 to 64 of A-Z a-z 0-9 . _ @ -");
}

static void
read_target(struct load *load, const struct tree *node, const struct conf_model *model,
    struct conf_target *target)
{
	struct setting_into into = {.group = OPTIONS_TARGET, .base = target};
	const struct tree *channel = tree_member(node, SPAN("channel"));
	const struct conf_channel *ch;

	if (node->type != TREE_OBJECT) {
		setting_mistyped(load, node, "an object");
		return;
	}
	setting_defaults(load, &into);
	setting_read(load, node, &into, "");
	conf_fact_finish_cost(load, node, &target->cost);
	read_defaults(load, node, &target->defaults, &target->ndefaults);
	if (channel == NULL)
		load_fault(load, node, "channel", "is missing");
	ch = channel == NULL ? NULL : conf_channel_named(load, channel);
	if (ch != NULL)
		target->channel = ch->index;
	if (target->model.n == 0)
		target->model = model->name;
	inherit_all(load, node, target, model);
}

static void
read_targets(struct load *load, const struct tree *node, struct conf_model *model)
{
	const struct tree *list = tree_member(node, SPAN("targets"));
	size_t faults = load->report->faults;

	if (list == NULL) {
		load_fault(load, node, "targets", "is missing");
		return;
	}
	if (list->type != TREE_ARRAY) {
		setting_mistyped(load, list, "a list");
		return;
	}
	if (list->n == 0)
		load_fault(load, list, NULL, "must not be empty");
	model->targets = arena_alloc(load->arena, (list->n + 1) * sizeof *model->targets);
	for (const struct tree *t = list->first; t != NULL; t = t->next)
		read_target(load, t, model, &model->targets[model->ntargets++]);
	if (load->report->faults == faults)
		conf_model_check(load, node, model);
}

void
conf_model_read_all(struct load *load, const struct tree *root)
{
	const struct tree *models = tree_member(root, SPAN("models"));
	struct conf *conf = load->conf;
	size_t i = 0;

	if (models == NULL)
		return;
	if (models->type != TREE_OBJECT) {
		setting_mistyped(load, models, "an object");
		return;
	}
	conf->models = arena_alloc(load->arena, (models->n + 1) * sizeof *conf->models);
	for (const struct tree *t = models->first; t != NULL; t = t->next)
		if (!t->repeated) {
			conf->models[conf->nmodels].name = arena_copy(load->arena, t->key);
			read_model(load, t, &conf->models[conf->nmodels++]);
		}
	/* entries first: a target may take from a later one */
	for (const struct tree *t = models->first; t != NULL; t = t->next)
		if (!t->repeated && t->type == TREE_OBJECT)
			read_targets(load, t, &conf->models[i++]);
		else if (!t->repeated)
			i++;
}

static void
read_task(struct load *load, const struct tree *t, struct conf_task *task)
{
	task->name = arena_copy(load->arena, t->key);
	if (t->type == TREE_ARRAY) {
		if (setting_texts(load, t, &task->models) && task->models.n == 0)
			load_fault(load, t, NULL, "must not be empty");
		return;
	}
	if (t->type != TREE_STRING) {
		setting_mistyped(load, t, "a model or a list of models");
		return;
	}
	task->models = (struct conf_strings){arena_alloc(load->arena, sizeof(struct span)), 1};
	if (setting_text(load, t, task->models.at) && task->models.at->n == 0)
		load_fault(load, t, NULL, "is empty");
}

void
conf_model_read_tasks(struct load *load, const struct tree *root)
{
	const struct tree *tasks = tree_at(root, "routing.tasks");
	struct conf *conf = load->conf;

	if (tasks == NULL)
		return;
	if (tasks->type != TREE_OBJECT) {
		setting_mistyped(load, tasks, "an object");
		return;
	}
	conf->routing.tasks =
	    arena_alloc(load->arena, (tasks->n + 1) * sizeof *conf->routing.tasks);
	for (const struct tree *t = tasks->first; t != NULL; t = t->next)
		if (!t->repeated)
			read_task(load, t, &conf->routing.tasks[conf->routing.ntasks++]);
}
