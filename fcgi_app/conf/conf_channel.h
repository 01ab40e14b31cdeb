/*
 * conf_channel - the channels of a configuration, each with its merged policy, rules and fallback.
 */
#ifndef CONF_CONF_CHANNEL_H
#define CONF_CONF_CHANNEL_H

#include "conf/load.h"

/* The global settings are read already. */
void conf_channel_read_all(struct load *load, const struct tree *root);

/* The channel that a string node names, or NULL, reported with the nearest name. */
struct conf_channel *conf_channel_named(struct load *load, const struct tree *node);

#endif
