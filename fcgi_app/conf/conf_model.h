/*
 * conf_model - the models that clients may ask for, and the tasks that lead to them.
 *
 * What a target lacks comes from the entry of its own model name, then from the entry that it stands in. A field that
 * is written counts as there, whatever its value.
 *
 * Source    SPEC.md sections 3, 12
 */
#ifndef CONF_CONF_MODEL_H
#define CONF_CONF_MODEL_H

#include "conf/load.h"

/* The channels are read already. */
void conf_model_read_all(struct load *load, const struct tree *root);
void conf_model_read_tasks(struct load *load, const struct tree *root);

#endif
