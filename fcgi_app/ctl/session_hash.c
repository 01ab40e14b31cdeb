#include "ctl/session_hash.h"

#include <string.h>

#define HEX_MIN 6 /* fewer digits would rather be a slip */

void
session_hash_hex(const uint8_t hash[SESSION_HASH_BYTES], char out[SESSION_HASH_HEX + 1])
{
	text_hex(hash, SESSION_HASH_HEX, out);
	out[SESSION_HASH_HEX] = '\0';
}

bool
session_hash_prefix(
    struct ctl *ctl, const char *typed, const char *list, char prefix_out[SESSION_HASH_HEX + 1])
{
	size_t n = strlen(typed);

	if (n >= HEX_MIN && n <= SESSION_HASH_HEX) {
		for (size_t i = 0; i <= n; i++)
			prefix_out[i] = text_lower(typed[i]);
		if (strspn(prefix_out, "0123456789abcdef") == n)
			return true;
	}
	fprintf(ctl->err,
	    "sluicectl: '%s' is no hash of a session: %d to %d of 0-9 and a-f, as `%s` shows\n",
	    typed, HEX_MIN, SESSION_HASH_HEX, list);
	return false;
}

bool
session_hash_named(struct ctl *ctl, const struct conf *conf, const char *client, const char *name,
    struct session_key keys_out[SESSION_HASH_WAYS])
{
	static const enum session_kind ways[SESSION_HASH_WAYS] = {
	    SESSION_HEADER, SESSION_BODY, SESSION_RESPONSE};
	struct session_secret secret;
	struct why why;

	if (session_secret(conf->state_dir.p, &secret, &why) != ERR_OK) {
		fprintf(ctl->err, "sluicectl: %s\n", why.text);
		return false;
	}
	for (size_t i = 0; i < SESSION_HASH_WAYS; i++)
		session_name(&secret, text_span(client), ways[i], text_span(name), &keys_out[i]);
	explicit_bzero(&secret, sizeof secret);
	return true;
}
