#include "dialect/messages_flow.h"

#include "base/digest.h"
#include "base/emit.h"
#include "dialect/seal.h"
#include "dialect/value.h"

#include <string.h>

#define BLOCKS_MAX 1024 /* blocks told apart by index; hosts count from 0 */

void
messages_flow_give(struct flow_reader *r, struct flow step)
{
	r->sink(r->arg, &step);
}

struct span
messages_flow_text(struct flow_reader *r, const struct scan_value *v)
{
	return v->type == SCAN_STRING ? scan_string(r->scratch, v->raw) : (struct span){"", 0};
}

void
messages_flow_start(
    struct flow_reader *r, const struct scan_value *id, const struct scan_value *model)
{
	struct span text = messages_flow_text(r, id);

	if (r->started)
		return;
	r->started = true;
	buf_span(r->id, text);
	messages_flow_give(r, (struct flow){.kind = FLOW_START,
	                          .id = text,
	                          .model = messages_flow_text(r, model),
	                          .usage = r->usage.seen ? &r->usage : NULL});
}

/* The block of an event; a host that does not count means the last one. */
struct messages_block *
messages_flow_block(struct flow_reader *r, const struct scan_value *index)
{
	int64_t n;

	if (scan_i64(index, 0, BLOCKS_MAX - 1, &n))
		r->current = (size_t)n;
	if (r->current >= r->cap) {
		size_t cap = r->cap == 0 ? 16 : r->cap;
		struct messages_block *blocks;

		while (cap <= r->current)
			cap *= 2;
		blocks = arena_alloc(r->arena, cap * sizeof *blocks);
		if (r->cap > 0)
			memcpy(blocks, r->blocks, r->cap * sizeof *blocks);
		r->blocks = blocks;
		r->cap = cap;
	}
	return &r->blocks[r->current];
}

void
messages_flow_words(struct flow_reader *r, struct span text)
{
	if (text.n == 0)
		return;
	for (size_t i = 0; i < text.n; i++)
		r->chars += ((unsigned char)text.p[i] & 0xc0) != 0x80;
	messages_flow_give(r, (struct flow){.kind = FLOW_TEXT, .text = text});
}

void
messages_flow_thought(struct flow_reader *r, struct span text)
{
	if (text.n > 0)
		messages_flow_give(r, (struct flow){.kind = FLOW_THOUGHT, .text = text});
}

void
messages_flow_arguments(struct flow_reader *r, struct messages_block *b, struct span text)
{
	if (text.n == 0)
		return;
	b->arguments = true;
	messages_flow_give(r, (struct flow){.kind = FLOW_ARGUMENTS, .call = b->call, .text = text});
}

/* {"url","title","start_index","end_index"}: the text of a block is what its citations stand for. */
static void
give_citation(struct flow_reader *r, const struct scan_value *citation)
{
	struct scan_value url = value_member(citation, "url");
	struct scan_value title = value_member(citation, "title");
	struct buf *raw;
	struct emit e;

	if (url.type != SCAN_STRING)
		return; /* of a document: nobody else can name its place */
	raw = arena_buf(r->scratch, MESSAGES_FLOW_MAX);
	emit_init(&e, raw);
	emit_object(&e, NULL);
	emit_raw(&e, "url", url.raw);
	emit_text(&e, "title", messages_flow_text(r, &title));
	emit_i64(&e, "start_index", (int64_t)r->block_chars);
	emit_i64(&e, "end_index", (int64_t)r->chars);
	emit_end(&e);
	messages_flow_give(r, (struct flow){.kind = FLOW_CITATION, .text = buf_text(raw)});
}

static void
give_citations(struct flow_reader *r, struct span list)
{
	struct scan_value citation;
	struct span none;
	size_t at = 0;

	while (scan_next(list, &at, &none, &citation))
		give_citation(r, &citation);
}

static void
give_seal(struct flow_reader *r, enum flow_kind kind, struct span payload)
{
	messages_flow_give(
	    r, (struct flow){.kind = kind,
	           .text = seal_make(r->scratch, FORM_MESSAGES, r->channel, payload)});
}

