#include "ctl/context_show.h"

#include "base/emit.h"
#include "ctl/human.h"
#include "dialect/form_pack.h"

#define SHOWN 600 /* bytes of one text */

static enum err
unpack(const struct context_show *show, uint32_t i, struct form_turn *turn_out, struct why *why)
{
	const struct env_bytes *text = &show->texts->turns[i];
	enum err err =
	    form_unpack(show->texts->arena, (struct span){text->p, text->n}, turn_out, why);

	if (err != ERR_OK)
		err_prefix(why, "turn %u cannot be read", i);
	return err;
}

enum err
context_show_json(const struct context_show *show, struct buf *out, struct why *why)
{
	const struct talk_head *head = &show->texts->head;
	enum err err = ERR_OK;
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_z(&e, "session", show->hash);
	emit_text(&e, "client", show->client);
	emit_i64(&e, "bytes", (int64_t)head->bytes);
	emit_time(&e, "created_at", (struct wall_ms){head->created_ms});
	emit_time(&e, "last_used", (struct wall_ms){head->used_ms});
	emit_array(&e, "turns");
	for (uint32_t i = 0; i < head->turns && err == ERR_OK; i++) {
		const struct env_bytes *text = &show->texts->turns[i];
		struct form_turn turn;

		err = unpack(show, i, &turn, why); /* is it JSON? */
		emit_raw(&e, NULL, (struct span){text->p, text->n});
	}
	emit_end(&e);
	emit_end(&e);
	buf_char(out, '\n');
	return err;
}

/* ---- for people ---- */

/* On one line: ends of lines and tabs are blanks, what else a terminal could take for an order is '?'. */
static void
put_text(struct buf *out, struct span text)
{
	char flat[SHOWN + 1], clean[SHOWN + 1];
	size_t n = text_cut(text, SHOWN);

	for (size_t i = 0; i < n; i++)
		flat[i] =
		    text.p[i] == '\n' || text.p[i] == '\r' || text.p[i] == '\t' ? ' ' : text.p[i];
	text_clean(clean, sizeof clean, (struct span){flat, n});
	buf_z(out, clean);
	if (n < text.n)
		buf_print(out, " ... (%zu bytes)", text.n);
}

static void
put_media(struct buf *out, const struct form_part *part)
{
	const struct form_media *m = &part->media;

	buf_print(out, "(%s)", form_pack_kind(part->kind));
	for (size_t i = 0; i < 4; i++) {
		struct span text =
		    (const struct span[]){m->title, m->media_type, m->url, m->file_id}[i];

		if (text.n > 0)
			buf_char(out, ' ');
		put_text(out, text);
	}
	if (m->data.n > 0)
		buf_print(out, " %zu bytes of base64", m->data.n);
	if (m->plain.n > 0)
		buf_char(out, ' ');
	put_text(out, m->plain);
}

static void
put_part(struct buf *out, const struct form_part *part)
{
	switch (part->kind) {
	case FORM_TEXT: put_text(out, part->text); break;
	case FORM_IMAGE:
	case FORM_DOCUMENT:
	case FORM_AUDIO: put_media(out, part); break;
	case FORM_CALL:
		buf_z(out, "(call) ");
		put_text(out, part->call.name);
		buf_char(out, ' ');
		put_text(out, part->call.arguments);
		break;
	case FORM_RESULT:
		buf_print(out, "(result%s) of ", part->result.is_error ? ", an error" : "");
		put_text(out, part->result.id);
		buf_char(out, ':');
		break;
	case FORM_REFUSAL:
	case FORM_THOUGHT:
	case FORM_OPAQUE:
		buf_print(out, "(%s) ", form_pack_kind(part->kind));
		put_text(out, part->text);
		break;
	}
	buf_char(out, '\n');
}

static void
put_turn(struct buf *out, const struct form_turn *turn)
{
	const char *role = form_pack_role(turn->role);

	if (turn->nparts == 0)
		buf_print(out, "%-9s  -\n", role);
	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_result *result = &turn->parts[i].result;

		buf_print(out, "%-9s  ", i == 0 ? role : "");
		put_part(out, &turn->parts[i]);
		for (size_t k = 0; k < result->nparts; k++) {
			buf_print(out, "%-9s    ", "");
			put_part(out, &result->parts[k]);
		}
	}
}

enum err
context_show_text(const struct context_show *show, struct buf *out, struct why *why)
{
	const struct talk_head *head = &show->texts->head;
	char created[HUMAN_TIME], used[HUMAN_TIME];

	human_time((struct wall_ms){head->created_ms}, created);
	human_time((struct wall_ms){head->used_ms}, used);
	buf_print(out, "%s of client ", show->hash);
	put_text(out, show->client.n == 0 ? SPAN("-") : show->client);
	buf_print(out, ", %u turns, %llu bytes, begun %s, last used %s\n\n", head->turns,
	    (unsigned long long)head->bytes, created, used);
	for (uint32_t i = 0; i < head->turns; i++) {
		struct form_turn turn;
		enum err err = unpack(show, i, &turn, why);

		if (err != ERR_OK)
			return err;
		put_turn(out, &turn);
	}
	return ERR_OK;
}
