#include "conf/conf_account.h"

#include "base/digest.h"
#include "conf/expand.h"
#include "conf/setting.h"
#include "conf/url.h"
#include "conf/wipe.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where an account was read, for messages after the file has been left. */
struct place {
	const struct conf_account *account;
	const struct tree *node;
	const char *file;
};

static bool
has_control(struct span text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
			return true;
	return false;
}

static void
set_key(struct load *load, struct conf_account *account, struct span key)
{
	unsigned char digest[DIGEST_BYTES];

	digest_sha256(key, digest);
	memcpy(account->fingerprint, digest, sizeof account->fingerprint);
	account->key = (struct secret){wipe_copy(load->arena, key)};
}

static void
read_key(struct load *load, const struct tree *node, const struct conf_channel *ch,
    struct conf_account *account)
{
	const struct tree *t = tree_member(node, SPAN("api_key"));
	struct span key;

	if (t == NULL) {
		if (ch->provider->id != PROVIDER_COMPATIBLE)
			load_fault(load, node, "api_key", "is missing; provider '%s' needs one",
			    ch->provider->name);
		return;
	}
	load->holds_keys = true;
	if (t->type != TREE_STRING) {
		setting_mistyped(load, t, "a string");
		return;
	}
	if (!expand_node(load, t, EXPAND_SECRET, &key))
		return;
	key = text_trim(key);
	if (key.n == 0)
		load_fault(load, t, NULL, "is empty%s",
		    ch->provider->id == PROVIDER_COMPATIBLE
		        ? "; leave it out where the server needs no key"
		        : "");
	else if (has_control(key))
		load_fault(load, t, NULL, "holds a control character");
	else
		set_key(load, account, key);
}

