#include "conf/conf.h"

#include "base/emit.h"
#include "conf/expand.h"
#include "conf/options.h"
#include "conf/quantity.h"

#include <string.h>

#define MASK "********"

/* Indented JSON: `comma` says that something stands before at this depth. */
struct print {
	struct buf *out;
	unsigned depth;
	bool comma;
};

static void
print_text(struct buf *out, struct span text)
{
	struct buf escaped;

	buf_init(&escaped, out->max);
	expand_escape(text, &escaped);
	emit_quoted(out, buf_text(&escaped));
	buf_release(&escaped);
}

static void
print_name(struct print *p, struct span name)
{
	buf_z(p->out, p->comma ? ",\n" : "\n");
	for (unsigned i = 0; i < p->depth; i++)
		buf_char(p->out, '\t');
	if (name.n > 0) {
		emit_quoted(p->out, name);
		buf_z(p->out, ": ");
	}
	p->comma = true;
}

static void
print_open(struct print *p, struct span name, char bracket)
{
	if (p->depth > 0)
		print_name(p, name);
	buf_char(p->out, bracket);
	p->depth++;
	p->comma = false;
}

static void
print_close(struct print *p, char bracket)
{
	p->depth--;
	if (p->comma) {
		buf_char(p->out, '\n');
		for (unsigned i = 0; i < p->depth; i++)
			buf_char(p->out, '\t');
	}
	buf_char(p->out, bracket);
	p->comma = true;
}

static void
print_texts(struct buf *out, const struct conf_strings *list)
{
	buf_char(out, '[');
	for (size_t i = 0; i < list->n; i++) {
		buf_z(out, i == 0 ? "" : ", ");
		print_text(out, list->at[i]);
	}
	buf_char(out, ']');
}

static void
print_numbers(struct buf *out, const struct conf_numbers *list, bool clocks)
{
	char text[QUANTITY_TEXT];

	buf_char(out, '[');
	for (size_t i = 0; i < list->n; i++) {
		if (clocks)
			quantity_print_clock(list->at[i], text);
		else
			quantity_print_duration(list->at[i], text);
		buf_print(out, "%s\"%s\"", i == 0 ? "" : ", ", text);
	}
	buf_char(out, ']');
}

static void
print_choices(struct buf *out, const char *const *choices, unsigned bits)
{
	const char *comma = "";

	buf_char(out, '[');
	for (unsigned i = 0; choices[i] != NULL; i++)
		if ((bits >> i & 1) != 0) {
			buf_print(out, "%s\"%s\"", comma, choices[i]);
			comma = ", ";
		}
	buf_char(out, ']');
}

/* An address with its user and password masked. */
static void
print_address(struct buf *out, struct span text)
{
	size_t from = text_find(text, SPAN("://")) + 3, at = text_find(text, SPAN("@"));
	struct buf masked;

	if (at == text.n || from > at) {
		print_text(out, text);
		return;
	}
	buf_init(&masked, text.n + sizeof MASK);
	buf_add(&masked, text.p, from);
	buf_z(&masked, MASK);
	buf_span(&masked, text_from(text, at));
	print_text(out, buf_text(&masked));
	buf_release(&masked);
}

static void
print_span(struct buf *out, const struct option *row, struct span text)
{
	if (text_ends(text_span(row->path), "proxy") || strcmp(row->path, "redis.url") == 0)
		print_address(out, text);
	else
		print_text(out, text);
}

static void
print_number(struct buf *out, const struct option *row, const void *at)
{
	char text[QUANTITY_TEXT];

	if (row->type == OPTION_REAL)
		quantity_print_real(*(const double *)at, text);
	else if (row->type == OPTION_MICROS)
		quantity_print_micros(*(const int64_t *)at, text);
	else if (row->type == OPTION_DURATION)
		quantity_print_duration(*(const int64_t *)at, text);
	else if (row->type == OPTION_SIZE)
		quantity_print_size(*(const int64_t *)at, text);
	else
		quantity_print_clock(*(const int *)at, text);
	if (row->type == OPTION_DURATION || row->type == OPTION_SIZE || row->type == OPTION_CLOCK)
		buf_print(out, "\"%s\"", text);
	else
		buf_z(out, text);
}

