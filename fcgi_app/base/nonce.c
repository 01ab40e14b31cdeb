#include "base/nonce.h"

#include "base/err.h"

#include <string.h>
#include <sys/random.h>

#define BYTES_MAX 64

bool
nonce_hex(char *dst, size_t digits)
{
	unsigned char bytes[BYTES_MAX];
	size_t n = (digits + 1) / 2;

	if (n > sizeof bytes || getrandom(bytes, n, 0) != (ssize_t)n)
		return false;
	text_hex(bytes, digits, dst);
	return true;
}

struct span
nonce_name(struct arena *arena, const char *prefix, size_t digits)
{
	size_t head = strlen(prefix);
	char *name = arena_alloc(arena, head + digits + 1);

	memcpy(name, prefix, head);
	if (!nonce_hex(name + head, digits))
		die("no random bytes");
	return (struct span){name, head + digits};
}
