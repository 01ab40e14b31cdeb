#include "dialect/chat_media.h"

/* "data:TYPE;base64,DATA" */
static bool
split_url(struct arena *arena, struct span url, struct span *type_out, struct span *data_out)
{
	size_t comma = text_find(url, SPAN(","));
	struct span head = {url.p, comma};

	if (comma == url.n || !text_starts_fold(url, "data:"))
		return false;
	head = text_from(head, sizeof "data:" - 1);
	if (head.n < 7 || !text_is_fold(text_from(head, head.n - 7), ";base64"))
		return false;
	*type_out = form_media_type(arena, (struct span){head.p, head.n - 7});
	*data_out = text_from(url, comma + 1);
	return true;
}

bool
chat_media_image(struct arena *arena, struct span url, struct form_media *media)
{
	if (text_starts_fold(url, "http://") || text_starts_fold(url, "https://")) {
		media->url = url;
		return true;
	}
	if (!split_url(arena, url, &media->media_type, &media->data))
		return false;
	if (media->media_type.n == 0)
		media->media_type = SPAN("image/png");
	return true;
}

static int
digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

static bool
is_base64(struct span data)
{
	size_t n = data.n;

	while (n > 0 && data.n - n < 2 && data.p[n - 1] == '=')
		n--;
	for (size_t i = 0; i < n; i++)
		if (digit_of(data.p[i]) < 0)
			return false;
	return n > 0 && n % 4 != 1;
}

static struct span
decode(struct arena *arena, struct span data)
{
	char *out = arena_alloc(arena, data.n / 4 * 3 + 4);
	unsigned bits = 0, held = 0;
	size_t n = 0;

	for (size_t i = 0; i < data.n && data.p[i] != '='; i++) {
		bits = (bits << 6 | (unsigned)digit_of(data.p[i])) & 0xffff;
		held += 6;
		if (held >= 8) {
			held -= 8;
			out[n++] = (char)(bits >> held & 0xff);
		}
	}
	return (struct span){out, n};
}

bool
chat_media_document(struct arena *arena, struct span data, struct form_media *media)
{
	struct span type = {"", 0}, bytes = data;

	if (!split_url(arena, data, &type, &bytes) && text_starts_fold(data, "data:"))
		return false;
	if (!is_base64(bytes))
		return false;
	if (type.n == 0 && (text_ends(media->title, ".txt") || text_ends(media->title, ".md")))
		type = SPAN("text/plain");
	media->media_type = type.n == 0 ? SPAN("application/pdf") : type;
	media->data = bytes;
	if (!text_starts(media->media_type, "text/"))
		return true;
	bytes = decode(arena, bytes);
	if (text_utf8(bytes)) {
		media->plain = bytes;
		media->data = (struct span){"", 0};
	}
	return true;
}
