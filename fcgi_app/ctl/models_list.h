/*
 * models_list - the resolved table of models: what may be asked for, where it goes, and how it does there.
 *
 * Order     the entries of `models`; then literal names of channels' patterns; then what clients asked for by other names,
 *           as far as the store remembers it
 * Memory    everything lives in the given arena
 * Source    SPEC.md section 12
 */
#ifndef CTL_MODELS_LIST_H
#define CTL_MODELS_LIST_H

#include "ctl/attach.h"
#include "store/target.h"

enum models_list_source { MODELS_LIST_TABLE, MODELS_LIST_CHANNEL, MODELS_LIST_STORE };

struct models_list_target {
	size_t channel;
	struct span model;
	const struct conf_target *conf; /* NULL: not of an entry */
	int64_t window, max_output;     /* tokens; 0 = unknown */
	const struct conf_cost *price;  /* NULL = none is configured */
	/* may a request go there now, and if not, why and until when (0 = nobody knows) */
	bool serves;
	const char *why;
	struct wall_ms until;
	struct target_row row; /* empty where nothing is known */
	struct target_sums sums;
	bool rests;
};

struct models_list_model {
	struct span name; /* MODELS_LIST_STORE: a caller's word */
	enum models_list_source source;
	const struct conf_model *conf; /* MODELS_LIST_TABLE */
	bool serves;                   /* some target does */
	size_t ntargets;
	struct models_list_target *targets;
};

struct models_list {
	size_t n;
	struct models_list_model *models;
};

/* For env_view(): begins anew with each run. */
struct models_list_job {
	const struct attach *attach;
	struct arena *arena;
	struct wall_ms now;
	struct models_list list; /* out */
};
env_fn models_list_in;

#endif
