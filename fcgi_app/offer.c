#include "offer.h"

#include "conf/known.h"
#include "route.h"

/* A name on its way: what it may lead to. */
struct row {
	struct offer *offer;
	struct txn *txn;
	struct span realm;
	struct conf_target *targets;
	size_t n, cap;
};

static const struct conf *
conf_of(const struct offer *offer)
{
	return offer->pool->conf;
}

static void
add_target(struct row *row, const struct conf_target *target)
{
	if (row->n == row->cap) {
		struct conf_target *more;

		row->cap = row->cap == 0 ? 4 : row->cap * 2;
		more = arena_alloc(row->offer->arena, row->cap * sizeof *more);
		for (size_t i = 0; i < row->n; i++)
			more[i] = row->targets[i];
		row->targets = more;
	}
	row->targets[row->n++] = *target;
}

/* The targets of a name: of its entry, else the first channel that serves it. */
static void
add_name(struct row *row, struct span name)
{
	const struct conf *conf = conf_of(row->offer);
	const struct conf_model *entry = conf_model(conf, name);
	struct conf_target target;
	struct route route;

	for (size_t i = 0; entry != NULL && i < entry->ntargets; i++)
		add_target(row, &entry->targets[i]);
	if (entry == NULL && route_find(conf, name, ROUTE_WIRES_ALL, &route)) {
		target = known_target(conf, NULL, route.channel, name);
		add_target(row, &target);
	}
}

/* May an account of this channel ever serve the model for this realm? */
static bool
may_serve(const struct conf_channel *ch, struct span model, struct span realm)
{
	for (size_t i = 0; i < ch->naccounts; i++) {
		const struct conf_account *account = &ch->accounts[i];

		if (account->enabled && (realm.n == 0 || text_equal(account->realm, realm)) &&
		    conf_serves(&account->models, model))
			return true;
	}
	return false;
}

/* A model that fails while others of its channel work. */
static enum store_rc
rests(const struct row *row, size_t channel, struct span model, bool *rests_out)
{
	struct target_policy policy = pool_target_policy(conf_of(row->offer));
	struct target_row known;
	enum store_rc rc =
	    target_get(row->txn, pool_target(row->offer->pool, channel, model), &known);

	*rests_out =
	    rc == STORE_OK && target_state(&known, &policy, row->offer->now) == TARGET_RESTS;
	return rc == STORE_NONE ? STORE_OK : rc;
}

static enum store_rc
can_serve(const struct row *row, size_t channel, struct span model, bool *can_out)
{
	struct pick_wish wish = {.pool = row->offer->pool,
	    .channel = channel,
	    .model = arena_z(row->offer->arena, model),
	    .realm = row->realm,
	    .insist = PICK_ANY};
	struct pick_reason reason;
	bool out;
	enum store_rc rc = rests(row, channel, model, &out);

	*can_out = false;
	if (rc != STORE_OK || out)
		return rc;
	rc = pick_look(row->txn, row->offer->slot, &wish, row->offer->now, &reason);
	*can_out = rc == STORE_OK && reason.result != PICK_OPEN &&
	           reason.out[SCORE_IN] + reason.out[SCORE_TIER] + reason.out[SCORE_FULL] > 0;
	return rc;
}

/* Of the targets, then of the channels that the first one falls back to. */
static enum store_rc
look_for_account(const struct row *row, bool *can_out)
{
	const struct conf *conf = conf_of(row->offer);
	const struct conf_target *first = row->targets;
	const struct conf_channel *ch;
	enum store_rc rc = STORE_OK;

	*can_out = false;
	for (size_t i = 0; i < row->n && rc == STORE_OK && !*can_out; i++)
		rc = can_serve(row, row->targets[i].channel, row->targets[i].model, can_out);
	ch = row->n == 0 ? NULL : &conf->channels[first->channel];
	for (size_t i = 0; ch != NULL && i < ch->nfallback && rc == STORE_OK && !*can_out; i++)
		if (conf_serves(&conf->channels[ch->fallback[i]].models, first->model))
			rc = can_serve(row, ch->fallback[i], first->model, can_out);
	return rc;
}

static int64_t
larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Targets that nobody may ever serve say nothing, unless there are no others. False: there are none. */
static bool
keep_served(struct row *row)
{
	const struct conf *conf = conf_of(row->offer);
	size_t kept = 0;

	for (size_t i = 0; i < row->n; i++) {
		const struct conf_target *t = &row->targets[i];

		if (may_serve(&conf->channels[t->channel], t->model, row->realm))
			row->targets[kept++] = *t;
	}
	if (kept > 0)
		row->n = kept;
	return kept > 0;
}

