#include "conf/conf_channel.h"

#include "base/regex.h"
#include "conf/conf_account.h"
#include "conf/conf_check.h"
#include "conf/expand.h"
#include "conf/setting.h"
#include "conf/url.h"

/* False, reported: it is not known, so what depends on it is not to be missed either. */
static bool
read_provider(struct load *load, const struct tree *node, struct conf_channel *ch)
{
	const struct tree *t = tree_member(node, SPAN("provider"));
	struct nearest nearest;
	struct span name;

	ch->provider = provider_at(PROVIDER_COMPATIBLE);
	if (t == NULL)
		return true;
	if (!setting_text(load, t, &name))
		return false;
	if (provider_find(name) != NULL) {
		ch->provider = provider_find(name);
		return true;
	}
	nearest_init(&nearest, t->text);
	for (enum provider_id id = 0; id < PROVIDER__MAX; id++)
		nearest_offer(&nearest, text_span(provider_at(id)->name));
	load_misnamed(load, t, "no known provider", &nearest);
	return false;
}

static void
read_base_url(struct load *load, const struct tree *node, struct conf_channel *ch, bool known)
{
	const struct tree *t = tree_member(node, SPAN("base_url"));
	struct why why;

	if (t == NULL && ch->provider->base_url == NULL && known)
		load_fault(load, node, "base_url", "is missing; provider '%s' has no default",
		    ch->provider->name);
	if (t == NULL) {
		ch->base_url = text_span(ch->provider->base_url);
		return;
	}
	if (t->type == TREE_STRING && ch->base_url.p != NULL &&
	    url_check(ch->base_url, ch->provider->id == PROVIDER_AZURE ? URL_CALL : URL_BASE,
	        &why) != ERR_OK)
		load_fault(load, t, NULL, "%s", why.text);
	ch->base_url = url_trim(ch->base_url);
}

/* On a host without zone files the provider's default must not stop the start. */
static void
default_zone(struct load *load, const struct tree *node, struct conf_channel *ch)
{
	const char *names[] = {ch->provider->timezone, ch->provider->utc_offset};
	struct why why;

	for (size_t i = 0; i < NELEM(names) && names[i] != NULL; i++) {
		struct span name = text_span(names[i]);

		if (zone_load(load->arena, name, NULL, &ch->policy.cooldown.zone, &why) != ERR_OK) {
			load_note(load, node, "cooldown.timezone", "%s", why.text);
			continue;
		}
		ch->policy.cooldown.timezone = name;
		return;
	}
}

static void
read_policy(struct load *load, const struct tree *node, struct conf_channel *ch)
{
	static const char *const sections[] = {
	    "upstream", "pool", "cooldown", "breaker", "channel_breaker"};
	struct setting_into into = {.group = OPTIONS_GLOBAL, .policy = &ch->policy};
	const struct tree *root = node->parent->parent;

	ch->policy = load->conf->policy;
	if (ch->provider->timezone != NULL && tree_at(root, "cooldown.timezone") == NULL &&
	    tree_at(node, "cooldown.timezone") == NULL)
		default_zone(load, node, ch);
	for (size_t i = 0; i < NELEM(sections); i++) {
		const struct tree *t = tree_member(node, text_span(sections[i]));

		if (t == NULL)
			continue;
		if (t->type == TREE_OBJECT)
			setting_read(load, t, &into, arena_print(load->work, "%s.", sections[i]));
		else
			setting_mistyped(load, t, "an object");
	}
	conf_check_policy(load, node, &ch->policy);
}

static void
check_regex(struct load *load, const struct tree *node, struct span text)
{
	char reason[160];

	if (text.n > 2 && text.p[0] == '/' && text.p[text.n - 1] == '/' &&
	    !regex_check((struct span){text.p + 1, text.n - 2}, reason, sizeof reason))
		load_fault(load, tree_member(node, SPAN("text")), NULL,
		    "is no regular expression: %s", reason);
}

static void
read_rule(struct load *load, const struct tree *node, struct conf_rule *rule)
{
	struct setting_into into = {.group = OPTIONS_RULE, .base = rule};

	if (node->type != TREE_OBJECT) {
		setting_mistyped(load, node, "an object");
		return;
	}
	setting_defaults(load, &into);
	setting_read(load, node, &into, "");
	if (tree_member(node, SPAN("kind")) == NULL)
		load_fault(load, node, "kind", "is missing");
	if (rule->status != 0 && rule->status < 100)
		load_fault(load, tree_member(node, SPAN("status")), NULL, "is no HTTP status");
	if (rule->status == 0 && rule->code.n + rule->type.n + rule->text.n + rule->header.n == 0)
		load_note(load, node, NULL, "matches every answer");
	check_regex(load, node, rule->text);
}

