#include "convert_defaults.h"

#include "base/emit.h"

/* Is it this field, raw as it stands in a body? */
static bool
is_same(struct span raw, struct span name)
{
	static const char *const limits[] = {
	    "max_tokens", "max_completion_tokens", "max_output_tokens"};

	if (!conf_is_limit(name))
		return scan_is(raw, name.p);
	for (size_t i = 0; i < NELEM(limits); i++)
		if (scan_is(raw, limits[i]))
			return true;
	return false;
}

/* Mark the defaults that an object has. */
static void
mark(struct span object, const struct convert_target *target, bool *has)
{
	struct scan_value value;
	struct span name;
	size_t at = 0;

	while (scan_next(text_trim(object), &at, &name, &value))
		for (size_t i = 0; i < target->ndefaults; i++)
			has[i] = has[i] || is_same(name, target->defaults[i].name);
}

/* What the target's API calls it. */
static struct span
name_there(const struct convert_target *target, struct span name)
{
	struct span quirk = target->channel->quirks.max_tokens;

	if (!conf_is_limit(name))
		return name;
	switch (target->channel->wire) {
	case WIRE_MESSAGES: return SPAN("max_tokens");
	case WIRE_RESPONSES: return SPAN("max_output_tokens");
	case WIRE_CHAT: break;
	}
	if (quirk.n > 0)
		return quirk;
	return text_is(name, "max_output_tokens") ? SPAN("max_tokens") : name;
}

bool
convert_defaults(const struct convert *convert, const struct convert_target *target,
    struct span body, struct edit *edit_out)
{
	struct span inside = text_from(text_trim(body), 1);
	struct buf *out;
	bool *has;

	if (target->ndefaults == 0)
		return false;
	out = arena_buf(convert->arena, SIZE_MAX / 2);
	has = arena_alloc(convert->arena, target->ndefaults * sizeof *has);
	mark(body, target, has);
	/* of run's own members none is a parameter */
	if (!convert->way.same && convert->rq->endpoint->wire != FORM_RUN)
		mark(convert->rq->read.body, target, has);
	for (size_t i = 0; i < target->ndefaults; i++) {
		if (has[i])
			continue;
		if (out->n > 0)
			buf_char(out, ',');
		emit_quoted(out, name_there(target, target->defaults[i].name));
		buf_char(out, ':');
		buf_span(out, target->defaults[i].value);
	}
	if (out->n > 0 && !text_starts(text_trim(inside), "}"))
		buf_char(out, ',');
	*edit_out = (struct edit){{inside.p, 0}, buf_text(out)};
	return out->n > 0;
}

int64_t
convert_defaults_limit(const struct convert_target *target)
{
	int64_t limit;

	for (size_t i = 0; i < target->ndefaults; i++)
		if (conf_is_limit(target->defaults[i].name) &&
		    text_i64(target->defaults[i].value, 1, INT32_MAX, &limit))
			return target->max_output > 0 && limit > target->max_output
			           ? target->max_output
			           : limit;
	return -1;
}
