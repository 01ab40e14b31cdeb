/*
 * warm - makes OpenSSL do everything once before the fork: a TLS handshake with itself, in memory.
 *
 * What a library fetches, builds and sorts at its first use is written once by the parent and shared by all workers;
 * else each writes it into memory of its own. The key and the certificate are made here and thrown away.
 *
 * Source    hosting.md 9
 */
#ifndef WARM_H
#define WARM_H

#include <stdbool.h>

/*
 * A handshake of TLS 1.3 and one of 1.2; the trust store (an X509_STORE) is searched as a connection would search it.
 * False: it did not come about. Nothing is broken then, workers only take more memory.
 */
bool warm_tls(void *store);

#endif
