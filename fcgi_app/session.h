/*
 * session - which conversation a request belongs to, as a keyed hash.
 *
 * The first of sticky.headers, then of sticky.keys in their order, then previous_response_id; what is empty or neither
 * text nor a number is absent. A metadata.user_id in one of Claude Code's two forms yields its session part.
 *
 * Hash      HMAC-SHA256 by the 32 bytes of state_dir/secret over client, NUL, kind, NUL, value; of a value of more than
 *           SESSION_VALUE_BYTES (an e-mail, a whole prompt) the SHA-256 stands for it, of its bytes as they are in the
 *           request. Only the hash is stored or logged, and no two clients have one in common.
 * Errors    ERR_STORE the secret cannot be made, or is not ours alone: the text says what to do
 * Source    SPEC.md section 11; formats.md C.12; cases.md STICK-06
 */
#ifndef SESSION_H
#define SESSION_H

#include "conf/conf.h"
#include "dialect/read.h"
#include "exchange.h"

#define SESSION_VALUE_BYTES 4096
#define SESSION_NAME_MAX 512 /* bytes of the name of a conversation that we keep */
#define SESSION_HASH_BYTES 32
#define SESSION_SECRET_BYTES 32

struct session_secret {
	uint8_t bytes[SESSION_SECRET_BYTES];
};

/* Where the name came from. The numbers and words are part of the hash. */
enum session_kind {
	SESSION_NONE = 0,
	SESSION_HEADER = 1,
	SESSION_BODY = 2,
	SESSION_RESPONSE =
	    3, /* previous_response_id, or the id of a response that may become one */
};

struct session_key {
	enum session_kind
	    kind; /* SESSION_NONE: the request names no conversation; the rest is zero */
	uint8_t hash[SESSION_HASH_BYTES];
	char brief[13]; /* the first 12 hex digits, for logs and people */
};

/* Read state_dir/secret; made by whoever comes first, atomically. Call it with the store open. */
enum err session_secret(
    const char *state_dir, struct session_secret *secret_out, struct why *why) MUST_CHECK;

/* What is asked for the key. */
struct session_source {
	const struct conf *conf;
	const struct exchange *x;
	const struct dialect_request *read; /* NULL: no body */
	struct span client;                 /* "" where nobody is told apart */
};
void session_key(const struct session_secret *secret, const struct session_source *from,
    struct arena *arena, struct session_key *key_out);

/* The key of a conversation whose name is known: a response's id, or what an operator typed (try each kind). */
void session_name(const struct session_secret *secret, struct span client, enum session_kind kind,
    struct span value, struct session_key *key_out);

#endif
