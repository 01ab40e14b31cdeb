#include "lib/sample.h"

#include <stdio.h>

#define SAMPLE_MAX_BYTES (4 << 20)

struct buf
sample_read(const char *name)
{
	char path[256], piece[4096];
	struct buf b;
	FILE *f;
	size_t n;

	snprintf(path, sizeof path, "tests/data/%s", name);
	f = fopen(path, "rb");
	if (f == NULL)
		die("cannot read %s from here", path);
	buf_init(&b, SAMPLE_MAX_BYTES);
	while ((n = fread(piece, 1, sizeof piece, f)) > 0)
		buf_add(&b, piece, n);
	fclose(f);
	if (b.n == 0 || b.over)
		die("%s is empty or too large", path);
	return b;
}
