#include "conf/conf.h"

#include "conf/conf_channel.h"
#include "conf/conf_check.h"
#include "conf/conf_fact.h"
#include "conf/conf_model.h"
#include "conf/conf_model_check.h"
#include "conf/setting.h"

#include <limits.h>
#include <stdlib.h>

static void
read_root(struct load *load, const struct tree *root)
{
	struct conf *conf = load->conf;
	struct setting_into into = {.group = OPTIONS_GLOBAL, .base = conf, .policy = &conf->policy};

	setting_defaults(load, &into);
	setting_read(load, root, &into, "");
	conf_check_global(load, root);
	conf_channel_read_all(load, root);
	conf_fact_read_all(load);
	conf_model_read_all(load, root);
	conf_model_read_tasks(load, root);
	conf_model_check_uses(load, root);
}

static void
read_main(struct load *load)
{
	struct source *source;
	const struct tree *root = load_file(load, load->file, &source);

	if (root == NULL)
		return;
	read_root(load, root);
	load_private(load, source);
}

static void
tell_first(const struct conf_report *report, struct why *why)
{
	for (size_t i = 0; i < report->n; i++)
		if (report->at[i].level == CONF_FAULT) {
			err_why(why, "%s", report->at[i].text);
			return;
		}
}

enum err
conf_load(const char *path, struct conf **conf_out, struct conf_report *report, struct why *why)
{
	struct conf_report own = {0};
	char absolute[PATH_MAX];
	struct load load;
	struct conf *conf;
	size_t before;
	enum err err = conf_find(path, absolute, sizeof absolute, why);

	if (err != ERR_OK)
		return err;
	if (report == NULL)
		report = &own;
	before = report->faults;
	load_begin(&load, absolute, report);
	read_main(&load);
	load_end(&load);
	conf = load.conf;
	if (report->faults > before) {
		tell_first(report, why);
		conf_free(&conf);
		err = ERR_CONFIG;
	} else {
		*conf_out = conf;
	}
	conf_report_release(&own);
	return err;
}

/* The arena wipes what is secret in it: see wipe.h. */
void
conf_free(struct conf **conf)
{
	struct arena *arena;

	if (*conf == NULL)
		return;
	arena = (*conf)->arena;
	*conf = NULL;
	arena_free(&arena);
}

void
conf_report_release(struct conf_report *report)
{
	free(report->at);
	*report = (struct conf_report){0};
}

struct conf_channel *
conf_channel(const struct conf *conf, struct span name)
{
	for (size_t i = 0; i < conf->nchannels; i++)
		if (text_equal(conf->channels[i].name, name))
			return &conf->channels[i];
	return NULL;
}

struct conf_account *
conf_account(const struct conf_channel *ch, struct span id)
{
	for (size_t i = 0; i < ch->naccounts; i++)
		if (text_equal(ch->accounts[i].id, id))
			return &ch->accounts[i];
	return NULL;
}

struct conf_model *
conf_model(const struct conf *conf, struct span name)
{
	for (size_t i = 0; i < conf->nmodels; i++)
		if (text_equal(conf->models[i].name, name))
			return &conf->models[i];
	return NULL;
}

bool
conf_is_limit(struct span field)
{
	return text_is(field, "max_tokens") || text_is(field, "max_completion_tokens") ||
	       text_is(field, "max_output_tokens");
}

int
conf_strategy(const struct conf *conf, const struct conf_model *model)
{
	return model != NULL && model->strategy >= 0 ? model->strategy
	                                             : conf->routing.default_strategy;
}

bool
conf_has_tasks(const struct conf_model *model)
{
	for (size_t i = 0; i < model->ntargets; i++)
		if (model->targets[i].tasks.n > 0)
			return true;
	return false;
}

bool
conf_speaks_of_tasks(const struct conf *conf)
{
	for (size_t i = 0; i < conf->nmodels; i++)
		if (conf_has_tasks(&conf->models[i]))
			return true;
	return conf->routing.ntasks > 0;
}

bool
conf_is_name(struct span pattern)
{
	return text_find(pattern, SPAN("*")) == pattern.n;
}

bool
conf_serves(const struct conf_strings *patterns, struct span model)
{
	for (size_t i = 0; i < patterns->n; i++)
		if (text_match(patterns->at[i], model))
			return true;
	return patterns->n == 0;
}

bool
conf_names(const struct conf *conf, const struct conf_channel *ch, struct span model)
{
	for (size_t i = 0; i < ch->models.n; i++)
		if (conf_is_name(ch->models.at[i]) && text_equal(ch->models.at[i], model))
			return true;
	for (size_t i = 0; i < conf->nmodels; i++)
		for (size_t k = 0; k < conf->models[i].ntargets; k++) {
			const struct conf_target *target = &conf->models[i].targets[k];

			if (target->channel == ch->index && text_equal(target->model, model))
				return true;
		}
	return false;
}
