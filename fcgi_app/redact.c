#include "redact.h"

#include <openssl/evp.h>

static void
add_form(struct redact *redact, struct span form)
{
	for (unsigned i = 0; i < redact->n; i++)
		if (text_equal(redact->forms[i], form))
			return;
	redact->forms[redact->n++] = form;
}

static struct span
url_form(struct arena *arena, struct span key)
{
	static const char plain[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	struct buf *b = arena_buf(arena, key.n * 3 + 1);

	for (size_t i = 0; i < key.n; i++) {
		struct span byte = {key.p + i, 1};

		if (text_find(SPAN(plain), byte) < sizeof plain - 1)
			buf_span(b, byte);
		else
			buf_print(b, "%%%02X", (unsigned)(unsigned char)key.p[i]);
	}
	return buf_text(b);
}

static struct span
base64_form(struct arena *arena, struct span key)
{
	size_t n = (key.n + 2) / 3 * 4;
	unsigned char *out = arena_alloc(arena, n + 1);

	EVP_EncodeBlock(out, (const unsigned char *)key.p, (int)key.n);
	return (struct span){(const char *)out, n};
}

void
redact_init(struct redact *redact, struct arena *arena, const struct secret *key)
{
	struct span raw = secret_reveal(key);

	redact->n = 0;
	if (raw.n < REDACT_SHORTEST || raw.n > 8192)
		return;
	add_form(redact, raw);
	add_form(redact, url_form(arena, raw));
	/* the whole, then its whole groups of three: what follows the key would change the last characters */
	add_form(redact, base64_form(arena, raw));
	add_form(redact, base64_form(arena, (struct span){raw.p, raw.n / 3 * 3}));
}

static struct span
replace(struct arena *arena, struct span text, struct span key)
{
	struct buf *b;
	size_t at = text_find(text, key);

	if (at == text.n)
		return text;
	b = arena_buf(arena, text.n * 2 + 64);
	while (at < text.n) {
		buf_add(b, text.p, at);
		buf_z(b, "[redacted]");
		text = text_from(text, at + key.n);
		at = text_find(text, key);
	}
	buf_span(b, text);
	return buf_text(b);
}

struct span
redact_apply(const struct redact *redact, struct arena *arena, struct span text)
{
	for (unsigned i = 0; i < redact->n; i++)
		text = replace(arena, text, redact->forms[i]);
	return text;
}

struct span
redact_all(const struct conf *conf, struct arena *arena, struct span text)
{
	for (size_t c = 0; c < conf->nchannels; c++)
		for (size_t i = 0; i < conf->channels[c].naccounts; i++) {
			struct redact redact;

			redact_init(&redact, arena, &conf->channels[c].accounts[i].key);
			text = redact_apply(&redact, arena, text);
		}
	return text;
}
