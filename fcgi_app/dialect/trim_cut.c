#include "dialect/trim_cut.h"

#include "dialect/trim.h"

#include <stdlib.h>
#include <string.h>

#define LEAST 32 /* tokens that a cut text keeps: the mark, and something around it */
#define TRIES 12 /* counts of one cut text, at most; two or three where it is alike all over */
#define PASSES 3
#define NEAR_PERCENT 90 /* of the level: good enough */
#define AIM_PERCENT 97

/* A text of a copied turn. */
struct text {
	struct span *at;
	struct span whole;
	int64_t tokens; /* of the whole */
	size_t turn;
};

struct texts {
	struct text *list;
	size_t n;
};

static bool
goes_on(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t
characters(struct span text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++)
		n += !goes_on(text.p[i]);
	return n;
}

/* False: it would not become shorter. */
static bool
put_cut(struct buf *out, struct span text, size_t most)
{
	size_t head, tail;
	struct span gone;

	buf_clear(out);
	if (text.n <= most)
		return false;
	head = text_cut(text, most - most / 2);
	tail = text.n - most / 2;
	while (tail < text.n && goes_on(text.p[tail]))
		tail++;
	gone = (struct span){text.p + head, tail - head};
	buf_add(out, text.p, head);
	buf_print(out, "\n[... %zu characters left out ...]\n", characters(gone));
	buf_span(out, text_from(text, tail));
	return out->n < text.n;
}

struct span
trim_text(struct arena *arena, struct span text, size_t most)
{
	struct buf out;
	struct span shorter = text;

	buf_init(&out, SIZE_MAX / 2);
	if (put_cut(&out, text, most))
		shorter = arena_copy(arena, buf_text(&out));
	buf_release(&out);
	return shorter;
}

static struct span *
text_of(struct form_part *part)
{
	switch (part->kind) {
	case FORM_TEXT: return &part->text;
	case FORM_THOUGHT:
		return part->thought.seal.n == 0 && !part->thought.redacted ? &part->text : NULL;
	case FORM_DOCUMENT: return &part->media.plain;
	case FORM_REFUSAL:
	case FORM_IMAGE:
	case FORM_AUDIO:
	case FORM_CALL:
	case FORM_RESULT:
	case FORM_OPAQUE: break;
	}
	return NULL;
}

static void *
copy_of(struct arena *arena, const void *list, size_t bytes)
{
	void *copy = arena_alloc(arena, bytes + 1);

	if (bytes > 0)
		memcpy(copy, list, bytes);
	return copy;
}

static size_t
parts_within(const struct form_turn *turn)
{
	size_t n = turn->nparts;

	for (size_t p = 0; p < turn->nparts; p++)
		n += turn->parts[p].result.nparts;
	return n;
}

static void
add_text(struct trim_cut *cut, struct texts *texts, struct form_part *part, size_t turn)
{
	struct span *at = text_of(part);

	if (at == NULL || at->n == 0)
		return;
	texts->list[texts->n++] = (struct text){at, *at, tokens_text(cut->model, *at), turn};
}

/* The turn becomes a copy, down to the parts of its results, and its texts are noted. */
static void
add_turn(struct trim_cut *cut, struct texts *texts, size_t at)
{
	struct form_turn *turn = &cut->turns[at];

	turn->parts = copy_of(cut->arena, turn->parts, turn->nparts * sizeof *turn->parts);
	for (size_t p = 0; p < turn->nparts; p++) {
		struct form_part *part = &turn->parts[p], *inner;

		add_text(cut, texts, part, at);
		if (part->kind != FORM_RESULT)
			continue;
		inner =
		    copy_of(cut->arena, part->result.parts, part->result.nparts * sizeof *inner);
		part->result.parts = inner;
		for (size_t i = 0; i < part->result.nparts; i++)
			add_text(cut, texts, &inner[i], at);
	}
}

static int
compare_tokens(const void *left, const void *right)
{
	const struct text *a = left, *b = right;

	if (a->tokens != b->tokens)
		return (a->tokens > b->tokens) - (a->tokens < b->tokens);
	return (a->at > b->at) - (a->at < b->at);
}

