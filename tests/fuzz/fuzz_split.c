/*
 * Of any text each byte is in one piece, no piece cuts a character, and the hand cuts as the expression does.
 */
#include "dialect/split.h"

#define MUST(condition) ((condition) ? (void)0 : die("%s", #condition))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct split *split, *slow;
	struct span text = {(const char *)bytes, n}, piece, same;

	if (!text_utf8(text))
		return 0;
	if (split == NULL) {
		split = split_new();
		slow = split_new();
	}
	for (int e = 0; e < VOCAB__MAX; e++) {
		size_t at = 0;

		split_begin(split, (enum vocab_encoding)e, text);
		split_begin(slow, (enum vocab_encoding)e, text);
		while (split_next(split, &piece)) {
			MUST(piece.p == text.p + at && piece.n > 0 && text_utf8(piece));
			MUST(split_next_slowly(slow, &same) && same.p == piece.p &&
			     same.n == piece.n);
			at += piece.n;
		}
		MUST(at == n && !split_next_slowly(slow, &same));
	}
	return 0;
}
