#include "dialect/chat_say.h"

#include "dialect/seal.h"

#define NAME_MAX_BYTES 64
#define TEXT_MAX ((size_t)1 << 31)

static enum err
refuse(struct chat_writer *w, const struct form_part *part, const char *what)
{
	char where[FORM_PLACE_BYTES];

	form_place(w->form, part, FORM_FIELD_MEDIA, where, sizeof where);
	err_why(w->why, "'%s' is %s, which this model's provider cannot be given", where, what);
	return ERR_BAD_INPUT;
}

static void
drop(struct chat_writer *w, const char *name)
{
	form_drop(w->loss, w->arena, text_span(name));
}

bool
chat_say_custom(const struct chat_writer *w)
{
	return w->host->openai && w->form->from == FORM_CHAT;
}

struct span
chat_say_name(struct chat_writer *w, struct span name, struct span namespace, bool custom)
{
	struct form_name kept = {
	    .original = name, .namespace = namespace, .custom = custom && !chat_say_custom(w)};

	if (namespace.n > 0)
		name = text_span(
		    arena_join(w->arena, (const struct span[]){namespace, SPAN("__"), name}, 3));
	kept.sent = form_tool_name(w->arena, name, NAME_MAX_BYTES);
	if (kept.custom || !text_equal(kept.sent, kept.original))
		form_rename(w->loss, w->arena, &kept);
	return kept.sent;
}

/* Texts of the kinds given, joined. Borrows where there is one. */
static struct span
join(struct chat_writer *w, const struct form_part *parts, size_t n, const char *glue,
    enum form_kind kind)
{
	struct span text = {"", 0};
	struct buf *all = NULL;

	for (size_t i = 0; i < n; i++) {
		struct span piece =
		    parts[i].kind == FORM_DOCUMENT ? parts[i].media.plain : parts[i].text;

		if (piece.n == 0 || (parts[i].kind != kind &&
		                        !(kind == FORM_TEXT && parts[i].kind == FORM_DOCUMENT)))
			continue;
		if (text.n == 0) {
			text = piece;
			continue;
		}
		if (all == NULL) {
			all = arena_buf(w->arena, TEXT_MAX);
			buf_span(all, text);
		}
		buf_z(all, glue);
		buf_span(all, piece);
		text = buf_text(all);
	}
	return text;
}

static void
begin(struct chat_writer *w, const char *role, const struct form_turn *turn)
{
	emit_object(&w->e, NULL);
	emit_z(&w->e, "role", role);
	if (turn->name.n > 0)
		emit_text(&w->e, "name", turn->name);
}

static void
say_text_part(struct chat_writer *w, struct span text, struct span cache)
{
	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", "text");
	emit_text(&w->e, "text", text);
	if (cache.n > 0)
		emit_raw(&w->e, "cache_control", cache);
	emit_end(&w->e);
}

static struct span
data_url(struct chat_writer *w, const struct form_media *media)
{
	return text_span(arena_join(w->arena,
	    (const struct span[]){SPAN("data:"), media->media_type, SPAN(";base64,"), media->data},
	    4));
}

static void
say_image(struct chat_writer *w, const struct form_media *media)
{
	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", "image_url");
	emit_object(&w->e, "image_url");
	emit_text(&w->e, "url", media->url.n > 0 ? media->url : data_url(w, media));
	if (media->detail.n > 0)
		emit_text(&w->e, "detail",
		    text_is(media->detail, "original") ? SPAN("high") : media->detail);
	emit_end(&w->e);
	emit_end(&w->e);
}

static void
say_file(struct chat_writer *w, const struct form_media *media)
{
	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", "file");
	emit_object(&w->e, "file");
	if (media->file_id.n > 0) {
		emit_text(&w->e, "file_id", media->file_id);
	} else {
		emit_text(
		    &w->e, "filename", media->title.n > 0 ? media->title : SPAN("document.pdf"));
		emit_text(&w->e, "file_data", data_url(w, media));
	}
	emit_end(&w->e);
	emit_end(&w->e);
}