static void
print_value(struct buf *out, const struct option *row, const void *at)
{
	switch (row->type) {
	case OPTION_BOOL: buf_z(out, *(const bool *)at ? "true" : "false"); break;
	case OPTION_INT: buf_i64(out, *(const int64_t *)at); break;
	case OPTION_REAL:
	case OPTION_MICROS:
	case OPTION_DURATION:
	case OPTION_SIZE:
	case OPTION_CLOCK: print_number(out, row, at); break;
	case OPTION_TEXT:
	case OPTION_PATH:
	case OPTION_ZONE: print_span(out, row, *(const struct span *)at); break;
	case OPTION_TEXTS: print_texts(out, at); break;
	case OPTION_DURATIONS: print_numbers(out, at, false); break;
	case OPTION_CLOCKS: print_numbers(out, at, true); break;
	case OPTION_CHOICE: buf_print(out, "\"%s\"", row->choices[*(const int *)at]); break;
	case OPTION_CHOICES: print_choices(out, row->choices, *(const unsigned *)at); break;
	case OPTION_OTHER:
	case OPTION__MAX: break;
	}
}

/* What is printed: a group's rows with the structs that hold them. */
struct view {
	enum options_group group;
	const void *base;
	const struct conf_policy *policy; /* for rows in_policy */
	const struct conf_policy *unlike; /* only those that differ from this one; NULL: all */
	bool (*skip)(const struct option *row, const void *base);
};

static bool
is_shown(const struct view *view, const struct option *row)
{
	struct buf mine, other;
	bool same;

	if (strcmp(row->path, "routing.tasks") == 0)
		return view->unlike == NULL;
	if (row->type == OPTION_OTHER || (view->skip != NULL && view->skip(row, view->base)))
		return false;
	if (view->unlike == NULL)
		return true;
	if (!row->in_policy)
		return false;
	buf_init(&mine, 1 << 20);
	buf_init(&other, 1 << 20);
	print_value(&mine, row, (const char *)view->policy + row->offset);
	print_value(&other, row, (const char *)view->unlike + row->offset);
	same = text_equal(buf_text(&mine), buf_text(&other));
	buf_release(&mine);
	buf_release(&other);
	return !same;
}

static void
print_tasks(struct print *p, const struct conf *conf)
{
	print_open(p, SPAN("tasks"), '{');
	for (size_t i = 0; i < conf->routing.ntasks; i++) {
		print_name(p, conf->routing.tasks[i].name);
		print_texts(p->out, &conf->routing.tasks[i].models);
	}
	print_close(p, '}');
}

/* The rows as members; those of "a.b" in an object "a". */
static void
print_rows(struct print *p, const struct view *view)
{
	const struct option_group *group = &options_groups[view->group];
	struct span section = {NULL, 0};

	for (const struct option *row = group->rows; row < group->rows + group->n; row++) {
		struct span path = text_span(row->path),
		            mine = {path.p, text_find(path, SPAN("."))};
		const char *base = row->in_policy ? (const char *)view->policy : view->base;

		if (!is_shown(view, row))
			continue;
		mine.n = mine.n == path.n ? 0 : mine.n;
		if (section.n > 0 && !text_equal(mine, section))
			print_close(p, '}');
		if (mine.n > 0 && !text_equal(mine, section))
			print_open(p, mine, '{');
		section = mine;
		if (row->type == OPTION_OTHER) {
			print_tasks(p, view->base);
			continue;
		}
		print_name(p, mine.n == 0 ? path : text_from(path, mine.n + 1));
		print_value(p->out, row, base + row->offset);
	}
	if (section.n > 0)
		print_close(p, '}');
}

static void
print_member_text(struct print *p, struct span name, struct span text)
{
	print_name(p, name);
	print_text(p->out, text);
}

static bool
skip_account(const struct option *row, const void *base)
{
	const struct conf_account *account = base;

	return strcmp(row->path, "credits") == 0 && !account->has_credits;
}

static void
print_account(struct print *p, const struct conf_account *account)
{
	const struct view view = {.group = OPTIONS_ACCOUNT, .base = account, .skip = skip_account};

	print_open(p, SPAN(""), '{');
	print_rows(p, &view);
	if (account->key.hidden.n > 0)
		print_member_text(p, SPAN("api_key"), SPAN(MASK));
	print_open(p, SPAN("headers"), '{');
	for (size_t i = 0; i < account->nheaders; i++)
		print_member_text(p, account->headers[i].name, SPAN(MASK));
	print_close(p, '}');
	print_close(p, '}');
}

