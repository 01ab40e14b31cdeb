#include "context_tale.h"

#include "dialect/trim.h"

static const char *const names[] = {
    [FORM_SYSTEM] = "System",
    [FORM_DEVELOPER] = "System",
    [FORM_USER] = "User",
    [FORM_ASSISTANT] = "Assistant",
    [FORM_TOOL] = "Tool",
};

struct tale {
	struct arena *arena;
	struct buf *out;
};

static void
put(struct tale *t, struct span text)
{
	if (text.n > CONTEXT_TALE_PART)
		text = trim_text(t->arena, text, CONTEXT_TALE_PART);
	buf_span(t->out, text);
	buf_char(t->out, '\n');
}

static void
put_call(struct tale *t, const struct form_call *call)
{
	buf_z(t->out, "calls ");
	buf_span(t->out, call->name);
	buf_char(t->out, ' ');
	put(t, call->arguments);
}

/* Parts of a result hold no results. */
static void
put_plain(struct tale *t, const struct form_part *part)
{
	switch (part->kind) {
	case FORM_TEXT:
	case FORM_REFUSAL: put(t, part->text); break;
	case FORM_IMAGE: buf_z(t->out, "[a picture]\n"); break;
	case FORM_AUDIO: buf_z(t->out, "[sound]\n"); break;
	case FORM_DOCUMENT:
		if (part->media.plain.n > 0)
			put(t, part->media.plain);
		else
			buf_z(t->out, "[a document]\n");
		break;
	case FORM_CALL: put_call(t, &part->call); break;
	case FORM_THOUGHT:
	case FORM_RESULT:
	case FORM_OPAQUE: break;
	}
}

static void
put_turn(struct tale *t, const struct form_turn *turn)
{
	buf_z(t->out, names[turn->role]);
	buf_z(t->out, ": ");
	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_part *part = &turn->parts[i];

		put_plain(t, part);
		for (size_t k = 0; part->kind == FORM_RESULT && k < part->result.nparts; k++)
			put_plain(t, &part->result.parts[k]);
	}
	buf_char(t->out, '\n');
}

void
context_tale(struct arena *arena, const struct form *form, size_t from, size_t to, struct buf *out)
{
	struct tale t = {arena, arena_buf(arena, SIZE_MAX / 4)};

	for (; from < to; from++)
		put_turn(&t, &form->turns[from]);
	if (t.out->n > CONTEXT_TALE_MAX)
		buf_span(out, trim_text(arena, buf_text(t.out), CONTEXT_TALE_MAX));
	else
		buf_span(out, buf_text(t.out));
}