static void
say_audio(struct chat_writer *w, const struct form_media *media)
{
	emit_object(&w->e, NULL);
	emit_z(&w->e, "type", "input_audio");
	emit_object(&w->e, "input_audio");
	emit_text(&w->e, "data", media->data);
	emit_text(&w->e, "format", media->media_type);
	emit_end(&w->e);
	emit_end(&w->e);
}

static enum err
check_document(struct chat_writer *w, const struct form_part *part)
{
	const struct form_media *media = &part->media;
	bool native = w->form->from == FORM_CHAT;

	if (media->plain.n > 0) {
		if (media->title.n > 0)
			drop(w, "title");
		return ERR_OK;
	}
	if (media->url.n > 0 || (media->file_id.n > 0 && !native))
		return refuse(w, part, "a document by URL or file id");
	if (!w->host->files && !native)
		return refuse(w, part, "a document");
	return ERR_OK;
}

/* What must not be left out of a user's turn or a result. */
static enum err
check_part(struct chat_writer *w, const struct form_turn *turn, const struct form_part *part)
{
	switch (part->kind) {
	case FORM_IMAGE:
		if (part->media.file_id.n > 0)
			return refuse(w, part, "an image by file id");
		break;
	case FORM_DOCUMENT: return check_document(w, part);
	case FORM_AUDIO:
		if (w->form->from != FORM_CHAT || part->media.file_id.n > 0)
			return refuse(w, part, "audio");
		break;
	case FORM_OPAQUE: drop(w, "server tool blocks"); break;
	case FORM_TEXT:
	case FORM_REFUSAL:
	case FORM_THOUGHT:
	case FORM_CALL:
	case FORM_RESULT: break;
	}
	/* only the texts of system and user messages are written as parts */
	if (part->cache_control.n > 0 &&
	    (!w->host->caches || part->kind != FORM_TEXT || turn->role == FORM_ASSISTANT ||
	        turn->role == FORM_TOOL))
		drop(w, "cache_control");
	return ERR_OK;
}

static void
say_part(struct chat_writer *w, const struct form_part *part)
{
	switch (part->kind) {
	case FORM_TEXT:
	case FORM_REFUSAL:
		say_text_part(
		    w, part->text, w->host->caches ? part->cache_control : (struct span){"", 0});
		break;
	case FORM_IMAGE: say_image(w, &part->media); break;
	case FORM_DOCUMENT:
		if (part->media.plain.n > 0)
			say_text_part(w, part->media.plain, (struct span){"", 0});
		else
			say_file(w, &part->media);
		break;
	case FORM_AUDIO: say_audio(w, &part->media); break;
	case FORM_THOUGHT:
	case FORM_CALL:
	case FORM_RESULT:
	case FORM_OPAQUE: break;
	}
}

/* Only text, and no cache mark that the host would take: one string is the safest. */
static bool
is_string(const struct chat_writer *w, const struct form_turn *turn)
{
	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_part *part = &turn->parts[i];

		if (w->host->caches && part->cache_control.n > 0 && part->kind == FORM_TEXT)
			return false;
		if (part->kind == FORM_IMAGE || part->kind == FORM_AUDIO ||
		    (part->kind == FORM_DOCUMENT && part->media.plain.n == 0))
			return false;
	}
	return true;
}

/* System, developer and user turns. */
static enum err
say_plain(struct chat_writer *w, const struct form_turn *turn, const char *role)
{
	for (size_t i = 0; i < turn->nparts; i++)
		if (check_part(w, turn, &turn->parts[i]) != ERR_OK)
			return ERR_BAD_INPUT;
	if (turn->nparts == 0)
		return ERR_OK;
	begin(w, role, turn);
	if (is_string(w, turn)) {
		emit_text(&w->e, "content",
		    join(w, turn->parts, turn->nparts, turn->role == FORM_USER ? "\n" : "\n\n",
		        FORM_TEXT));
	} else {
		emit_array(&w->e, "content");
		for (size_t i = 0; i < turn->nparts; i++)
			say_part(w, &turn->parts[i]);
		emit_end(&w->e);
	}
	emit_end(&w->e);
	return ERR_OK;
}

