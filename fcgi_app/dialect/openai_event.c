#include "dialect/openai.h"

#include "dialect/value.h"

/* Members of the document, then of its first choice: in most events one pass finds them all. */
enum {
	CHOICES,
	ERROR,
	ERROR_LIST, /* Gemini: [{"error":{...}}] */
	USAGE,
	USAGE_GROQ,
	MODEL,
	CODE,
	MESSAGE,
	MSG,
	OBJECT,
	MINIMAX,
	FIRST,
	CHOICE, /* the choice's members from here, in the order of enum choice */
};

enum choice {
	CHOICE_FINISH,
	CHOICE_DELTA,
	CHOICE_MESSAGE,
	CHOICE_TEXT,
	CHOICE_ERROR,
	CHOICE_USAGE,
	CHOICE__MAX
};

#define EVENT__MAX (CHOICE + CHOICE__MAX)

/* clang-format off */
#define CHOICE_PATHS(prefix) \
	prefix "finish_reason", prefix "delta", prefix "message", prefix "text", prefix "error", \
	prefix "usage"
/* clang-format on */

static const char *const event_paths[EVENT__MAX] = {
    "choices",
    "error",
    "0.error",
    "usage",
    "x_groq.usage",
    "model",
    "code",
    "message",
    "msg",
    "object",
    "base_resp.status_code",
    "choices.0",
    CHOICE_PATHS("choices.0."),
};
static const char *const choice_paths[CHOICE__MAX] = {CHOICE_PATHS("")};

/* What a delta or message may bring. */
static const struct content {
	const char *name;
	enum { TEXT, THOUGHT, CALLS, CALL, OTHER } kind;
} contents[] = {
    {"content", TEXT},
    {"reasoning_content", THOUGHT},
    {"reasoning", THOUGHT},
    {"reasoning_text", THOUGHT},
    {"reasoning_details", OTHER},
    {"tool_calls", CALLS},
    {"function_call", CALL},
    {"refusal", TEXT},
    {"audio", OTHER},
    {"images", OTHER},
};

/* What the choices of one document have told. */
struct found {
	bool content, finish, error;
};

static size_t
call_bytes(const struct scan_value *function)
{
	struct scan_value arguments = value_member(function, "arguments");
	struct scan_value name = value_member(function, "name");

	return value_bytes(&arguments) + value_bytes(&name);
}

static size_t
calls_bytes(const struct scan_value *calls)
{
	struct scan_value call;
	struct span none;
	size_t at = 0, bytes = 0;

	if (calls->type == SCAN_ARRAY)
		while (scan_next(calls->raw, &at, &none, &call)) {
			struct scan_value function = value_member(&call, "function");
			struct scan_value custom = value_member(&call, "custom");
			struct scan_value input = value_member(&custom, "input");

			bytes += call_bytes(&function) + value_bytes(&input);
		}
	return bytes;
}

static const struct content *
find_content(struct span key)
{
	for (size_t i = 0; i < NELEM(contents); i++)
		if (scan_is(key, contents[i].name))
			return &contents[i];
	return NULL;
}

/* A string, or an array of parts with texts. */
static size_t
content_bytes(const struct scan_value *v)
{
	struct scan_value part;
	struct span none;
	size_t at = 0, bytes = value_bytes(v);

	if (v->type == SCAN_ARRAY)
		while (scan_next(v->raw, &at, &none, &part)) {
			struct scan_value text = value_member(&part, "text");

			bytes += value_bytes(&text);
		}
	return bytes;
}

/* True if a delta or message has any content. */
static bool
read_delta(const struct scan_value *delta, struct dialect_tap *tap)
{
	size_t at = 0, thought = 0;
	struct scan_value v;
	struct span key;
	bool found = false;

	if (delta->type != SCAN_OBJECT)
		return false;
	while (scan_next(delta->raw, &at, &key, &v)) {
		const struct content *content = value_says(&v) ? find_content(key) : NULL;
		size_t n;

		if (content == NULL)
			continue;
		found = true;
		switch (content->kind) {
		case TEXT: tap->content_bytes += content_bytes(&v); break;
		case THOUGHT:
			/* some hosts send the same text under two names */
			n = value_bytes(&v);
			thought = n > thought ? n : thought;
			break;
		case CALLS: tap->content_bytes += calls_bytes(&v); break;
		case CALL: tap->content_bytes += call_bytes(&v); break;
		case OTHER: break;
		}
	}
	tap->content_bytes += thought;
	return found;
}

static void
read_finish(const struct scan_value *v, struct dialect_tap *tap, struct found *found)
{
	if (v->type != SCAN_STRING || v->raw.n <= 2)
		return;
	if (scan_is(v->raw, "error") || scan_is(v->raw, "network_error")) {
		found->error = true;
		return;
	}
	found->finish = true;
	tap->finished = true;
	value_copy(tap->finish, sizeof tap->finish, v);
}

static void
read_choice(const struct scan_value v[CHOICE__MAX], struct dialect_tap *tap, struct found *found)
{
	bool content = read_delta(&v[CHOICE_DELTA], tap);

	content |= read_delta(&v[CHOICE_MESSAGE], tap);
	if (v[CHOICE_TEXT].type == SCAN_STRING && value_says(&v[CHOICE_TEXT])) {
		content = true;
		tap->content_bytes += value_bytes(&v[CHOICE_TEXT]);
	}
	found->content |= content;
	found->error |= value_says(&v[CHOICE_ERROR]);
	openai_usage(&v[CHOICE_USAGE], &tap->usage);
	read_finish(&v[CHOICE_FINISH], tap, found);
	tap->content |= content;
}

