/*
 * conf_fact - what is known of models by their names: models_file, an object of names with windows, limits and prices.
 *
 * It is read like the configuration, and a change of it is a change of the configuration. It names no channels: what a
 * target and its entries do not say is taken from it.
 *
 * Source    SPEC.md section 3; formats.md H
 */
#ifndef CONF_CONF_FACT_H
#define CONF_CONF_FACT_H

#include "conf/load.h"

/* The global settings are read already. */
void conf_fact_read_all(struct load *load);

/*
 * What the table says of prices and sizes in any object that may hold them: a model's entry, a target, a fact. `cost` was
 * read already; where the object has none it stays not given.
 */
void conf_fact_finish_cost(struct load *load, const struct tree *node, struct conf_cost *cost);
/* Faults: a window in which no message fits, an answer larger than the window. Each only where `node` writes it. */
void conf_fact_check_sizes(
    struct load *load, const struct tree *node, int64_t context_window, int64_t *max_output);

#endif
