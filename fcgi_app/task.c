#include "task.h"

#include "task_text.h"
#include "task_words.h"

#include <string.h>

#define ENOUGH 3         /* points that a task needs */
#define ANYWHERE_MAX 6   /* points of words that only occur */
#define CODE_SEEN_MAX 8  /* points of fences and the like */
#define LEAD_FIRST 11    /* points of the first request, less by its clause ... */
#define EARLY_CLAUSES 4  /* ... which is one of these */
#define LONG_CLAUSES 6   /* with more the end of a message counts, too: */
#define LEAD_LAST 8      /* points of a request there */
#define LEAD_BETWEEN 4   /* ... elsewhere */
#define SIMPLE_CHARS 200 /* a longer question is not simple */
#define TALK_CHARS 30    /* anything this short is, if nothing speaks against it */

struct scores {
	unsigned lead[TASK__MAX], anywhere[TASK__MAX];
	bool asks;     /* a word that asks */
	bool how_many; /* ... for a number */
	bool makes;    /* something is to be made */
	size_t clauses;
	bool ports; /* from one programming language to another */
};

static const char *const names[TASK__MAX] = {
    [TASK_CODE] = "code",
    [TASK_REASONING] = "reasoning",
    [TASK_TRANSLATION] = "translation",
    [TASK_SUMMARY] = "summary",
    [TASK_CREATIVE] = "creative",
    [TASK_SIMPLE] = "simple",
};

static bool
is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* Bytes of `word` where it stands at the beginning of `text`; 0 = it does not. */
static size_t
word_here(const char *word, struct span text)
{
	size_t n = strlen(word);
	bool open = n > 1 && word[n - 1] == '*';

	n -= open;
	if (text.n < n || memcmp(text.p, word, n) != 0)
		return 0;
	if (!open && is_alnum(word[n - 1]) && text.n > n && is_alnum(text.p[n]))
		return 0;
	return n;
}

/* A word of the table where it stands. */
struct found {
	const struct task_words *of; /* NULL: none */
	const char *word;
	size_t at, n;
};

/* The longest one at this place. */
static struct found
longest(struct span text, size_t at)
{
	struct found found = {.of = NULL, .at = at};
	struct span rest = text_from(text, at);

	for (size_t i = 0; i < task_nwords; i++)
		for (const char *const *word = task_words[i].at; *word != NULL; word++) {
			size_t n = **word == *rest.p ? word_here(*word, rest) : 0;

			if (n > found.n)
				found = (struct found){&task_words[i], *word, at, n};
		}
	return found;
}

/* Where the verb of an English request would stand. */
static size_t
after_openers(struct span clause)
{
	size_t at = 0;

	for (size_t i = 0; i < task_nopeners; i++) {
		size_t n = word_here(task_openers[i], text_from(clause, at));

		if (n == 0)
			continue;
		at += n;
		while (at < clause.n && clause.p[at] == ' ')
			at++;
		i = (size_t)-1; /* again from the first */
	}
	return at;
}

static bool
is_wide(const char *p)
{
	return (unsigned char)*p >= 0x80;
}

static bool
begins_word(struct span clause, size_t at)
{
	unsigned char c = (unsigned char)clause.p[at];

	if (c >= 0x80)
		return c >= 0xc0;
	return at == 0 || !is_alnum(clause.p[at - 1]);
}

/* One clause as it is read from left to right. */
struct reading {
	struct span clause;
	size_t lead; /* the place of an English verb */
	unsigned bonus;
	bool questions;                  /* it is a question, whatever follows */
	bool asked;                      /* a task's own verb was its request */
	const struct task_words *maker;  /* the request is to make something ... */
	const struct task_words *object; /* ... namely this */
};

static void
credit(unsigned *points, unsigned more, unsigned most)
{
	*points += more;
	if (*points > most)
		*points = most;
}