static bool
run_plan(struct scan_plan **plan, const char *const *paths, size_t n, struct span text,
    struct scan_value *values_out)
{
	if (*plan == NULL) {
		*plan = scan_plan_new(paths, n);
		scan_plan_lax(*plan);
	}
	return scan_run(*plan, text, values_out, NULL) == ERR_OK;
}

static bool
run_event(struct span text, struct scan_value v[EVENT__MAX])
{
	static struct scan_plan *plan;

	return run_plan(&plan, event_paths, EVENT__MAX, text, v);
}

/* The choices behind the first one; nearly always there is none. */
static void
read_more_choices(
    const struct scan_value v[EVENT__MAX], struct dialect_tap *tap, struct found *found)
{
	static struct scan_plan *plan;
	struct span first = v[FIRST].raw, all = v[CHOICES].raw, none;
	struct scan_value choice, members[CHOICE__MAX];
	size_t at = (size_t)(first.p + first.n - all.p);

	if (text_is(text_trim(text_from(all, at)), "]"))
		return;
	at = 0;
	(void)scan_next(all, &at, &none, &choice); /* the first */
	while (scan_next(all, &at, &none, &choice))
		if (choice.type == SCAN_OBJECT &&
		    run_plan(&plan, choice_paths, CHOICE__MAX, choice.raw, members))
			read_choice(members, tap, found);
}

static bool
has_choices(const struct scan_value v[EVENT__MAX])
{
	return v[CHOICES].type == SCAN_ARRAY && v[FIRST].type != SCAN_ABSENT;
}

static bool
is_text(const struct scan_value *value)
{
	return value->type == SCAN_STRING && value->raw.n > 2; /* more than its quotes */
}

static bool
is_good_code(struct span code)
{
	static const char *const good[] = {"0", "200", "\"0\"", "\"200\"", "null"};

	for (size_t i = 0; i < NELEM(good); i++)
		if (text_is(code, good[i]))
			return true;
	return false;
}

/* {"code":...,"message":...} without choices, and MiniMax's base_resp. */
static bool
is_flat_error(const struct scan_value v[EVENT__MAX])
{
	if (value_says(&v[MINIMAX]) && !text_is(v[MINIMAX].raw, "\"0\""))
		return true;
	if (has_choices(v) || (!is_text(&v[MESSAGE]) && !is_text(&v[MSG])))
		return false;
	if (v[OBJECT].type == SCAN_STRING && scan_is(v[OBJECT].raw, "error"))
		return true;
	if (v[CODE].type == SCAN_ABSENT)
		return v[CHOICES].type == SCAN_ABSENT;
	return !is_good_code(v[CODE].raw);
}

/* Usage, model and choices, into the tap. */
static struct found
read_document(const struct scan_value v[EVENT__MAX], struct dialect_tap *tap)
{
	struct found found = {
	    .error = value_says(&v[ERROR]) || value_says(&v[ERROR_LIST]) || is_flat_error(v)};

	openai_usage(&v[USAGE_GROQ], &tap->usage);
	if (has_choices(v)) {
		read_choice(&v[CHOICE], tap, &found);
		read_more_choices(v, tap, &found);
	}
	openai_usage(&v[USAGE], &tap->usage);
	if (tap->model[0] == '\0')
		value_copy(tap->model, sizeof tap->model, &v[MODEL]);
	return found;
}

enum dialect_part
openai_event(const struct sse_event *event, struct dialect_tap *tap)
{
	struct scan_value v[EVENT__MAX];
	struct span data = text_trim(event->data);
	struct found found;

	if (tap->ended)
		return PART_NOTHING;
	if (text_is(event->name, "error"))
		return PART_ERROR;
	if (data.n == 0)
		return PART_NOTHING;
	if (text_is(data, "[DONE]")) {
		tap->ended = true;
		return PART_END;
	}
	if (!run_event(data, v)) {
		tap->invalid++;
		tap->content = true;
		return PART_CONTENT;
	}
	found = read_document(v, tap);
	if (found.error)
		return PART_ERROR;
	if (found.finish)
		return PART_FINISH;
	if (found.content)
		return PART_CONTENT;
	if (!has_choices(v) && v[USAGE].type == SCAN_OBJECT)
		return PART_USAGE;
	return PART_PREAMBLE;
}

bool
openai_answer(struct span body, struct dialect_tap *tap)
{
	struct scan_value v[EVENT__MAX];
	struct found found;

	if (!run_event(body, v) || !has_choices(v))
		return false;
	if (v[CHOICE + CHOICE_MESSAGE].type != SCAN_OBJECT &&
	    v[CHOICE + CHOICE_TEXT].type != SCAN_STRING)
		return false;
	found = read_document(v, tap);
	return !found.error;
}

bool
openai_list(struct span body, const char *list, struct dialect_tap *tap)
{
	const char *const paths[] = {"error", "usage", "model", list};
	struct scan_value v[NELEM(paths)];
	struct scan_plan *plan = NULL;
	bool read = run_plan(&plan, paths, NELEM(paths), body, v);

	scan_plan_free(&plan);
	if (!read)
		return false;
	if (value_says(&v[0]) || v[3].type != SCAN_ARRAY)
		return false;
	openai_usage(&v[1], &tap->usage);
	value_copy(tap->model, sizeof tap->model, &v[2]);
	return true;
}
