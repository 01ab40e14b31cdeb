#include "conf/conf_check.h"

#include "conf/claim.h"
#include "conf/url.h"

#include <string.h>

static void
check_url(
    struct load *load, const struct tree *root, const char *path, struct span url, enum url_use use)
{
	struct why why;

	if (url.n > 0 && url_check(url, use, &why) != ERR_OK)
		load_fault(load, tree_at(root, path), NULL, "%s", why.text);
}

/*
 * One that must not be above another. Where only one of them is written below `node`, the other, a default or taken over,
 * follows it.
 */
struct order {
	const char *small, *large;
	int64_t *a, *b;
};

static void
check_order(struct load *load, const struct tree *node, const struct order *order)
{
	const struct tree *t = tree_at(node, order->small), *u = tree_at(node, order->large);

	if (*order->a <= *order->b || (t == NULL && u == NULL))
		return;
	if (t != NULL && u != NULL)
		load_fault(load, t, NULL, "must not be above %s", order->large);
	else if (t != NULL)
		*order->b = *order->a;
	else
		*order->a = *order->b;
}

static void
check_server(struct load *load, const struct tree *root)
{
	struct conf *conf = load->conf;
	const struct order workers = {"server.workers_min", "server.workers_max",
	    &conf->server.workers_min, &conf->server.workers_max};
	struct span *mount = &conf->server.mount;
	const struct tree *origins = tree_at(root, "server.cors_origins");
	const struct tree *t = origins == NULL ? NULL : origins->first;

	check_order(load, root, &workers);
	*mount = url_trim(*mount);
	if (mount->n > 0 && mount->p[0] != '/')
		load_fault(load, tree_at(root, "server.mount"), NULL, "must begin with '/'");
	for (size_t i = 0; i < conf->server.cors_origins.n && t != NULL; i++, t = t->next) {
		struct span origin = conf->server.cors_origins.at[i];
		struct why why = {"must be scheme://host or scheme://host:port, nothing after it"};
		size_t host = text_find(origin, SPAN("://")) + 3;

		if (text_is(origin, "*"))
			continue;
		if (url_check(origin, URL_BASE, &why) != ERR_OK ||
		    text_find(text_from(origin, host), SPAN("/")) < text_from(origin, host).n)
			load_fault(load, t, NULL, "%s", why.text);
	}
}

static void
check_auth(struct load *load, const struct tree *root)
{
	const struct conf *conf = load->conf;
	const struct tree *list = tree_at(root, "auth.user_variables");
	const struct tree *t = list == NULL ? NULL : list->first;

	if (conf->auth.mode == CONF_AUTH_WEB_SERVER && conf->auth.user_variables.n == 0)
		load_fault(load, list, NULL,
		    "must not be empty with mode 'web-server': nobody could call");
	if (conf->auth.mode == CONF_AUTH_KEYS && conf->auth.keys_file.n == 0)
		load_fault(load, tree_at(root, "auth.keys_file"), NULL,
		    "must not be empty with mode 'keys': nobody could call");
	for (size_t i = 0; i < conf->auth.user_variables.n && t != NULL; i++, t = t->next)
		if (claim_is_clients(conf->auth.user_variables.at[i]))
			load_fault(load, t, NULL,
			    "a client chooses what is in it; headers (HTTP_...) prove nothing");
}

/* host:port */
static void
check_statsd(struct load *load, const struct tree *root)
{
	struct span where = load->conf->metrics.statsd;
	size_t colon = where.n;
	int64_t port;

	while (colon > 0 && where.p[colon - 1] != ':')
		colon--;
	if (where.n > 0 && (colon < 2 || !text_i64(text_from(where, colon), 1, 65535, &port)))
		load_fault(load, tree_at(root, "metrics.statsd"), NULL, "must be host:port");
}

static void
place_log(struct load *load, const struct tree *root)
{
	struct span *target = &load->conf->log.target;

	if (target->n == 0)
		load_fault(load, tree_at(root, "log.target"), NULL, "is empty");
	else if (!text_is(*target, "stderr") && !text_is(*target, "syslog"))
		*target = text_span(load_path(load, *target));
}

void
conf_check_global(struct load *load, const struct tree *root)
{
	struct conf *conf = load->conf;
	const struct order kept = {"context.max_session", "context.max_total",
	    &conf->context.max_session_bytes, &conf->context.max_total_bytes};

	check_server(load, root);
	check_auth(load, root);
	check_statsd(load, root);
	place_log(load, root);
	if (conf->state_dir.n == 0)
		load_fault(load, tree_at(root, "state_dir"), NULL, "is empty");
	check_order(load, root, &kept);
	check_url(load, root, "alerts.url", conf->alerts.url, URL_CALL);
	check_url(load, root, "redis.url", conf->redis.url, URL_REDIS);
	conf_check_policy(load, root, &conf->policy);
}

void
conf_check_policy(struct load *load, const struct tree *node, struct conf_policy *policy)
{
	const struct order pairs[] = {
	    {"upstream.retry_backoff", "upstream.retry_backoff_max",
	        &policy->upstream.retry_backoff_ms, &policy->upstream.retry_backoff_max_ms},
	    {"cooldown.soft_rate", "cooldown.soft_rate_max", &policy->cooldown.soft_rate_ms,
	        &policy->cooldown.soft_rate_max_ms},
	    {"channel_breaker.half_open_success", "channel_breaker.half_open_requests",
	        &policy->channel_breaker.half_open_success,
	        &policy->channel_breaker.half_open_requests},
	};

	for (size_t i = 0; i < NELEM(pairs); i++)
		check_order(load, node, &pairs[i]);
	if (tree_at(node, "upstream.proxy") != NULL)
		check_url(load, node, "upstream.proxy", policy->upstream.proxy, URL_PROXY);
}

/* Breadth first from `start` over channels that are not before it; from[i] is 1 + where i was reached from. */
static bool
find_cycle(const struct conf *conf, size_t start, size_t *queue, size_t *from)
{
	size_t head = 0, tail = 0;

	memset(from, 0, conf->nchannels * sizeof *from);
	queue[tail++] = start;
	while (head < tail) {
		size_t at = queue[head++];
		const struct conf_channel *ch = &conf->channels[at];

		for (size_t i = 0; i < ch->nfallback; i++) {
			size_t to = ch->fallback[i];

			if (to < start || from[to] != 0)
				continue;
			from[to] = at + 1;
			if (to == start)
				return true;
			queue[tail++] = to;
		}
	}
	return false;
}

static void
note_cycle(struct load *load, const struct tree *channels, size_t start, const size_t *from)
{
	const struct conf *conf = load->conf;
	const struct tree *node = tree_member(channels, conf->channels[start].name);
	char *chain = arena_print(load->work, "%s", conf->channels[start].name.p);
	size_t at = start;

	do {
		at = from[at] - 1;
		chain = arena_print(load->work, "%s -> %s", conf->channels[at].name.p, chain);
	} while (at != start);
	load_note(load, tree_member(node, SPAN("fallback")), NULL,
	    "cycle %s: legal, each channel is visited once per request", chain);
}

void
conf_check_cycles(struct load *load, const struct tree *channels)
{
	const struct conf *conf = load->conf;
	size_t *queue = arena_alloc(load->work, (conf->nchannels + 1) * sizeof *queue);
	size_t *from = arena_alloc(load->work, (conf->nchannels + 1) * sizeof *from);

	for (size_t i = 0; i < conf->nchannels; i++)
		if (conf->channels[i].nfallback > 0 && find_cycle(conf, i, queue, from))
			note_cycle(load, channels, i, from);
}
