#include "conf/known.h"

#include <stdlib.h>
#include <string.h>

/* Looks for one name; NULL = not there. */
typedef const void *known_find(const struct conf *conf, struct span name);

static bool
is_number(struct span s, size_t at, size_t n, int64_t min, int64_t max)
{
	int64_t v;

	for (size_t i = at; i < at + n; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return text_i64((struct span){s.p + at, n}, min, max, &v);
}

/* Without a date at its end, if there is one and something before it. */
static bool
cut_date(struct span name, struct span *out)
{
	static const struct {
		size_t n, month, day; /* bytes of the whole, and where in it */
	} forms[] = {{9, 5, 7}, {11, 6, 9}};

	for (size_t i = 0; i < NELEM(forms); i++) {
		struct span date = text_from(name, name.n - forms[i].n);
		bool dashed = forms[i].n == 11;

		if (name.n <= forms[i].n || date.p[0] != '-' ||
		    !is_number(date, 1, 4, 2000, 2099) ||
		    !is_number(date, forms[i].month, 2, 1, 12) ||
		    !is_number(date, forms[i].day, 2, 1, 31) ||
		    (dashed && (date.p[5] != '-' || date.p[8] != '-')))
			continue;
		*out = (struct span){name.p, name.n - forms[i].n};
		return true;
	}
	return false;
}

static const void *
loosely(const struct conf *conf, struct span name, known_find *find)
{
	const void *found = NULL;

	while (found == NULL && name.n > 0) {
		struct span undated;

		found = find(conf, name);
		if (found == NULL && cut_date(name, &undated))
			found = find(conf, undated);
		name = text_from(name, text_find(name, SPAN("/")) + 1);
	}
	return found;
}

static int
by_name(const void *a, const void *b)
{
	struct span x = ((const struct conf_fact *)a)->name,
	            y = ((const struct conf_fact *)b)->name;
	size_t n = x.n < y.n ? x.n : y.n;
	int order = n == 0 ? 0 : memcmp(x.p, y.p, n);

	if (order != 0)
		return order;
	return x.n < y.n ? -1 : x.n > y.n;
}

void
known_sort(struct conf_fact *facts, size_t n)
{
	if (n > 1)
		qsort(facts, n, sizeof *facts, by_name);
}

static const void *
find_fact(const struct conf *conf, struct span name)
{
	struct conf_fact key = {.name = name};

	return conf->nfacts == 0 ? NULL
	                         : bsearch(&key, conf->facts, conf->nfacts, sizeof key, by_name);
}

const struct conf_fact *
known_fact(const struct conf *conf, struct span model)
{
	return loosely(conf, model, find_fact);
}

static const void *
find_price(const struct conf *conf, struct span name)
{
	const struct conf_model *entry = conf_model(conf, name);
	const struct conf_fact *fact = find_fact(conf, name);

	if (entry != NULL && entry->cost.given)
		return &entry->cost;
	return fact != NULL && fact->cost.given ? &fact->cost : NULL;
}

static const void *
find_window(const struct conf *conf, struct span name)
{
	const struct conf_model *entry = conf_model(conf, name);
	const struct conf_fact *fact = find_fact(conf, name);

	if (entry != NULL && entry->context_window > 0)
		return &entry->context_window;
	return fact != NULL && fact->context_window > 0 ? &fact->context_window : NULL;
}

static const void *
find_output(const struct conf *conf, struct span name)
{
	const struct conf_model *entry = conf_model(conf, name);
	const struct conf_fact *fact = find_fact(conf, name);

	if (entry != NULL && entry->max_output > 0)
		return &entry->max_output;
	return fact != NULL && fact->max_output > 0 ? &fact->max_output : NULL;
}

const struct conf_cost *
known_price(const struct conf *conf, size_t channel, struct span model)
{
	for (size_t m = 0; m < conf->nmodels; m++)
		for (size_t t = 0; t < conf->models[m].ntargets; t++) {
			const struct conf_target *target = &conf->models[m].targets[t];

			if (target->channel == channel && target->cost.given &&
			    text_equal(target->model, model))
				return &target->cost;
		}
	return loosely(conf, model, find_price);
}

static int64_t
known_number(const struct conf *conf, struct span model, known_find *find)
{
	const int64_t *found = loosely(conf, model, find);

	return found == NULL ? 0 : *found;
}

struct conf_target
known_target(
    const struct conf *conf, const struct conf_model *entry, size_t channel, struct span model)
{
	struct conf_target target = {.channel = channel, .model = model, .weight = 1};
	const struct conf_model *own = conf_model(conf, model);
	const struct conf_cost *cost;

	for (size_t i = 0; entry != NULL && i < entry->ntargets; i++)
		if (entry->targets[i].channel == channel &&
		    text_equal(entry->targets[i].model, model))
			return entry->targets[i];
	cost = known_price(conf, channel, model);
	if (cost != NULL)
		target.cost = *cost;
	target.context_window = known_number(conf, model, find_window);
	target.max_output = known_number(conf, model, find_output);
	if (target.context_window > 0 && target.max_output > target.context_window)
		target.max_output = target.context_window;
	if (own != NULL) {
		target.defaults = own->defaults;
		target.ndefaults = own->ndefaults;
	}
	return target;
}