static bool
is_token(struct span name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = text_lower(name.p[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
		    (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
			return false;
	}
	return name.n > 0;
}

/* Those that say where a message begins and ends are the transport's own. */
static bool
is_reserved(struct span name)
{
	static const char *const reserved[] = {"connection", "content-length", "expect", "host",
	    "te", "trailer", "transfer-encoding", "upgrade"};

	for (size_t i = 0; i < NELEM(reserved); i++)
		if (text_is_fold(name, reserved[i]))
			return true;
	return false;
}

static void
read_header(struct load *load, const struct tree *t, struct conf_header *header)
{
	struct span value;

	if (!is_token(t->key)) {
		load_fault(load, t, NULL, "is no name of a header");
	} else if (is_reserved(t->key)) {
		load_fault(load, t, NULL, "this header is not for the configuration to set");
	} else if (t->type != TREE_STRING) {
		setting_mistyped(load, t, "a string");
	} else if (expand_node(load, t, EXPAND_SECRET, &value)) {
		value = text_trim(value);
		if (has_control(value))
			load_fault(load, t, NULL, "holds a control character");
		header->name = arena_copy(load->arena, t->key);
		header->value = wipe_copy(load->arena, value);
	}
}

static void
read_headers(struct load *load, const struct tree *node, struct conf_account *account)
{
	const struct tree *headers = tree_member(node, SPAN("headers"));

	if (headers == NULL)
		return;
	if (headers->type != TREE_OBJECT) {
		setting_mistyped(load, headers, "an object");
		return;
	}
	account->headers = arena_alloc(load->arena, (headers->n + 1) * sizeof *account->headers);
	for (const struct tree *t = headers->first; t != NULL; t = t->next)
		if (!t->repeated)
			read_header(load, t, &account->headers[account->nheaders++]);
}

static void
check_names(struct load *load, const struct tree *node, const struct conf_account *account)
{
	const struct tree *id = tree_member(node, SPAN("id"));
	const struct tree *realm = tree_member(node, SPAN("realm"));
	const struct tree *proxy = tree_member(node, SPAN("proxy"));
	struct why why;

	if (id == NULL)
		load_fault(load, node, "id", "is missing");
	else if (id->type == TREE_STRING && !setting_is_name(account->id))
		load_fault(load, id, NULL, "must be 1 to 64 of A-Z a-z 0-9 . _ @ -");
	if (account->realm.n > 0 && !setting_is_name(account->realm))
		load_fault(load, realm, NULL, "must be 1 to 64 of A-Z a-z 0-9 . _ @ -");
	if (account->proxy.n > 0 && url_check(account->proxy, URL_PROXY, &why) != ERR_OK)
		load_fault(load, proxy, NULL, "%s", why.text);
}

static void
read_account(struct load *load, const struct tree *node, const struct conf_channel *ch,
    struct conf_account *account)
{
	struct setting_into into = {.group = OPTIONS_ACCOUNT, .base = account};

	if (node->type != TREE_OBJECT) {
		setting_mistyped(load, node, "an object");
		return;
	}
	setting_defaults(load, &into);
	account->max_in_flight = ch->policy.pool.max_in_flight;
	setting_read(load, node, &into, "");
	account->has_credits = tree_member(node, SPAN("credits")) != NULL;
	check_names(load, node, account);
	read_key(load, node, ch, account);
	read_headers(load, node, account);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of its *.json, sorted, in the work memory. */
static char **
list_files(struct load *load, const struct tree *node, const char *dir, size_t *n_out)
{
	DIR *d = opendir(dir);
	char **names = NULL;
	size_t n = 0, cap = 0;

	*n_out = 0;
	if (d == NULL && errno == ENOENT) {
		load_note(load, node, NULL, "directory '%s' is not there (yet)", dir);
		return NULL;
	}
	if (d == NULL) {
		load_fault(
		    load, node, NULL, "cannot read directory '%s': %s", dir, strerror(errno));
		return NULL;
	}
	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
		struct span name = text_span(e->d_name);

		if (name.p[0] == '.' || !text_ends(name, ".json"))
			continue;
		if (n == cap) {
			char **more = arena_alloc(load->work, (cap * 2 + 16) * sizeof *more);

			if (n > 0)
				memcpy(more, names, n * sizeof *more);
			names = more;
			cap = cap * 2 + 16;
		}
		names[n++] = arena_print(load->work, "%s/%s", dir, e->d_name);
	}
	closedir(d);
	if (n > 1)
		qsort(names, n, sizeof *names, by_name);
	*n_out = n;
	return names;
}

/* One file of accounts_dir. */
static void
read_file(struct load *load, const char *path, const struct conf_channel *ch,
    struct conf_account *account, struct place *place)
{
	const char *file = load->file;
	bool holds_keys = load->holds_keys;
	struct source *source;
	const struct tree *root = load_file(load, arena_z(load->arena, text_span(path)), &source);

	if (root != NULL) {
		read_account(load, root, ch, account);
		load_private(load, source);
		*place = (struct place){account, root, load->file};
	}
	load->file = file;
	load->holds_keys = holds_keys;
}

static int
by_id(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	struct span i = x->account->id, j = y->account->id;
	size_t n = i.n < j.n ? i.n : j.n;
	int order = n == 0 ? 0 : memcmp(i.p, j.p, n);

	if (order != 0)
		return order;
	if (i.n != j.n)
		return i.n < j.n ? -1 : 1;
	return x->account < y->account ? -1 : 1;
}

static void
check_unique(struct load *load, struct place *places, size_t n)
{
	const char *file = load->file;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (places[i].node != NULL && places[i].account->id.n > 0)
			places[kept++] = places[i];
	if (kept > 1)
		qsort(places, kept, sizeof *places, by_id);
	for (size_t i = 1; i < kept; i++) {
		struct span id = places[i].account->id;

		if (!text_equal(id, places[i - 1].account->id))
			continue;
		load->file = places[i].file;
		load_fault(load, places[i].node, "id",
		    "'%.*s' is taken by the account in %s, line %zu", (int)id.n, id.p,
		    places[i - 1].file, places[i - 1].node->line);
	}
	load->file = file;
}

void
conf_account_read_all(struct load *load, const struct tree *node, struct conf_channel *ch)
{
	const struct tree *list = tree_member(node, SPAN("accounts")), *t = NULL;
	size_t inlined = 0, nfiles = 0, n = 0;
	struct place *places;
	char **files = NULL;

	if (list != NULL && list->type != TREE_ARRAY) {
		setting_mistyped(load, list, "a list");
	} else if (list != NULL) {
		inlined = list->n;
		t = list->first;
	}
	if (ch->accounts_dir.n > 0) {
		/* looked at before it is listed, so that what comes in between shows as a change */
		load_add_source(load, source_note(load->arena, ch->accounts_dir.p));
		files = list_files(
		    load, tree_member(node, SPAN("accounts_dir")), ch->accounts_dir.p, &nfiles);
	}
	ch->accounts = arena_alloc(load->arena, (inlined + nfiles + 1) * sizeof *ch->accounts);
	places = arena_alloc(load->work, (inlined + nfiles + 1) * sizeof *places);
	for (; t != NULL; t = t->next, n++) {
		read_account(load, t, ch, &ch->accounts[n]);
		places[n] = (struct place){&ch->accounts[n], t, load->file};
	}
	for (size_t i = 0; i < nfiles; i++, n++)
		read_file(load, files[i], ch, &ch->accounts[n], &places[n]);
	ch->naccounts = n;
	ch->naccounts_inline = inlined;
	if (n == 0)
		load_note(load, node, NULL, "has no accounts, so that it cannot serve");
	check_unique(load, places, n);
}