static void
say_call(struct chat_writer *w, const struct form_call *call)
{
	bool wrapped = call->custom && !chat_say_custom(w), custom = call->custom && !wrapped;
	struct span name = chat_say_name(w, call->name, call->namespace, call->custom);

	emit_object(&w->e, NULL);
	emit_text(&w->e, "id", form_id(w->arena, FORM_CHAT, call->id));
	emit_z(&w->e, "type", custom ? "custom" : "function");
	emit_object(&w->e, custom ? "custom" : "function");
	emit_text(&w->e, "name", name);
	if (wrapped) {
		struct buf *text = arena_buf(w->arena, TEXT_MAX);

		buf_z(text, "{\"input\":");
		emit_quoted(text, call->arguments);
		buf_char(text, '}');
		emit_text(&w->e, "arguments", buf_text(text));
	} else {
		emit_text(&w->e, custom ? "input" : "arguments", call->arguments);
	}
	emit_end(&w->e);
	emit_end(&w->e);
}

static bool
has(const struct form_turn *turn, enum form_kind kind)
{
	for (size_t i = 0; i < turn->nparts; i++)
		if (turn->parts[i].kind == kind)
			return true;
	return false;
}

/* What this very channel gave as reasoning_details: a JSON array. */
static bool
say_details(struct chat_writer *w, const struct form_part *part)
{
	struct span payload;

	if (!seal_fits(part->thought.seal, FORM_CHAT, w->target->channel, &payload) ||
	    !text_starts(payload, "[") || scan_pick(payload, NULL, NULL, 0, NULL) != ERR_OK)
		return false;
	emit_raw(&w->e, "reasoning_details", payload);
	return true;
}

static bool
wants_thoughts(const struct chat_writer *w, struct span text, bool calls)
{
	switch (w->host->replay) {
	case CHAT_REPLAY_NONE: break;
	case CHAT_REPLAY_CALLS:
		return calls && (text.n > 0 || chat_host_thinks(w->host, w->target, w->form));
	case CHAT_REPLAY_ALL: return text.n > 0;
	}
	return false;
}

static void
say_thoughts(struct chat_writer *w, const struct form_turn *turn, bool calls)
{
	static const char *const names[FORM_WIRE__MAX] = {[FORM_CHAT] = "reasoning_content",
	    [FORM_MESSAGES] = "thinking blocks",
	    [FORM_RESPONSES] = "reasoning items"};
	struct span text = join(w, turn->parts, turn->nparts, "\n\n", FORM_THOUGHT);
	bool given = false;

	for (size_t i = 0; i < turn->nparts && !given; i++)
		if (turn->parts[i].kind == FORM_THOUGHT)
			given = say_details(w, &turn->parts[i]);
	if (wants_thoughts(w, text, calls))
		emit_text(&w->e, "reasoning_content", text);
	else if (!given && has(turn, FORM_THOUGHT))
		drop(w, names[w->form->from]);
}

static void
say_calls(struct chat_writer *w, const struct form_turn *turn)
{
	emit_array(&w->e, "tool_calls");
	for (size_t i = 0; i < turn->nparts; i++)
		if (turn->parts[i].kind == FORM_CALL)
			say_call(w, &turn->parts[i].call);
	emit_end(&w->e);
}

static void
say_answer(struct chat_writer *w, const struct form_turn *turn, bool calls)
{
	struct span text = join(w, turn->parts, turn->nparts, "", FORM_TEXT);
	struct span refusal = join(w, turn->parts, turn->nparts, "", FORM_REFUSAL);
	bool openai = w->host->openai;

	if (text.n == 0 && !openai)
		text = refusal;
	begin(w, "assistant", turn);
	if (text.n == 0 && openai)
		emit_null(&w->e, "content");
	else
		emit_text(&w->e, "content", text);
	if (refusal.n > 0 && openai)
		emit_text(&w->e, "refusal", refusal);
	say_thoughts(w, turn, calls);
	if (calls)
		say_calls(w, turn);
	emit_end(&w->e);
}

static enum err
say_assistant(struct chat_writer *w, const struct form_turn *turn)
{
	bool calls = has(turn, FORM_CALL);

	for (size_t i = 0; i < turn->nparts; i++)
		if (check_part(w, turn, &turn->parts[i]) != ERR_OK)
			return ERR_BAD_INPUT;
	if (calls || has(turn, FORM_TEXT) || has(turn, FORM_REFUSAL))
		say_answer(w, turn, calls);
	else if (has(turn, FORM_THOUGHT)) /* several hosts refuse an empty message */
		drop(w, "thoughts without an answer");
	return ERR_OK;
}

