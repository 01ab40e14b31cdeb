#include "trust.h"

#include "warm.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include <stdlib.h>

/* One store per distinct ca_file; "" is the system's. */
struct entry {
	struct span ca_file;
	X509_STORE *store;
};

struct trust {
	struct entry *entries;
	size_t n;
};

static enum err
load_store(struct span ca_file, X509_STORE **store_out, struct why *why)
{
	static const char *const bundles[] = {"/etc/ssl/certs/ca-certificates.crt",
	    "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"};
	X509_STORE *store = X509_STORE_new();
	bool loaded = false;

	if (store == NULL)
		die("no memory for a trust store");
	if (ca_file.n > 0) {
		loaded = X509_STORE_load_file(store, ca_file.p) == 1;
	} else {
		for (size_t i = 0; i < NELEM(bundles) && !loaded; i++)
			loaded = X509_STORE_load_file(store, bundles[i]) == 1;
		if (!loaded)
			loaded = X509_STORE_set_default_paths(store) == 1;
	}
	ERR_clear_error();
	if (!loaded) {
		X509_STORE_free(store);
		err_why(why, "cannot load certificates from '%s'; see upstream.ca_file",
		    ca_file.n > 0 ? ca_file.p : "the system's trust store");
		return ERR_CONFIG;
	}
	*store_out = store;
	return ERR_OK;
}

static const struct entry *
find(const struct trust *trust, struct span ca_file)
{
	for (size_t i = 0; i < trust->n; i++)
		if (text_equal(trust->entries[i].ca_file, ca_file))
			return &trust->entries[i];
	return NULL;
}

/* The store of `ca_file`, if the address needs one and it is not there yet. */
static enum err
add(struct trust *trust, struct span address, struct span ca_file, struct why *why)
{
	X509_STORE *store;
	enum err err;

	if (!text_starts_fold(address, "https:") || find(trust, ca_file) != NULL)
		return ERR_OK;
	err = load_store(ca_file, &store, why);
	if (err == ERR_OK)
		trust->entries[trust->n++] = (struct entry){ca_file, store};
	return err;
}

enum err
trust_load(const struct conf *conf, struct trust **trust_out, struct why *why)
{
	struct trust *trust = calloc(1, sizeof *trust);
	enum err err;

	if (trust == NULL)
		die("no memory");
	trust->entries = calloc(conf->nchannels + 1, sizeof *trust->entries);
	if (trust->entries == NULL)
		die("no memory");
	err = add(trust, conf->alerts.url, conf->policy.upstream.ca_file, why);
	for (size_t i = 0; i < conf->nchannels && err == ERR_OK; i++) {
		const struct conf_channel *channel = &conf->channels[i];
		struct span ca_file = channel->policy.upstream.ca_file;

		err = add(trust, channel->base_url, ca_file, why);
		if (err == ERR_OK)
			err = add(trust, channel->balance.url, ca_file, why);
	}
	if (err != ERR_OK) {
		trust_free(&trust);
		return err;
	}
	if (trust->n > 0)
		warm_tls(trust->entries[0].store);
	*trust_out = trust;
	return ERR_OK;
}

void
trust_free(struct trust **trust)
{
	if (*trust == NULL)
		return;
	for (size_t i = 0; i < (*trust)->n; i++)
		X509_STORE_free((*trust)->entries[i].store);
	free((*trust)->entries);
	free(*trust);
	*trust = NULL;
}

void *
trust_store(const struct trust *trust, struct span ca_file)
{
	const struct entry *entry = find(trust, ca_file);

	return entry == NULL ? NULL : entry->store;
}