static void
print_rules(struct print *p, const struct conf_channel *ch)
{
	print_open(p, SPAN("rules"), '[');
	for (size_t i = 0; i < ch->nrules; i++) {
		const struct view view = {.group = OPTIONS_RULE, .base = &ch->rules[i]};

		print_open(p, SPAN(""), '{');
		print_rows(p, &view);
		print_close(p, '}');
	}
	print_close(p, ']');
}

static bool
skip_balance(const struct option *row, const void *base)
{
	const struct conf_channel *ch = base;

	return strncmp(row->path, "balance.", 8) == 0 && ch->balance.url.n == 0;
}

static void
print_channel(struct print *p, const struct conf *conf, const struct conf_channel *ch)
{
	const struct view view = {.group = OPTIONS_CHANNEL, .base = ch, .skip = skip_balance};
	const struct view policy = {
	    .group = OPTIONS_GLOBAL, .policy = &ch->policy, .unlike = &conf->policy};

	print_open(p, ch->name, '{');
	print_member_text(p, SPAN("provider"), text_span(ch->provider->name));
	print_rows(p, &view);
	print_open(p, SPAN("fallback"), '[');
	for (size_t i = 0; i < ch->nfallback; i++)
		print_member_text(p, SPAN(""), conf->channels[ch->fallback[i]].name);
	print_close(p, ']');
	print_rules(p, ch);
	print_rows(p, &policy);
	print_open(p, SPAN("accounts"), '[');
	for (size_t i = 0; i < ch->naccounts_inline; i++)
		print_account(p, &ch->accounts[i]);
	print_close(p, ']');
	print_close(p, '}');
}

/* "${" in a value's text stands in a string, or nowhere. */
static void
print_defaults(struct print *p, const struct conf_header *list, size_t n)
{
	print_open(p, SPAN("defaults"), '{');
	for (size_t i = 0; i < n; i++) {
		print_name(p, list[i].name);
		expand_escape(list[i].value, p->out);
	}
	print_close(p, '}');
}

static bool
skip_target(const struct option *row, const void *base)
{
	const struct conf_target *target = base;

	return strncmp(row->path, "cost.", 5) == 0 && !target->cost.given;
}

static bool
skip_model(const struct option *row, const void *base)
{
	const struct conf_model *model = base;

	return (strncmp(row->path, "cost.", 5) == 0 && !model->cost.given) ||
	       (strcmp(row->path, "strategy") == 0 && model->strategy < 0);
}

/* What a target took over is shown with it: reading that again gives the same. */
static void
print_target(struct print *p, const struct conf *conf, const struct conf_target *target)
{
	const struct view view = {.group = OPTIONS_TARGET, .base = target, .skip = skip_target};

	print_open(p, SPAN(""), '{');
	print_member_text(p, SPAN("channel"), conf->channels[target->channel].name);
	print_rows(p, &view);
	print_defaults(p, target->defaults, target->ndefaults);
	print_close(p, '}');
}

static void
print_model(struct print *p, const struct conf *conf, const struct conf_model *model)
{
	const struct view view = {.group = OPTIONS_MODEL, .base = model, .skip = skip_model};

	print_open(p, model->name, '{');
	print_open(p, SPAN("targets"), '[');
	for (size_t i = 0; i < model->ntargets; i++)
		print_target(p, conf, &model->targets[i]);
	print_close(p, ']');
	print_rows(p, &view);
	print_defaults(p, model->defaults, model->ndefaults);
	print_close(p, '}');
}

void
conf_print(const struct conf *conf, struct buf *out)
{
	const struct view view = {.group = OPTIONS_GLOBAL, .base = conf, .policy = &conf->policy};
	struct print p = {.out = out};

	print_open(&p, SPAN(""), '{');
	print_rows(&p, &view);
	print_open(&p, SPAN("models"), '{');
	for (size_t i = 0; i < conf->nmodels; i++)
		print_model(&p, conf, &conf->models[i]);
	print_close(&p, '}');
	print_open(&p, SPAN("channels"), '{');
	for (size_t i = 0; i < conf->nchannels; i++)
		print_channel(&p, conf, &conf->channels[i]);
	print_close(&p, '}');
	print_close(&p, '}');
	buf_char(out, '\n');
}