static bool
asks_a_number(const char *word)
{
	static const char *const words[] = {"how", "多少", "几", "幾", "多久", "多长", "多長"};

	for (size_t i = 0; i < NELEM(words); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

static void
lead(struct scores *s, enum task task, unsigned bonus)
{
	if (s->lead[task] < bonus)
		s->lead[task] = bonus;
}

/* Chinese tells so what somebody did. */
static bool
is_told(struct span behind)
{
	return text_starts(behind, "了") && !text_starts(behind, "了吗");
}

/* A word where a request begins. */
static void
read_request(struct scores *s, struct reading *r, const struct found *f)
{
	if (r->maker != NULL || r->asked)
		return;
	if (f->of->kind == TASK_WORD_MAKER && !r->questions)
		r->maker = f->of;
	if (f->of->kind != TASK_WORD_VERB || is_told(text_from(r->clause, f->at + f->n)))
		return;
	r->asked = true;
	lead(s, f->of->task, r->bonus);
}

/* "what is dog in french" */
static bool
is_in_language(const struct reading *r, const struct found *f)
{
	return f->of->task == TASK_TRANSLATION && text_starts(text_span(f->word), "in ") &&
	       f->at + f->n == r->clause.n;
}

static void
read_word(struct scores *s, struct reading *r, const struct found *f)
{
	bool wide = is_wide(f->word), leads = wide || f->at == r->lead;

	if (f->of->kind != TASK_WORD_MAKER)
		credit(&s->anywhere[f->of->task], f->of->points, ANYWHERE_MAX);
	if (f->of->kind == TASK_WORD_ASKS) {
		s->how_many |= asks_a_number(f->word);
		s->asks |= leads;
		r->questions |= leads;
	} else if (leads) {
		read_request(s, r, f);
	}
	if (r->questions && is_in_language(r, f))
		credit(&s->anywhere[TASK_TRANSLATION], f->of->points, ANYWHERE_MAX);
	/* what is made stands first in English, last in Chinese */
	if (f->of->kind == TASK_WORD_NOUN && r->maker != NULL && (wide || r->object == NULL))
		r->object = f->of;
}

/* "... to Rust": what looks like a translation is a port. */
static bool
is_port_at(struct span text)
{
	static const char *const before[] = {
	    "to ", "into ", "in ", "成", "成 ", "为", "为 ", "為", "為 "};
	static const char *const languages[] = {"python", "java", "javascript", "typescript", "c++",
	    "rust", "golang", "go", "kotlin", "swift", "ruby", "php", "perl", "c#", "c", "r",
	    "scala", "lua", "bash", "sql", "haskell"};

	for (size_t b = 0; b < NELEM(before); b++)
		for (size_t i = 0; i < NELEM(languages) && text_starts(text, before[b]); i++)
			if (word_here(languages[i], text_from(text, strlen(before[b]))) > 0)
				return true;
	return false;
}

static bool
is_port(struct span clause)
{
	for (size_t at = 0; at < clause.n; at++)
		if (begins_word(clause, at) && is_port_at(text_from(clause, at)))
			return true;
	return false;
}

static void
read_clause(struct scores *s, struct span clause, unsigned bonus)
{
	struct reading r = {.clause = clause, .lead = after_openers(clause), .bonus = bonus};
	unsigned translation = s->anywhere[TASK_TRANSLATION];

	for (size_t at = 0; at < clause.n; at++) {
		struct found f = {.of = NULL};

		if (begins_word(clause, at))
			f = longest(clause, at);
		if (f.of == NULL)
			continue;
		read_word(s, &r, &f);
		at += f.n - 1;
	}
	s->makes |= r.maker != NULL;
	if (r.object != NULL)
		lead(s, r.object->task, bonus);
	else if (r.maker != NULL && r.maker->points > 0)
		credit(&s->anywhere[r.maker->task], r.maker->points, ANYWHERE_MAX);
	if (s->anywhere[TASK_TRANSLATION] > translation && is_port(clause))
		s->ports = true;
}

/* What a request in this clause counts: the first one in a message, or the last in a long one, is the message's. */
static unsigned
bonus_of(const struct scores *s, size_t index, size_t n)
{
	bool first = index < EARLY_CLAUSES;

	for (unsigned i = 0; i < TASK__MAX; i++)
		first = first && s->lead[i] == 0;
	if (first)
		return LEAD_FIRST - (unsigned)index;
	return n > LONG_CLAUSES && index + 2 >= n ? LEAD_LAST : LEAD_BETWEEN;
}

static void
read_clauses(struct scores *s, struct span text)
{
	size_t n = 0, index = 0;
	struct span rest = text, clause;

	while (text_token(&rest, "\n", &clause))
		n++;
	s->clauses = n;
	for (; text_token(&text, "\n", &clause); index++)
		read_clause(s, text_trim(clause), bonus_of(s, index, n));
}

static unsigned
coding_tools(const struct task_prompt *prompt)
{
	unsigned n = 0;

	for (size_t i = 0; i < prompt->ntools && n < 2; i++)
		for (size_t t = 0; t < task_ncoding_tools; t++)
			if (text_has_fold(prompt->tools[i], task_coding_tools[t])) {
				n++;
				break;
			}
	return n;
}

static unsigned
code_seen(const struct task_text *t)
{
	const struct {
		unsigned seen, enough, points;
	} signs[] = {{t->fences, 1, 5}, {t->diffs, 1, 6}, {t->traces, 1, 5}, {t->code_lines, 2, 5},
	    {t->code_lines, 1, 3}, {t->files, 1, 3}, {t->calls, 1, 3}};
	unsigned points = 0;

	for (size_t i = 0; i < NELEM(signs); i++)
		if (signs[i].seen >= signs[i].enough)
			credit(&points, signs[i].points, CODE_SEEN_MAX);
	return points;
}

/* What the message holds beside words, and who can work on it. */
static void
weigh_structure(struct scores *s, const struct task_text *t, const struct task_prompt *prompt)
{
	static const unsigned tools[] = {0, 6, 15};

	s->anywhere[TASK_CODE] += code_seen(t) + tools[coding_tools(prompt)];
	if (t->formulas > 0)
		s->anywhere[TASK_REASONING] += 3;
	if (t->numbers > 1 && (s->how_many || (s->asks && s->clauses > 1)))
		s->anywhere[TASK_REASONING] += 4; /* a sum in words */
	if (s->asks && t->quotes > 0 && s->anywhere[TASK_TRANSLATION] > 0)
		s->anywhere[TASK_TRANSLATION] += 2; /* What is "..." in German? */
	if (s->ports)
		s->lead[TASK_CODE] = 2 * LEAD_FIRST;
}

static enum task
best_of(const struct scores *s)
{
	enum task best = TASK__MAX;
	unsigned most = ENOUGH - 1;

	for (unsigned i = 0; i < TASK__MAX; i++)
		if (s->lead[i] + s->anywhere[i] > most) {
			most = s->lead[i] + s->anywhere[i];
			best = (enum task)i;
		}
	return best;
}

/* Small talk, or a short question that needs no thought; what is not understood is not simple for that. */
static bool
is_simple(const struct scores *s, const struct task_text *t)
{
	if (t->chars == 0 || t->numbers > 1 || s->makes)
		return false;
	return t->chars <= ((t->asks || s->asks) ? SIMPLE_CHARS : TALK_CHARS);
}

enum task
task_guess(const struct task_prompt *prompt)
{
	struct scores s = {.asks = false};
	struct task_text t;
	enum task best;

	task_text_read(prompt->text, &t);
	read_clauses(&s, (struct span){t.bytes, t.n});
	weigh_structure(&s, &t, prompt);
	best = best_of(&s);
	return best == TASK__MAX && !prompt->has_picture && is_simple(&s, &t) ? TASK_SIMPLE : best;
}

const char *
task_name(enum task task)
{
	return task < TASK__MAX ? names[task] : "";
}

/* The next letter of a name, or 0. */
static char
next_letter(struct span *name)
{
	while (name->n > 0) {
		char c = *name->p;

		*name = text_from(*name, 1);
		if (c != '-' && c != '_' && c != ' ')
			return text_lower(c);
	}
	return '\0';
}

bool
task_spelt_alike(struct span a, struct span b)
{
	char c;

	do {
		c = next_letter(&a);
		if (c != next_letter(&b))
			return false;
	} while (c != '\0');
	return true;
}

enum task
task_named(struct span name)
{
	for (size_t i = 0; i < task_nsynonyms; i++)
		if (task_spelt_alike(name, text_span(task_synonyms[i].name)))
			return task_synonyms[i].task;
	return TASK__MAX;
}

bool
task_is_same(struct span a, struct span b)
{
	enum task task = task_named(a);

	return task_spelt_alike(a, b) || (task != TASK__MAX && task == task_named(b));
}