static struct texts
texts_of(struct trim_cut *cut)
{
	struct texts texts = {.n = 0};
	size_t n = 0;

	for (size_t i = 0; i < cut->nturns; i++)
		n += cut->fixed[i] ? 0 : parts_within(&cut->turns[i]);
	texts.list = arena_alloc(cut->arena, (n + 1) * sizeof *texts.list);
	for (size_t i = 0; i < cut->nturns; i++)
		if (!cut->fixed[i])
			add_turn(cut, &texts, i);
	qsort(texts.list, texts.n, sizeof *texts.list, compare_tokens);
	return texts;
}

/* The level at which all texts together have no more than `room`; the list is sorted. */
static int64_t
level_of(const struct texts *texts, int64_t room)
{
	for (size_t i = 0; i < texts->n; i++) {
		int64_t rest = (int64_t)(texts->n - i);

		if (texts->list[i].tokens > room / rest)
			return room / rest;
		room -= texts->list[i].tokens;
	}
	return INT64_MAX;
}

/* How much of a text may stay: more than `low` bytes, which fit, and less than `high`, which do not. */
struct bounds {
	size_t low, high;
	int64_t low_tokens, high_tokens;
};

/* By what is known of both bounds; every other time their middle, for texts that are not alike all over. */
static size_t
next_guess(const struct bounds *b, int64_t level, int try)
{
	size_t between = b->high - b->low;
	double share = 0.5;

	if (try % 2 == 0 && b->high_tokens > b->low_tokens)
		share = (double)(level * AIM_PERCENT / 100 - b->low_tokens) /
		        (double)(b->high_tokens - b->low_tokens);
	if (share < 0 || share > 1)
		share = 0.5;
	return b->low + (size_t)((double)between * share);
}

/* A long cut of a text that the level takes, as far as a few counts find it. False: none was found. */
static bool
cut_text(const struct trim_cut *cut, struct text *text, int64_t level, struct buf *scratch)
{
	struct bounds b = {.high = text->whole.n, .high_tokens = text->tokens};
	bool found = false;

	for (int try = 0; try < TRIES && b.high > b.low; try++) {
		/* at the last the mark alone, if nothing fitted */
		size_t most = try == TRIES - 1 && !found ? 0 : next_guess(&b, level, try);
		int64_t n = text->tokens;

		if (found && most == b.low)
			break;
		if (put_cut(scratch, text->whole, most))
			n = tokens_text(cut->model, buf_text(scratch));
		if (n > level) {
			b.high = most;
			b.high_tokens = n;
			continue;
		}
		found = true;
		b.low = most;
		b.low_tokens = n;
		if (n * 100 >= level * NEAR_PERCENT)
			break;
	}
	if (found && put_cut(scratch, text->whole, b.low))
		*text->at = arena_copy(cut->arena, buf_text(scratch));
	return found;
}

static bool
cut_all(struct trim_cut *cut, struct texts *texts, int64_t level, bool *changed)
{
	struct buf scratch;
	bool done = true;

	buf_init(&scratch, SIZE_MAX / 2);
	for (size_t i = 0; i < texts->n; i++) {
		struct text *text = &texts->list[i];

		if (text->tokens <= level)
			continue;
		done = cut_text(cut, text, level, &scratch) && done;
		changed[text->turn] = true;
	}
	buf_release(&scratch);
	return done;
}

static int64_t
recount(struct trim_cut *cut, const bool *changed)
{
	int64_t gone = 0;

	cut->changed = 0;
	for (size_t i = 0; i < cut->nturns; i++) {
		int64_t n;

		if (!changed[i])
			continue;
		n = tokens_turn(cut->model, &cut->turns[i]);
		gone += cut->tokens[i] - n;
		cut->tokens[i] = n;
		cut->changed++;
	}
	return gone;
}

bool
trim_cut(struct trim_cut *cut)
{
	struct texts texts = texts_of(cut);
	bool *changed = arena_alloc(cut->arena, cut->nturns + 1);
	int64_t room = -cut->excess;

	cut->cuttable = 0;
	for (size_t i = 0; i < texts.n; i++) {
		room += texts.list[i].tokens;
		if (texts.list[i].tokens > LEAST)
			cut->cuttable += texts.list[i].tokens - LEAST;
	}
	if (cut->cuttable < cut->excess)
		return false;
	for (int i = 0; i < PASSES && cut->excess > 0; i++) {
		int64_t level = level_of(&texts, room);

		if (level < LEAST || !cut_all(cut, &texts, level, changed))
			return false;
		cut->excess -= recount(cut, changed);
		room -= cut->excess;
	}
	return cut->excess <= 0;
}