static void
sum_up(const struct row *row, struct offer_model *model)
{
	model->cost.given = row->n > 0;
	for (size_t i = 0; i < row->n; i++) {
		const struct conf_target *t = &row->targets[i];

		model->context_window = larger(model->context_window, t->context_window);
		model->max_output = larger(model->max_output, t->max_output);
		model->cost.given = model->cost.given && t->cost.given;
		model->cost.input_micros = larger(model->cost.input_micros, t->cost.input_micros);
		model->cost.output_micros =
		    larger(model->cost.output_micros, t->cost.output_micros);
		model->cost.cached_micros =
		    larger(model->cost.cached_micros, t->cost.cached_micros);
	}
}

/* `owner` "": the channel of the first target, of those that may serve: others are nobody's business here. */
static enum store_rc
put(struct row *row, struct span name, struct span owner)
{
	struct offer *offer = row->offer;
	struct offer_model *model = &offer->models[offer->n];
	bool served = keep_served(row);

	*model = (struct offer_model){.name = name, .owner = owner};
	if (!served && offer->realm.n > 0)
		return STORE_OK;
	if (owner.n == 0)
		model->owner = conf_of(offer)->channels[row->targets[0].channel].name;
	sum_up(row, model);
	offer->n++;
	return look_for_account(row, &model->available);
}

static bool
is_wanted(const struct offer *offer, struct span name)
{
	return offer->only.n == 0 || text_equal(offer->only, name);
}

static struct row
row_of(struct offer *offer, struct txn *txn, struct span realm)
{
	return (struct row){
	    .offer = offer, .txn = txn, .realm = offer->realm.n > 0 ? offer->realm : realm};
}

static enum store_rc
put_entries(struct offer *offer, struct txn *txn)
{
	const struct conf *conf = conf_of(offer);
	enum store_rc rc = STORE_OK;

	for (size_t i = 0; i < conf->nmodels && rc == STORE_OK; i++) {
		const struct conf_model *entry = &conf->models[i];
		struct row row = row_of(offer, txn, entry->realm);

		if (!is_wanted(offer, entry->name))
			continue;
		add_name(&row, entry->name);
		rc = put(&row, entry->name, SPAN(""));
	}
	return rc;
}

/* What "auto" may come to: the models of routing.tasks, else those of all entries. */
static void
add_auto(struct row *row)
{
	const struct conf *conf = conf_of(row->offer);

	for (size_t t = 0; t < conf->routing.ntasks; t++)
		for (size_t i = 0; i < conf->routing.tasks[t].models.n; i++)
			add_name(row, conf->routing.tasks[t].models.at[i]);
	for (size_t i = 0; conf->routing.ntasks == 0 && i < conf->nmodels; i++)
		add_name(row, conf->models[i].name);
}

static enum store_rc
put_auto(struct offer *offer, struct txn *txn)
{
	const struct span name = SPAN(CONF_AUTO);
	struct row row = row_of(offer, txn, (struct span){"", 0});

	if (!is_wanted(offer, name) || !route_is_auto(conf_of(offer), name))
		return STORE_OK;
	add_auto(&row);
	return row.n == 0 ? STORE_OK : put(&row, name, SPAN("sluice"));
}

static bool
is_known(const struct offer *offer, struct span name)
{
	if (conf_model(conf_of(offer), name) != NULL)
		return true;
	for (size_t i = 0; i < offer->n; i++)
		if (text_equal(offer->models[i].name, name))
			return true;
	return false;
}

static enum store_rc
put_literals(struct offer *offer, struct txn *txn)
{
	const struct conf *conf = conf_of(offer);
	enum store_rc rc = STORE_OK;

	for (size_t c = 0; c < conf->nchannels; c++)
		for (size_t i = 0; i < conf->channels[c].models.n && rc == STORE_OK; i++) {
			struct span name = conf->channels[c].models.at[i];
			struct row row = row_of(offer, txn, (struct span){"", 0});

			if (!conf_is_name(name) || !is_wanted(offer, name) || is_known(offer, name))
				continue;
			add_name(&row, name);
			rc = put(&row, name, SPAN(""));
		}
	return rc;
}

static size_t
count_names(const struct conf *conf)
{
	size_t n = conf->nmodels + 1;

	for (size_t c = 0; c < conf->nchannels; c++)
		n += conf->channels[c].models.n;
	return n;
}

enum store_rc
offer_look(struct txn *txn, struct offer *offer)
{
	enum store_rc rc;

	offer->models =
	    arena_alloc(offer->arena, (count_names(conf_of(offer)) + 1) * sizeof *offer->models);
	offer->n = 0;
	rc = put_entries(offer, txn);
	if (rc == STORE_OK)
		rc = put_auto(offer, txn);
	return rc == STORE_OK ? put_literals(offer, txn) : rc;
}