/* What is owed when a block is over, told or not. */
void
messages_flow_end(struct flow_reader *r, struct messages_block *b, bool told)
{
	enum messages_block_kind kind = b->kind;

	b->kind = MESSAGES_NONE;
	switch (kind) {
	case MESSAGES_NONE:
	case MESSAGES_OTHER: break;
	case MESSAGES_PLAIN:
		if (r->citations->n > 0) {
			buf_char(r->citations, ']');
			give_citations(r, buf_text(r->citations));
			buf_clear(r->citations);
		}
		messages_flow_give(r, (struct flow){.kind = FLOW_BREAK});
		break;
	case MESSAGES_THOUGHT:
		if (r->signature->n > 0)
			give_seal(r, FLOW_SEAL, buf_text(r->signature));
		else
			messages_flow_give(r, (struct flow){.kind = FLOW_BREAK});
		buf_clear(r->signature);
		break;
	case MESSAGES_CALL:
		if (told && !b->arguments)
			messages_flow_arguments(r, b, SPAN("{}"));
		messages_flow_give(r, (struct flow){.kind = FLOW_CALL_END, .call = b->call});
		break;
	}
}

/* An id that the host did not give: it must be the same whenever the answer is read. */
static struct span
make_id(struct flow_reader *r, struct span name)
{
	char *number = arena_print(r->scratch, ":%zu:", r->ncalls);
	char *id = arena_z(r->scratch, SPAN("toolu_........................"));
	char *whole = arena_join(
	    r->scratch, (const struct span[]){buf_text(r->id), text_span(number), name}, 3);

	digest_hex(text_span(whole), 24, id + 6);
	return text_span(id);
}

static void
start_call(struct flow_reader *r, struct messages_block *b, const struct scan_value *block)
{
	struct scan_value id = value_member(block, "id"), name = value_member(block, "name");
	struct scan_value input = value_member(block, "input");
	struct flow step = {.kind = FLOW_CALL,
	    .call = r->ncalls,
	    .id = messages_flow_text(r, &id),
	    .name = messages_flow_text(r, &name)};

	b->kind = MESSAGES_OTHER;
	if (step.name.n == 0)
		return;
	if (step.id.n == 0)
		step.id = make_id(r, step.name);
	b->kind = MESSAGES_CALL;
	b->call = r->ncalls++;
	messages_flow_give(r, step);
	if (!value_says(&input))
		return;
	b->given = true;
	messages_flow_arguments(
	    r, b, input.type == SCAN_STRING ? messages_flow_text(r, &input) : input.raw);
}

static bool
is_type(const struct scan_value *type, const char *z)
{
	return type->type == SCAN_STRING && scan_is(type->raw, z);
}

void
messages_flow_signature(struct flow_reader *r, const struct scan_value *v)
{
	if (v->type != SCAN_STRING || v->raw.n <= 2)
		return;
	buf_clear(r->signature);
	buf_span(r->signature, messages_flow_text(r, v));
}

/* A block as it starts; in a plain body that is all of it. */
void
messages_flow_begin(struct flow_reader *r, struct messages_block *b, const struct scan_value *block)
{
	struct scan_value type = value_member(block, "type"), text = value_member(block, "text");
	struct scan_value thinking = value_member(block, "thinking");
	struct scan_value signature = value_member(block, "signature");
	struct scan_value citations = value_member(block, "citations");
	struct scan_value data = value_member(block, "data");

	*b = (struct messages_block){.kind = MESSAGES_OTHER};
	if (is_type(&type, "text")) {
		b->kind = MESSAGES_PLAIN;
		r->block_chars = r->chars;
		messages_flow_words(r, messages_flow_text(r, &text));
		give_citations(r, citations.raw);
	} else if (is_type(&type, "thinking")) {
		b->kind = MESSAGES_THOUGHT;
		messages_flow_thought(r, messages_flow_text(r, &thinking));
		messages_flow_signature(r, &signature);
	} else if (is_type(&type, "redacted_thinking")) {
		if (data.type == SCAN_STRING && data.raw.n > 2)
			give_seal(r, FLOW_REDACTED, messages_flow_text(r, &data));
	} else if (is_type(&type, "tool_use")) {
		start_call(r, b, block);
	}
}

void
messages_flow_end_all(struct flow_reader *r)
{
	for (size_t i = 0; i < r->cap; i++)
		messages_flow_end(r, &r->blocks[i], false);
}

void
messages_flow_whole(struct flow_reader *r, const struct scan_value *content)
{
	const struct scan_value here = {.type = SCAN_ABSENT};
	struct scan_value block;
	struct span none;
	size_t at = 0;

	if (content->type == SCAN_STRING)
		messages_flow_words(r, messages_flow_text(r, content));
	while (content->type == SCAN_ARRAY && scan_next(content->raw, &at, &none, &block)) {
		struct messages_block *b = messages_flow_block(r, &here);

		messages_flow_begin(r, b, &block);
		messages_flow_end(r, b, true);
	}
}