static bool
is_attached(const struct form_part *part)
{
	return part->kind == FORM_IMAGE ||
	       (part->kind == FORM_DOCUMENT && part->media.plain.n == 0);
}

static enum err
say_result(struct chat_writer *w, const struct form_turn *turn, const struct form_result *result,
    bool *attached)
{
	struct span text = join(w, result->parts, result->nparts, "\n", FORM_TEXT);
	bool images = false;

	for (size_t i = 0; i < result->nparts; i++) {
		if (check_part(w, turn, &result->parts[i]) != ERR_OK)
			return ERR_BAD_INPUT;
		images |= is_attached(&result->parts[i]);
	}
	*attached |= images;
	if (text.n == 0 && images)
		text = SPAN("(see attached image)");
	if (result->is_error && !text_starts_fold(text, "error"))
		text = text_span(
		    arena_join(w->arena, (const struct span[]){SPAN("Error: "), text}, 2));
	emit_object(&w->e, NULL);
	emit_z(&w->e, "role", "tool");
	emit_text(&w->e, "tool_call_id", form_id(w->arena, FORM_CHAT, result->id));
	emit_text(&w->e, "content", text);
	emit_end(&w->e);
	return ERR_OK;
}

/* Tool messages hold text only: images follow in one message of the user. */
static enum err
say_results(struct chat_writer *w, const struct form_turn *turn)
{
	bool attached = false;

	for (size_t i = 0; i < turn->nparts; i++) {
		if (turn->parts[i].kind != FORM_RESULT)
			continue;
		if (check_part(w, turn, &turn->parts[i]) != ERR_OK ||
		    say_result(w, turn, &turn->parts[i].result, &attached) != ERR_OK)
			return ERR_BAD_INPUT;
	}
	if (!attached)
		return ERR_OK;
	emit_object(&w->e, NULL);
	emit_z(&w->e, "role", "user");
	emit_array(&w->e, "content");
	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_result *result = &turn->parts[i].result;

		for (size_t k = 0; k < result->nparts; k++)
			if (is_attached(&result->parts[k]))
				say_part(w, &result->parts[k]);
	}
	emit_end(&w->e);
	emit_end(&w->e);
	return ERR_OK;
}

/* A host without json_schema is told in words, behind the leading system texts. */
static void
say_schema(struct chat_writer *w)
{
	emit_object(&w->e, NULL);
	emit_z(&w->e, "role", "system");
	emit_text(&w->e, "content",
	    text_span(arena_join(w->arena,
	        (const struct span[]){
	            SPAN("Answer with one JSON object that matches this JSON schema:\n"),
	            w->form->schema},
	        2)));
	emit_end(&w->e);
}

static enum err
say_turn(struct chat_writer *w, const struct form_turn *turn)
{
	bool developer = w->host->developer && !w->target->developer_as_system;

	switch (turn->role) {
	case FORM_SYSTEM: return say_plain(w, turn, "system");
	case FORM_DEVELOPER: return say_plain(w, turn, developer ? "developer" : "system");
	case FORM_USER: return say_plain(w, turn, "user");
	case FORM_ASSISTANT: return say_assistant(w, turn);
	case FORM_TOOL: return say_results(w, turn);
	}
	return ERR_OK;
}

enum err
chat_say_turns(struct chat_writer *w)
{
	bool schema = w->form->shape == FORM_SHAPE_SCHEMA && !w->host->schema;

	emit_array(&w->e, "messages");
	for (size_t i = 0; i < w->form->nturns; i++) {
		const struct form_turn *turn = &w->form->turns[i];

		if (schema && turn->role != FORM_SYSTEM && turn->role != FORM_DEVELOPER) {
			say_schema(w);
			schema = false;
		}
		if (say_turn(w, turn) != ERR_OK)
			return ERR_BAD_INPUT;
	}
	if (schema)
		say_schema(w);
	emit_end(&w->e);
	return ERR_OK;
}
