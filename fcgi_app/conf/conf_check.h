/*
 * conf_check - what no single row of the option table can say: settings that must fit each other or the outside.
 */
#ifndef CONF_CONF_CHECK_H
#define CONF_CONF_CHECK_H

#include "conf/load.h"

/* The sections outside of channels and models. */
void conf_check_global(struct load *load, const struct tree *root);
/*
 * A policy, as far as the sections below `node` (the root or a channel) wrote it. Of two settings of which one must not be
 * above the other, one that is not written there follows the one that is.
 */
void conf_check_policy(struct load *load, const struct tree *node, struct conf_policy *policy);
/* Note each fallback chain that comes back to where it began; that is legal. */
void conf_check_cycles(struct load *load, const struct tree *channels);

#endif
