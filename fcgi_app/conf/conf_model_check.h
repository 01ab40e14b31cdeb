/*
 * conf_model_check - does the table of models hold together, and can it be served?
 *
 * Faults    what can only be a mistake: a target twice in an entry, weights that leave nobody to draw, names in routing.tasks,
 *           routing.classifier and context.summary_model that nobody serves
 * Notes     what works, but hardly as it was meant: a target that its channel or its accounts do not list, a strategy by
 *           tasks where no target has any
 * Source    SPEC.md sections 3, 12, 13
 */
#ifndef CONF_CONF_MODEL_CHECK_H
#define CONF_CONF_MODEL_CHECK_H

#include "conf/load.h"

/* One entry, whole and without a fault in its targets; `node` is its object. */
void conf_model_check(struct load *load, const struct tree *node, const struct conf_model *model);
/* Where models are named outside of `models`, and settings of `context` that must fit each other. */
void conf_model_check_uses(struct load *load, const struct tree *root);

#endif
