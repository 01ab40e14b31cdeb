/*
 * conf_account - the accounts of a channel: those of the file, then each *.json of its accounts_dir, by name.
 */
#ifndef CONF_CONF_ACCOUNT_H
#define CONF_CONF_ACCOUNT_H

#include "conf/load.h"

/* `node` is the channel's object; the channel's own settings and policy are read already. */
void conf_account_read_all(struct load *load, const struct tree *node, struct conf_channel *ch);

#endif
