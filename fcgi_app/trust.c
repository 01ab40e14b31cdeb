#include "trust.h"

#include "warm.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One store per distinct ca_file; "" is the system's. */
struct entry {
	struct span ca_file;
	X509_STORE *store;
};

struct trust {
	struct entry *entries;
	size_t n;
	bool later; /* a store is loaded when it is asked for */
};

static const char *const bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"};

/* OpenSSL is content with places where there is nothing; each call would fail later. */
static bool
has_default(void)
{
	const char *file = getenv(X509_get_default_cert_file_env());
	const char *dir = getenv(X509_get_default_cert_dir_env());

	for (size_t i = 0; i < NELEM(bundles); i++)
		if (access(bundles[i], R_OK) == 0)
			return true;
	return access(file != NULL ? file : X509_get_default_cert_file(), R_OK) == 0 ||
	       access(dir != NULL ? dir : X509_get_default_cert_dir(), R_OK | X_OK) == 0;
}

static enum err
cannot_load(struct span ca_file, struct why *why)
{
	if (ca_file.n > 0)
		err_why(why, "cannot load certificates from upstream.ca_file '%s'", ca_file.p);
	else
		err_why(why,
		    "no certificates for https: install ca-certificates, or name a file of them in "
		    "upstream.ca_file");
	return ERR_CONFIG;
}

static enum err
load_store(struct span ca_file, X509_STORE **store_out, struct why *why)
{
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
			loaded = has_default() && X509_STORE_set_default_paths(store) == 1;
	}
	ERR_clear_error();
	if (!loaded) {
		X509_STORE_free(store);
		return cannot_load(ca_file, why);
	}
	*store_out = store;
	return ERR_OK;
}

/* Names like 5ed36f99.0: certificates that are found one by one, without reading all. */
static bool
is_hashed(const char *name)
{
	return strlen(name) == 10 && strspn(name, "0123456789abcdef") == 8 &&
	       strcmp(name + 8, ".0") == 0;
}

static bool
has_hashed(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	bool found = false;

	while (dir != NULL && !found && (e = readdir(dir)) != NULL)
		found = is_hashed(e->d_name);
	if (dir != NULL)
		closedir(dir);
	return found;
}

static X509_STORE *
hashed_store(void)
{
	static const char path[] = "/etc/ssl/certs";
	X509_STORE *store = has_hashed(path) ? X509_STORE_new() : NULL;

	if (store != NULL && X509_STORE_load_path(store, path) != 1) {
		X509_STORE_free(store);
		store = NULL;
	}
	ERR_clear_error();
	return store;
}

static struct entry *
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
	X509_STORE *store = NULL;
	enum err err = ERR_OK;

	if (!text_starts_fold(address, "https:") || find(trust, ca_file) != NULL)
		return ERR_OK;
	if (!trust->later)
		err = load_store(ca_file, &store, why);
	else if (ca_file.n > 0 ? access(ca_file.p, R_OK) != 0 : !has_default())
		err = cannot_load(ca_file, why);
	if (err == ERR_OK)
		trust->entries[trust->n++] = (struct entry){ca_file, store};
	return err;
}

static enum err
gather(const struct conf *conf, bool later, struct trust **trust_out, struct why *why)
{
	struct trust *trust = calloc(1, sizeof *trust);
	enum err err;

	if (trust == NULL)
		die("no memory");
	trust->later = later;
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
	*trust_out = trust;
	return ERR_OK;
}

enum err
trust_load(const struct conf *conf, struct trust **trust_out, struct why *why)
{
	return gather(conf, false, trust_out, why);
}

enum err
trust_later(const struct conf *conf, struct trust **trust_out, struct why *why)
{
	return gather(conf, true, trust_out, why);
}

void
trust_warm(const struct trust *trust)
{
	for (size_t i = 0; i < trust->n; i++)
		warm_tls(trust->entries[i].store);
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
	struct entry *entry = find(trust, ca_file);
	struct why why;

	if (entry == NULL)
		return NULL;
	if (entry->store == NULL && ca_file.n == 0)
		entry->store = hashed_store();
	if (entry->store == NULL && load_store(ca_file, &entry->store, &why) != ERR_OK)
		return NULL; /* nothing is trusted then */
	return entry->store;
}
