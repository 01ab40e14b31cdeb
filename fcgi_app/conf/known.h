/*
 * known - what is known of a model by its name: window, limit, price. Pure.
 *
 * Names     matched exactly, then without a date at the end (-YYYYMMDD, -YYYY-MM-DD), then both without what stands before
 *           the first '/', and so on behind each further '/'. A nearer name wins; of one name, an entry of `models` wins
 *           over models_file.
 * Unknown   is 0 for tokens and a cost that is not given: never a price of 0, which is free
 * Source    SPEC.md sections 3, 14; formats.md H.5
 */
#ifndef CONF_KNOWN_H
#define CONF_KNOWN_H

#include "conf/conf.h"

/* As known_fact() wants them. */
void known_sort(struct conf_fact *facts, size_t n);
/* What models_file says of this name or of one that it matches, or NULL. */
const struct conf_fact *known_fact(const struct conf *conf, struct span model);

/*
 * What a model on a channel charges: the price of a target there of exactly this name, whatever entry it stands in, else
 * what is known of the name; NULL = unknown. Lives as long as `conf`.
 */
const struct conf_cost *known_price(const struct conf *conf, size_t channel, struct span model);

/*
 * A model on a channel as a target. `entry`, the one that the request asked for, may be NULL, or have no target there: the
 * rest is then what is known of the name, with weight 1, no tasks, and the defaults of an entry of exactly this name.
 */
struct conf_target known_target(
    const struct conf *conf, const struct conf_model *entry, size_t channel, struct span model);

#endif
