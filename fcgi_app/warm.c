#include "warm.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define NAME "localhost"
#define LIFE_S 3600
#define TURNS 10 /* a handshake takes three */

/* Who the server is, and who is trusted: the same. */
struct self {
	EVP_PKEY *key;
	X509 *cert;
	X509_STORE *store;
};

static bool
add_name(X509 *cert)
{
	X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:" NAME);
	X509_NAME *name = X509_get_subject_name(cert);
	bool good = names != NULL && X509_add_ext(cert, names, -1) == 1 &&
	            X509_NAME_add_entry_by_txt(
	                name, "CN", MBSTRING_ASC, (const unsigned char *)NAME, -1, -1, 0) == 1 &&
	            X509_set_issuer_name(cert, name) == 1;

	X509_EXTENSION_free(names);
	return good;
}

static bool
make_self(struct self *self)
{
	self->key = EVP_EC_gen("P-256");
	self->cert = X509_new();
	self->store = X509_STORE_new();
	return self->key != NULL && self->cert != NULL && self->store != NULL &&
	       X509_set_version(self->cert, X509_VERSION_3) == 1 &&
	       ASN1_INTEGER_set(X509_get_serialNumber(self->cert), 1) == 1 &&
	       X509_gmtime_adj(X509_getm_notBefore(self->cert), -LIFE_S) != NULL &&
	       X509_gmtime_adj(X509_getm_notAfter(self->cert), LIFE_S) != NULL &&
	       X509_set_pubkey(self->cert, self->key) == 1 && add_name(self->cert) &&
	       X509_sign(self->cert, self->key, EVP_sha256()) > 0 &&
	       X509_STORE_add_cert(self->store, self->cert) == 1;
}

static void
free_self(struct self *self)
{
	EVP_PKEY_free(self->key);
	X509_free(self->cert);
	X509_STORE_free(self->store);
}

/* Nobody is found there; looking sorts the store. */
static void
search(X509_STORE *store, X509 *cert)
{
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();

	if (ctx != NULL && X509_STORE_CTX_init(ctx, store, cert, NULL) == 1)
		X509_verify_cert(ctx);
	X509_STORE_CTX_free(ctx);
}

static bool
talk(SSL *client, SSL *server)
{
	char bytes[16];
	BIO *a, *b;

	if (BIO_new_bio_pair(&a, 0, &b, 0) != 1)
		return false;
	SSL_set_bio(client, a, a);
	SSL_set_bio(server, b, b);
	for (int i = 0;
	     i < TURNS && !(SSL_is_init_finished(client) && SSL_is_init_finished(server)); i++) {
		SSL_connect(client);
		SSL_accept(server);
	}
	return SSL_write(client, "GET", 3) == 3 && SSL_read(server, bytes, sizeof bytes) == 3 &&
	       SSL_write(server, "200", 3) == 3 && SSL_read(client, bytes, sizeof bytes) == 3;
}

/* As libcurl sets a client up. */
static bool
handshake(struct self *self, int version)
{
	SSL_CTX *here = SSL_CTX_new(TLS_client_method()), *there = SSL_CTX_new(TLS_server_method());
	SSL *client = NULL, *server = NULL;
	char name[] = NAME;
	bool good = here != NULL && there != NULL &&
	            SSL_CTX_use_certificate(there, self->cert) == 1 &&
	            SSL_CTX_use_PrivateKey(there, self->key) == 1 &&
	            SSL_CTX_set_max_proto_version(there, version) == 1;

	if (good) {
		SSL_CTX_set_verify(here, SSL_VERIFY_PEER, NULL);
		SSL_CTX_set1_cert_store(here, self->store);
		client = SSL_new(here);
		server = SSL_new(there);
		good = client != NULL && server != NULL &&
		       SSL_set_tlsext_host_name(client, name) == 1 &&
		       SSL_set1_host(client, name) == 1 && talk(client, server);
	}
	SSL_free(client);
	SSL_free(server);
	SSL_CTX_free(here);
	SSL_CTX_free(there);
	return good;
}

bool
warm_tls(void *store)
{
	struct self self = {NULL, NULL, NULL};
	bool good = make_self(&self);

	if (good) {
		search(store, self.cert);
		good = handshake(&self, TLS1_3_VERSION) && handshake(&self, TLS1_2_VERSION);
	}
	free_self(&self);
	ERR_clear_error();
	return good;
}
