/*
 * address - from a channel's base_url and a path of the API to the URL that is called.
 *
 * Most      base_url, then the path; nothing is ever put between them
 * Azure     has two forms. The newer one ends in /openai/v1 (put there where base_url is a bare host or
 *           ends in /openai). The classic one is meant where base_url names a deployment
 *           (/openai/deployments/NAME) or has a query with an api-version: the deployment is that NAME, else
 *           the model, and the query, api-version with it, goes behind the path.
 * Model     is the client's: only letters, digits, '-', '.', '_' and '~' of it stand as they are
 * Source    formats.md 0.5, D.7, D.10; cases.md HDR-16
 */
#ifndef ADDRESS_H
#define ADDRESS_H

#include "base/arena.h"
#include "conf/conf.h"

/* `path` begins with a slash. */
char *address_join(
    struct arena *arena, const struct conf_channel *channel, const char *path, struct span model);

#endif
