#include "ctl/models_list.h"

#include "conf/known.h"
#include "route.h"

/* What models of clients' own making are gathered with. */
struct gather {
	struct models_list_job *job;
	size_t channel;
	size_t known; /* models before: of the configuration */
};

static const char *
why_not(enum pick_result result)
{
	static const char *const words[] = {
	    [PICK_TAKEN] = NULL,
	    [PICK_OPEN] = "channel open",
	    [PICK_WAITING] = "full",
	    [PICK_FULL] = "full",
	    [PICK_COOLING] = "cooling",
	    [PICK_MISSING] = "model missing",
	    [PICK_TRIED] = "no account",
	    [PICK_NOBODY] = "no account",
	};

	return words[result];
}

/* Could a pick have an account for it? */
static enum store_rc
ask_accounts(const struct models_list_job *job, struct txn *txn,
    const struct models_list_model *model, struct models_list_target *target)
{
	struct pick_wish wish = {
	    .pool = job->attach->pool,
	    .channel = target->channel,
	    .model = arena_z(job->arena, target->model),
	    .realm = model->conf == NULL ? SPAN("") : model->conf->realm,
	    .insist = PICK_ANY,
	};
	struct pick_reason reason;
	enum store_rc rc = pick_look(txn, job->attach->slot, &wish, job->now, &reason);

	target->serves = reason.result == PICK_TAKEN;
	target->why = why_not(reason.result);
	if (reason.result == PICK_OPEN || reason.result == PICK_COOLING)
		target->until = reason.earliest;
	return rc;
}

static enum store_rc
look_at(const struct models_list_job *job, struct txn *txn, const struct models_list_model *model,
    struct models_list_target *target)
{
	const struct attach *a = job->attach;
	struct target_policy policy = pool_target_policy(a->conf);
	enum store_rc rc =
	    target_get(txn, pool_target(a->pool, target->channel, target->model), &target->row);

	if (rc == STORE_OK || rc == STORE_NONE)
		rc = ask_accounts(job, txn, model, target);
	target_sums(&target->row, &policy, job->now, &target->sums);
	target->rests = target_state(&target->row, &policy, job->now) == TARGET_RESTS;
	if (target->rests && target->serves) {
		target->serves = false;
		target->why = "resting";
		target->until = (struct wall_ms){target->row.rest_until_ms};
	}
	return rc;
}

static enum store_rc
look_at_all(struct models_list_job *job, struct txn *txn)
{
	enum store_rc rc = STORE_OK;

	for (size_t m = 0; m < job->list.n; m++) {
		struct models_list_model *model = &job->list.models[m];

		for (size_t t = 0; t < model->ntargets && rc == STORE_OK; t++) {
			rc = look_at(job, txn, model, &model->targets[t]);
			model->serves = model->serves || model->targets[t].serves;
		}
	}
	return rc;
}

/* Room in the list for one more. */
static struct models_list_model *
add(struct models_list_job *job, struct span name, enum models_list_source source, size_t ntargets)
{
	struct models_list *list = &job->list;
	struct models_list_model *model;

	if ((list->n & (list->n - 1)) == 0) { /* full at each power of two */
		struct models_list_model *more =
		    arena_alloc(job->arena, (list->n == 0 ? 1 : 2 * list->n) * sizeof *more);

		for (size_t i = 0; i < list->n; i++)
			more[i] = list->models[i];
		list->models = more;
	}
	model = &list->models[list->n++];
	*model = (struct models_list_model){.name = name,
	    .source = source,
	    .ntargets = ntargets,
	    .targets = arena_alloc(job->arena, (ntargets + 1) * sizeof *model->targets)};
	return model;
}

static void
add_entry(struct models_list_job *job, const struct conf_model *conf)
{
	struct models_list_model *model = add(job, conf->name, MODELS_LIST_TABLE, conf->ntargets);

	model->conf = conf;
	for (size_t t = 0; t < conf->ntargets; t++)
		model->targets[t] = (struct models_list_target){
		    .channel = conf->targets[t].channel,
		    .model = conf->targets[t].model,
		    .conf = &conf->targets[t],
		    .window = conf->targets[t].context_window,
		    .max_output = conf->targets[t].max_output,
		    .price = known_price(
		        job->attach->conf, conf->targets[t].channel, conf->targets[t].model),
		};
}

/* A name that is no entry: it goes to one channel. */
static void
add_name(
    struct models_list_job *job, struct span name, enum models_list_source source, size_t channel)
{
	const struct conf_target known = known_target(job->attach->conf, NULL, channel, name);
	struct models_list_model *model = add(job, name, source, 1);

	model->targets[0] = (struct models_list_target){
	    .channel = channel,
	    .model = name,
	    .window = known.context_window,
	    .max_output = known.max_output,
	    .price = known_price(job->attach->conf, channel, name),
	};
}

static bool
has_name(const struct models_list *list, struct span name)
{
	for (size_t i = 0; i < list->n; i++)
		if (text_equal(list->models[i].name, name))
			return true;
	return false;
}

static bool
has_target(const struct models_list *list, size_t known, size_t channel, struct span model)
{
	for (size_t m = 0; m < known; m++)
		for (size_t t = 0; t < list->models[m].ntargets; t++)
			if (list->models[m].targets[t].channel == channel &&
			    text_equal(list->models[m].targets[t].model, model))
				return true;
	return false;
}

static void
add_literals(struct models_list_job *job, const struct conf_channel *channel)
{
	for (size_t i = 0; i < channel->models.n; i++) {
		struct span name = channel->models.at[i];
		struct route route;

		if (!conf_is_name(name) || has_name(&job->list, name) ||
		    !route_find(job->attach->conf, name, ROUTE_WIRES_ALL, &route))
			continue;
		add_name(job, name, MODELS_LIST_CHANNEL, route.channel);
	}
}

static bool
add_remembered(struct env_bytes bytes, const struct target_row *row, void *arg)
{
	struct gather *gather = arg;
	struct models_list_job *job = gather->job;
	struct span name = {bytes.p, bytes.n};

	(void)row;
	if (!has_target(&job->list, gather->known, gather->channel, name))
		add_name(job, arena_copy(job->arena, name), MODELS_LIST_STORE, gather->channel);
	return true;
}

enum store_rc
models_list_in(struct txn *txn, void *arg)
{
	struct models_list_job *job = arg;
	const struct conf *conf = job->attach->conf;
	struct gather gather = {.job = job};
	enum store_rc rc = STORE_OK;

	job->list = (struct models_list){.n = 0};
	arena_reset(job->arena);
	for (size_t i = 0; i < conf->nmodels; i++)
		add_entry(job, &conf->models[i]);
	for (size_t c = 0; c < conf->nchannels; c++)
		add_literals(job, &conf->channels[c]);
	gather.known = job->list.n;
	for (size_t c = 0; c < conf->nchannels && rc == STORE_OK; c++) {
		gather.channel = c;
		rc = target_walk(
		    txn, job->attach->pool->channels[c].number, add_remembered, &gather);
	}
	return rc == STORE_OK ? look_at_all(job, txn) : rc;
}
