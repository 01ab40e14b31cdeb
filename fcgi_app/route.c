#include "route.h"

#include "task.h"

/* ---- tasks ---- */

bool
route_lists(const struct conf_strings *tasks, struct span task)
{
	for (size_t i = 0; i < tasks->n; i++)
		if (task_is_same(tasks->at[i], task))
			return true;
	return false;
}

bool
route_is_auto(const struct conf *conf, struct span model)
{
	return text_is(model, CONF_AUTO) && conf_model(conf, model) == NULL &&
	       conf_speaks_of_tasks(conf);
}

/* ---- lists ---- */

static bool
has(const struct route_list *list, size_t channel, struct span model)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->at[i].channel == channel && text_equal(list->at[i].model, model))
			return true;
	return false;
}

static void
add_target(
    struct route_list *list, const struct conf_model *entry, const struct conf_target *target)
{
	if (!has(list, target->channel, target->model))
		list->at[list->n++] = (struct route){target->channel, target->model, entry, target};
}

/* The first channel whose patterns match. */
static bool
by_pattern(const struct conf *conf, struct span model, unsigned wires, struct route *route_out)
{
	for (size_t i = 0; i < conf->nchannels; i++) {
		const struct conf_channel *channel = &conf->channels[i];

		if ((ROUTE_WIRE(channel->wire) & wires) == 0 ||
		    !conf_serves(&channel->models, model))
			continue;
		*route_out = (struct route){i, model, NULL, NULL};
		return true;
	}
	return false;
}

static void
add_name(const struct conf *conf, struct span model, unsigned wires, struct route_list *list)
{
	const struct conf_model *entry = conf_model(conf, model);
	struct route route;

	for (size_t i = 0; entry != NULL && i < entry->ntargets; i++)
		add_target(list, entry, &entry->targets[i]);
	if (entry == NULL && by_pattern(conf, model, wires, &route) &&
	    !has(list, route.channel, route.model))
		list->at[list->n++] = route;
}

/* Targets of all entries that list the task; with "", those that list none. */
static void
add_listing(const struct conf *conf, struct span task, struct route_list *list)
{
	for (size_t i = 0; i < conf->nmodels; i++) {
		const struct conf_model *entry = &conf->models[i];

		for (size_t k = 0; k < entry->ntargets; k++) {
			const struct conf_strings *tasks = &entry->targets[k].tasks;

			if (task.n > 0 ? route_lists(tasks, task) : tasks->n == 0)
				add_target(list, entry, &entry->targets[k]);
		}
	}
}

static const struct conf_task *
find_task(const struct conf *conf, struct span task)
{
	for (size_t i = 0; task.n > 0 && i < conf->routing.ntasks; i++)
		if (task_is_same(conf->routing.tasks[i].name, task))
			return &conf->routing.tasks[i];
	return NULL;
}

static void
add_task(const struct conf *conf, struct span task, unsigned wires, struct route_list *list)
{
	const struct conf_task *found = find_task(conf, task);

	if (found == NULL)
		found = find_task(conf, SPAN(CONF_TASK_DEFAULT));
	for (size_t i = 0; found != NULL && i < found->models.n; i++)
		add_name(conf, found->models.at[i], wires, list);
	if (found == NULL && task.n > 0)
		add_listing(conf, task, list);
	if (found == NULL && list->n == 0)
		add_listing(conf, SPAN(""), list);
}

/* That of the entry, where all come from one. */
static int
strategy_of(const struct conf *conf, const struct route_list *list)
{
	const struct conf_model *entry = list->n > 0 ? list->at[0].entry : NULL;

	for (size_t i = 1; i < list->n; i++)
		if (list->at[i].entry != entry)
			entry = NULL;
	return conf_strategy(conf, entry);
}

/* Most that a list can hold. */
static size_t
room_for(const struct conf *conf)
{
	size_t n = 1;

	for (size_t i = 0; i < conf->nmodels; i++)
		n += conf->models[i].ntargets;
	for (size_t i = 0; i < conf->routing.ntasks; i++)
		n += conf->routing.tasks[i].models.n;
	return n;
}

/* Is there a candidate of one of these wires? */
static bool
speaks(const struct conf *conf, const struct route_list *list, unsigned wires)
{
	for (size_t i = 0; i < list->n; i++)
		if ((ROUTE_WIRE(conf->channels[list->at[i].channel].wire) & wires) != 0)
			return true;
	return false;
}

bool
route_all(const struct conf *conf, const struct route_wish *wish, struct arena *arena,
    struct route_list *list_out)
{
	const struct conf_model *entry = conf_model(conf, wish->model);
	bool by_task = route_is_auto(conf, wish->model);
	size_t most = by_task ? room_for(conf) : entry != NULL ? entry->ntargets : 1;
	struct route_list list = {.at = arena_alloc(arena, most * sizeof *list.at)};

	if (by_task)
		add_task(conf, wish->task, wish->wires, &list);
	else
		add_name(conf, wish->model, wish->wires, &list);
	list.strategy = strategy_of(conf, &list);
	*list_out = list;
	return speaks(conf, &list, wish->wires);
}

bool
route_find(const struct conf *conf, struct span model, unsigned wires, struct route *route_out)
{
	const struct conf_model *entry = conf_model(conf, model);

	for (size_t i = 0; entry != NULL && i < entry->ntargets; i++) {
		const struct conf_target *target = &entry->targets[i];

		if ((ROUTE_WIRE(conf->channels[target->channel].wire) & wires) == 0)
			continue;
		*route_out = (struct route){target->channel, target->model, entry, target};
		return true;
	}
	return entry == NULL && by_pattern(conf, model, wires, route_out);
}
