#include "dialect/picture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PNG "iVBORw0KGgoAAAANSUhEUgAAAyAAAAJYCAI="
#define GIF "R0lGODlhQAHIAAAAAA=="
#define JPEG "/9j/4AAQSkZJRgAAAAAAAAAAAAD//+EACHh4eHh4eP/EAAVhYmP/wgARCAQ4B4AD"
#define WEBP "UklGRgAAAABXRUJQVlA4IAAAAAAAAACdASqAQuAB"
#define WEBP_LOSSLESS "UklGRgAAAABXRUJQVlA4TAAAAAAvY0AMAA=="
#define WEBP_EXTENDED "UklGRgAAAABXRUJQVlA4WAAAAAAAAAAAzwcA5wMA"

static const struct {
	const char *what, *base64;
	uint32_t width, height; /* 0: no image */
} sizes[] = {
    {"PNG", PNG, 800, 600},
    {"GIF", GIF, 320, 200},
    {"JPEG behind other segments", JPEG, 1920, 1080},
    {"WebP", WEBP, 640, 480},
    {"WebP lossless", WEBP_LOSSLESS, 100, 50},
    {"WebP extended", WEBP_EXTENDED, 2000, 1000},
    {"nothing", "", 0, 0},
    {"a text", "aGVsbG8gd29ybGQ=", 0, 0},
    {"not base64", "\xff\xfe<>{}", 0, 0},
    {"a PNG of no size", "iVBORw0KGgoAAAANSUhEUgAAAAAAAAJYCAI=", 0, 0},
    {"a JPEG without a frame", "/9j/4AAQSkZJRgAAAAAAAAAAAAA=", 0, 0},
    {"a JPEG whose segment has no length", "/9j/4AAASkZJRgAAAAAAAAAAAAA=", 0, 0},
};

static void
table(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(sizes); i++) {
		struct picture_size got = {0, 0};
		bool found = picture_size(text_span(sizes[i].base64), &got);

		if (found != (sizes[i].width > 0) || got.width != sizes[i].width ||
		    got.height != sizes[i].height)
			fail_msg("%s: %u x %u", sizes[i].what, got.width, got.height);
	}
}

/* Cut anywhere, with the cut before an end of the heap: nothing is read behind it, and no size is made up. */
static void
cuts(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(sizes); i++)
		for (size_t n = 0; n < strlen(sizes[i].base64); n++) {
			char *copy = malloc(n + 1);
			struct picture_size got;

			assert_non_null(copy);
			memcpy(copy + 1, sizes[i].base64, n);
			(void)picture_size((struct span){copy + 1, n}, &got);
			free(copy);
		}
}

static const struct {
	uint32_t width, height;
	int64_t claude, tiles;
} tokens[] = {
    {1, 1, 1, 255},
    {100, 100, 14, 255},
    {512, 512, 350, 255},
    {513, 512, 351, 425},
    {1024, 1024, 1399, 765},
    {2048, 4096, 1600, 1105},
    {4000, 10, 7, 765},
    {UINT32_MAX, UINT32_MAX, 1600, 765},
    {UINT32_MAX, 1, 3, 765},
};

static void
costs(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(tokens); i++) {
		struct picture_size s = {tokens[i].width, tokens[i].height};
		int64_t claude = picture_tokens_claude(&s), tiles = picture_tokens_tiles(&s, false);

		if (claude != tokens[i].claude || tiles != tokens[i].tiles)
			fail_msg("%u x %u: %lld, %lld", s.width, s.height, (long long)claude,
			    (long long)tiles);
		assert_int_equal(picture_tokens_tiles(&s, true), 85);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(table),
	    cmocka_unit_test(cuts),
	    cmocka_unit_test(costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
