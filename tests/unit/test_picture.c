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
		struct picture_price price = picture_price(SPAN("gpt-4o"));
		int64_t claude = picture_tokens_claude(&s),
		        tiles = picture_tokens(&price, &s, false);

		if (claude != tokens[i].claude || tiles != tokens[i].tiles)
			fail_msg("%u x %u: %lld, %lld", s.width, s.height, (long long)claude,
			    (long long)tiles);
		assert_int_equal(picture_tokens(&price, &s, true), 85);
	}
}

/* OpenAI's families. */
static const struct {
	const char *model;
	uint32_t width, height;
	int64_t tokens, low;
} families[] = {
    {"gpt-4o", 1024, 1024, 765, 85},
    {"gpt-4o-2024-08-06", 2048, 4096, 1105, 85},
    {"gpt-4o-mini", 1024, 1024, 2833 + 4 * 5667, 2833},
    {"gpt-4.1", 512, 512, 255, 85},
    {"gpt-4.5-preview", 512, 512, 255, 85},
    {"o1", 1024, 1024, 675, 75},
    {"o1-pro", 1024, 1024, 675, 75},
    {"o3", 1024, 1024, 675, 75},
    {"gpt-5", 1024, 1024, 630, 70},
    {"gpt-5.2-chat-latest", 1024, 1024, 630, 70},
    {"glm-4.5v", 1024, 1024, 765, 85},
    {"", 1, 1, 255, 85},
    /* patches: 1024 of 1024 x 1024; 1452 of 1800 x 2400, which are too many */
    {"gpt-4.1-mini", 1024, 1024, 1659, 1659},
    {"gpt-4.1-mini", 1800, 2400, 2353, 2353},
    {"gpt-4.1-mini", 2400, 1800, 2353, 2353},
    {"gpt-5-mini", 1024, 1024, 1659, 1659},
    {"gpt-4.1-nano", 1024, 1024, 2520, 2520},
    {"gpt-5-nano", 33, 32, 5, 5},
    {"o4-mini", 1024, 1024, 1762, 1762},
    {"o4-mini", 1, 1, 2, 2},
    {"gpt-5-mini", UINT32_MAX, 1, 2489, 2489},
    {"gpt-5-mini", 1, UINT32_MAX, 2489, 2489},
    {"gpt-5-mini", UINT32_MAX, UINT32_MAX, 2465, 2465},
};

static void
prices(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(families); i++) {
		struct picture_size s = {families[i].width, families[i].height};
		struct picture_price price = picture_price(text_span(families[i].model));
		int64_t all = picture_tokens(&price, &s, false),
		        low = picture_tokens(&price, &s, true);

		if (all != families[i].tokens || low != families[i].low)
			fail_msg("%s, %u x %u: %lld, %lld", families[i].model, s.width, s.height,
			    (long long)all, (long long)low);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(table),
	    cmocka_unit_test(cuts),
	    cmocka_unit_test(costs),
	    cmocka_unit_test(prices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