static void
read_rules(struct load *load, const struct tree *node, struct conf_channel *ch)
{
	const struct tree *list = tree_member(node, SPAN("rules"));

	if (list == NULL)
		return;
	if (list->type != TREE_ARRAY) {
		setting_mistyped(load, list, "a list");
		return;
	}
	ch->rules = arena_alloc(load->arena, (list->n + 1) * sizeof *ch->rules);
	for (const struct tree *t = list->first; t != NULL; t = t->next)
		read_rule(load, t, &ch->rules[ch->nrules++]);
}

static void
check_balance(struct load *load, const struct tree *node, const struct conf_channel *ch)
{
	const struct tree *balance = tree_member(node, SPAN("balance"));
	struct why why;

	if (ch->balance.url.n == 0)
		return;
	if (url_check(ch->balance.url, URL_CALL, &why) != ERR_OK)
		load_fault(load, tree_at(balance, "url"), NULL, "%s", why.text);
	if (ch->balance.credits.n == 0)
		load_fault(
		    load, balance, "credits", "is missing: where in the answer the credits stand");
	else if (ch->balance.credits.p[0] != '/')
		load_fault(load, tree_at(balance, "credits"), NULL, "must begin with '/'");
}

struct conf_channel *
conf_channel_named(struct load *load, const struct tree *node)
{
	const struct conf *conf = load->conf;
	struct conf_channel *ch;
	struct nearest nearest;
	struct span name;

	if (!setting_text(load, node, &name))
		return NULL;
	ch = conf_channel(conf, name);
	if (ch != NULL)
		return ch;
	nearest_init(&nearest, node->text);
	for (size_t i = 0; i < conf->nchannels; i++)
		nearest_offer(&nearest, conf->channels[i].name);
	load_misnamed(load, node, "no channel", &nearest);
	return NULL;
}

static void
add_fallback(struct load *load, const struct tree *t, struct conf_channel *ch)
{
	const struct conf_channel *to = conf_channel_named(load, t);

	if (to == NULL)
		return;
	if (to == ch) {
		load_fault(load, t, NULL, "channel '%s' names itself", ch->name.p);
		return;
	}
	for (size_t i = 0; i < ch->nfallback; i++)
		if (ch->fallback[i] == to->index) {
			load_note(load, t, NULL, "channel '%s' stands here twice", to->name.p);
			return;
		}
	ch->fallback[ch->nfallback++] = to->index;
}

static void
read_fallback(struct load *load, const struct tree *node, struct conf_channel *ch)
{
	const struct tree *list = tree_member(node, SPAN("fallback"));

	if (list == NULL)
		return;
	if (list->type != TREE_ARRAY) {
		setting_mistyped(load, list, "a list of channels");
		return;
	}
	ch->fallback = arena_alloc(load->arena, (list->n + 1) * sizeof *ch->fallback);
	for (const struct tree *t = list->first; t != NULL; t = t->next)
		add_fallback(load, t, ch);
}

static void
read_channel(struct load *load, const struct tree *node, struct conf_channel *ch)
{
	struct setting_into into = {.group = OPTIONS_CHANNEL, .base = ch};
	bool known;

	if (!setting_is_name(ch->name))
		load_fault(
		    load, node, NULL, "a channel's name must be 1 to 64 of A-Z a-z 0-9 . _ @ -");
	if (node->type != TREE_OBJECT) {
		setting_mistyped(load, node, "an object");
		return;
	}
	known = read_provider(load, node, ch);
	ch->wire = ch->provider->wire;
	setting_defaults(load, &into);
	setting_read(load, node, &into, "");
	read_base_url(load, node, ch, known);
	read_policy(load, node, ch);
	check_balance(load, node, ch);
	read_rules(load, node, ch);
	read_fallback(load, node, ch);
	conf_account_read_all(load, node, ch);
}

void
conf_channel_read_all(struct load *load, const struct tree *root)
{
	const struct tree *channels = tree_member(root, SPAN("channels"));
	struct conf *conf = load->conf;
	const struct tree **nodes;

	if (channels != NULL && channels->type != TREE_OBJECT) {
		setting_mistyped(load, channels, "an object");
		return;
	}
	if (channels == NULL || channels->n == 0) {
		load_note(load, channels == NULL ? root : channels, NULL,
		    "no channels: nothing can be served");
		return;
	}
	conf->channels = arena_alloc(load->arena, channels->n * sizeof *conf->channels);
	nodes = arena_alloc(load->work, channels->n * sizeof *nodes);
	for (const struct tree *t = channels->first; t != NULL; t = t->next) {
		size_t i = conf->nchannels;

		if (t->repeated)
			continue;
		nodes[i] = t;
		conf->channels[i] =
		    (struct conf_channel){.name = arena_copy(load->arena, t->key), .index = i};
		conf->nchannels++;
	}
	/* names first: a fallback may look ahead */
	for (size_t i = 0; i < conf->nchannels; i++)
		read_channel(load, nodes[i], &conf->channels[i]);
	conf_check_cycles(load, channels);
}
