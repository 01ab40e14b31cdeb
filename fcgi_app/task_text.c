#include "task_text.h"

#include <stddef.h>
#include <string.h>

#define QUOTE_MAX 300 /* bytes: what is longer is no quotation */
#define ENOUGH 1000   /* counting stops there */
#define END_BYTES \
	65536 /* of a message, and of a line, at each end: nothing between them is looked at but fences */

/* The text as it is gathered: the first bytes, and the last ones in a ring. */
struct gather {
	struct task_text *out;
	char tail[TASK_TEXT_TAIL];
	size_t tail_n; /* bytes that went there in all */
	bool keep_quotes;
	/* a fence */
	bool fenced, fence_is_code, fence_counted;
	bool in_diff;
};

static void
count(unsigned *n)
{
	if (*n < ENOUGH)
		(*n)++;
}

static bool
is_word(char c)
{
	return text_is_letter(c) || text_is_digit(c) || c == '_';
}

static void
put(struct gather *g, char c)
{
	struct task_text *out = g->out;
	size_t at = g->tail_n > 0 ? (g->tail_n - 1) % TASK_TEXT_TAIL : 0;
	char last = g->tail_n > 0 ? g->tail[at] : out->n > 0 ? out->bytes[out->n - 1] : '\n';

	if ((c == ' ' || c == '\n') && last == '\n')
		return;
	if (c == ' ' && last == ' ')
		return;
	if (out->n < TASK_TEXT_HEAD)
		out->bytes[out->n++] = c;
	else
		g->tail[g->tail_n++ % TASK_TEXT_TAIL] = c;
}

/* Head, and behind a break what is left of the tail. */
static void
join(struct gather *g)
{
	struct task_text *out = g->out;
	size_t n = g->tail_n < TASK_TEXT_TAIL ? g->tail_n : TASK_TEXT_TAIL;
	size_t from = g->tail_n - n;

	if (g->tail_n > TASK_TEXT_TAIL)
		out->bytes[out->n++] = '\n';
	for (size_t i = 0; i < n; i++)
		out->bytes[out->n++] = g->tail[(from + i) % TASK_TEXT_TAIL];
	if (out->n == 0 || out->bytes[out->n - 1] != '\n')
		out->bytes[out->n++] = '\n';
}

static bool
starts_any(struct span line, const char *const *starts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text_starts(line, starts[i]))
			return true;
	return false;
}

/* A line as only programs have it. */
static bool
is_code_line(struct span line)
{
	static const char *const sure[] = {"#include", "#!/", "$ ", "import ", "SELECT ", "}"};
	static const char *const starts[] = {"def ", "from ", "public ", "private ", "static ",
	    "const ", "let ", "var ", "func ", "fn ", "function ", "return ", "if (", "for (",
	    "while (", "class ", "</", "//"};
	char last = line.n > 0 ? line.p[line.n - 1] : ' ';

	if (starts_any(line, sure, NELEM(sure)))
		return true;
	if (line.n < 2)
		return false;
	return memchr(";{", last, 2) != NULL ||
	       (memchr(":)}>", last, 4) != NULL && starts_any(line, starts, NELEM(starts)));
}

static bool
is_trace_line(struct span line)
{
	static const char *const starts[] = {"Traceback (most recent", "File \"", "at java.",
	    "at com.", "at org.", "at Object.", "panic: ", "goroutine ", "Segmentation fault",
	    "Exception in thread", "Caused by: ", "error[E", "error: ", "fatal error: ", "npm ERR!",
	    "fatal: ", "ERROR: "};
	struct span at = SPAN("at ");

	if (starts_any(line, starts, NELEM(starts)))
		return true;
	/* at load (server.js:12:5) */
	return text_starts(line, "at ") && line.n > at.n && line.p[line.n - 1] == ')' &&
	       memchr(line.p, ':', line.n) != NULL;
}

static bool
is_diff_line(struct gather *g, struct span line)
{
	static const char *const starts[] = {"diff --git ", "@@ -", "--- a/", "+++ b/", "index "};

	if (text_starts(line, "diff --git ") || text_starts(line, "@@ -") ||
	    text_starts(line, "--- a/")) {
		g->in_diff = true;
		count(&g->out->diffs);
		return true;
	}
	if (!g->in_diff)
		return false;
	if (line.n > 0 && (line.p[0] == '+' || line.p[0] == '-'))
		return true;
	return starts_any(line, starts, NELEM(starts));
}

static bool
is_fence(struct span line)
{
	return text_starts(line, "```") || text_starts(line, "~~~");
}

static void
fence_line(struct gather *g, struct span line)
{
	static const char *const plain[] = {
	    "text", "txt", "markdown", "md", "plain", "plaintext", "quote", "email", "csv"};
	struct span language = text_trim(text_from(line, 3));

	g->fenced = !g->fenced;
	if (!g->fenced)
		return;
	g->fence_counted = false;
	g->fence_is_code = language.n > 0 && language.n < 20;
	for (size_t i = 0; i < NELEM(plain); i++)
		if (text_is_fold(language, plain[i]))
			g->fence_is_code = false;
	if (g->fence_is_code) {
		count(&g->out->fences);
		g->fence_counted = true;
	}
}

/* Inside a fence: one that says no language is of code when its lines are. */
static void
fenced_line(struct gather *g, struct span line)
{
	if (is_trace_line(line))
		count(&g->out->traces);
	if (g->fence_counted || !is_code_line(line))
		return;
	count(&g->out->fences);
	g->fence_counted = true;
}

/* Bytes of a quotation that begins at `at`, with its marks; 0 = it is none. */
static size_t
quoted(struct span line, size_t at)
{
	static const struct {
		const char *open, *close;
	} marks[] = {{"\"", "\""}, {"`", "`"}, {"\xe2\x80\x9c", "\xe2\x80\x9d"},
	    {"\xe3\x80\x8c", "\xe3\x80\x8d"}, {"\xe3\x80\x8e", "\xe3\x80\x8f"},
	    {"\xe3\x80\x8a", "\xe3\x80\x8b"}, {"'", "'"}};
	struct span rest = text_from(line, at);

	if (memchr("\"`'\xe2\xe3", line.p[at], 5) == NULL)
		return 0;
	for (size_t i = 0; i < NELEM(marks); i++) {
		struct span close = text_span(marks[i].close), inside;
		size_t skip = strlen(marks[i].open), end;

		if (!text_starts(rest, marks[i].open))
			continue;
		/* an apostrophe */
		if (marks[i].open[0] == '\'' && at > 0 && line.p[at - 1] != ' ')
			return 0;
		inside = text_from(rest, skip);
		if (inside.n > QUOTE_MAX)
			inside.n = QUOTE_MAX;
		end = text_find(inside, close);
		return end == inside.n ? 0 : skip + end + close.n;
	}
	return 0;
}

/* Bytes of a mark that ends a clause; 0 = none stands here. */
static size_t
clause_end(struct span line, size_t at)
{
	static const char *const wide[] = {"\xe3\x80\x82", "\xef\xbc\x8c", "\xef\xbc\x81",
	    "\xef\xbc\x9f", "\xef\xbc\x9a", "\xef\xbc\x9b"};
	char next = at + 1 < line.n ? line.p[at + 1] : ' ';
	struct span rest = {line.p + at, line.n - at};

	if (memchr("!?,", line.p[at], 3) != NULL)
		return 1;
	if (memchr(".:;", line.p[at], 3) != NULL)
		return next == ' ' || (unsigned char)next >= 0x80;
	return (unsigned char)line.p[at] >= 0x80 && starts_any(rest, wide, NELEM(wide)) ? 3 : 0;
}

/* main.c, src/app.py: the dot between them is at `at`. */
static bool
is_file_name(struct span line, size_t at)
{
	static const char *const endings[] = {"c", "h", "cc", "cpp", "hpp", "cs", "py", "js", "jsx",
	    "ts", "tsx", "vue", "go", "rs", "java", "kt", "swift", "rb", "php", "pl", "lua", "sh",
	    "sql", "css", "scss", "html", "toml", "yaml", "yml", "json", "ipynb", "gradle", "cmake",
	    "xml"};
	size_t end = at + 1;
	struct span ending;

	if (at < 2 || !is_word(line.p[at - 1]) || !is_word(line.p[at - 2]))
		return false;
	while (end < line.n && end - at < 8 && is_word(line.p[end]))
		end++;
	if (end < line.n && is_word(line.p[end]))
		return false;
	ending = (struct span){line.p + at + 1, end - at - 1};
	for (size_t i = 0; i < NELEM(endings); i++)
		if (text_is_fold(ending, endings[i]))
			return true;
	return false;
}

static char
char_at(struct span line, size_t at)
{
	return at < line.n ? line.p[at] : ' ';
}

/* parse() */
static bool
is_call(struct span line, size_t at)
{
	return at > 0 && is_word(line.p[at - 1]) && char_at(line, at + 1) == ')';
}

/* user_name */
static bool
is_snake(struct span line, size_t at)
{
	return at > 0 && text_is_letter(line.p[at - 1]) && text_is_letter(char_at(line, at + 1));
}

/* useEffect */
static bool
is_camel(struct span line, size_t at)
{
	return at > 1 && line.p[at - 1] >= 'a' && line.p[at - 2] >= 'a' &&
	       text_is_letter(line.p[at - 1]) && text_is_letter(line.p[at - 2]) &&
	       char_at(line, at + 1) >= 'a' && text_is_letter(char_at(line, at + 1));
}

/* TypeError */
static bool
is_exception(struct span line, size_t at)
{
	static const char *const ends[] = {"Error", "Exception"};

	return at > 1 && line.p[at - 1] >= 'a' && text_is_letter(line.p[at - 1]) &&
	       starts_any(text_from(line, at), ends, NELEM(ends));
}

static bool
is_latex(struct span line, size_t at)
{
	static const char *const latex[] = {"\\frac", "\\int", "\\sum", "\\sqrt", "\\lim", "\\(",
	    "\\[", "\\begin{", "\\cdot", "\\leq", "\\forall"};

	return starts_any(text_from(line, at), latex, NELEM(latex));
}

/* x^2 */
static bool
is_power(struct span line, size_t at)
{
	char next = char_at(line, at + 1);

	return at > 0 && is_word(line.p[at - 1]) && (is_word(next) || next == '{' || next == '(');
}

/* "+ 5 = 20", "y = 3" */
static bool
is_equation(struct span line, size_t at)
{
	if (at < 2 || line.p[at - 1] != ' ' || char_at(line, at + 1) != ' ')
		return false;
	return text_is_digit(line.p[at - 2]) ||
	       (text_is_letter(line.p[at - 2]) && (at == 2 || line.p[at - 3] == ' '));
}

/* 3x */
static bool
is_unknown(struct span line, size_t at)
{
	return at > 0 && text_is_digit(line.p[at - 1]) && !is_word(char_at(line, at + 1));
}

static bool
is_number(struct span line, size_t at)
{
	return at == 0 || !is_word(line.p[at - 1]);
}

static void
count_at(struct task_text *out, struct span line, size_t at)
{
	static const struct {
		const char *first; /* its bytes */
		bool (*is)(struct span line, size_t at);
		size_t counter;
	} signs[] = {
	    {"0123456789", is_number, offsetof(struct task_text, numbers)},
	    {".", is_file_name, offsetof(struct task_text, files)},
	    {"(", is_call, offsetof(struct task_text, calls)},
	    {"_", is_snake, offsetof(struct task_text, calls)},
	    {"ABCDEFGHIJKLMNOPQRSTUVWXYZ", is_camel, offsetof(struct task_text, calls)},
	    {"E", is_exception, offsetof(struct task_text, traces)},
	    {"\\", is_latex, offsetof(struct task_text, formulas)},
	    {"^", is_power, offsetof(struct task_text, formulas)},
	    {"=", is_equation, offsetof(struct task_text, formulas)},
	    {"xyz", is_unknown, offsetof(struct task_text, formulas)},
	};

	if (line.p[at] == ' ' || (line.p[at] >= 'a' && line.p[at] < 'x'))
		return; /* most of a text */
	for (size_t i = 0; i < NELEM(signs); i++)
		if (memchr(signs[i].first, line.p[at], strlen(signs[i].first)) != NULL &&
		    signs[i].is(line, at))
			count((unsigned *)(void *)((char *)out + signs[i].counter));
}

static void
plain_part(struct gather *g, struct span line)
{
	for (size_t at = 0; at < line.n;) {
		size_t skip = g->keep_quotes ? 0 : quoted(line, at), end;

		if (skip > 0) {
			count(&g->out->quotes);
			put(g, ' ');
			at += skip;
			continue;
		}
		count_at(g->out, line, at);
		end = clause_end(line, at);
		if (end > 0) {
			put(g, '\n');
			at += end;
			continue;
		}
		put(g, line.p[at] == '\t' ? ' ' : text_lower(line.p[at]));
		at++;
	}
	put(g, '\n');
}

static void
plain_line(struct gather *g, struct span line)
{
	if (line.n <= (size_t)2 * END_BYTES) {
		plain_part(g, line);
		return;
	}
	plain_part(g, (struct span){line.p, END_BYTES});
	plain_part(g, text_from(line, line.n - END_BYTES));
}

static void
take_line(struct gather *g, struct span raw)
{
	struct span line = text_trim(raw);

	if (is_fence(line)) {
		fence_line(g, line);
		return;
	}
	if (g->fenced) {
		fenced_line(g, line);
		return;
	}
	if (text_starts(line, ">") || is_diff_line(g, raw))
		return;
	if (is_trace_line(line)) {
		count(&g->out->traces);
		return;
	}
	if (is_code_line(line))
		count(&g->out->code_lines);
	plain_line(g, line);
}

static void
take(struct gather *g, struct span message)
{
	for (size_t at = 0; at < message.n;) {
		struct span rest = {message.p + at, message.n - at};
		const char *end = memchr(rest.p, '\n', rest.n);

		if (end != NULL)
			rest.n = (size_t)(end - rest.p);
		if (at < END_BYTES || at + rest.n + END_BYTES >= message.n)
			take_line(g, rest);
		else if (is_fence(text_trim(rest)))
			g->fenced = !g->fenced;
		at += rest.n + 1;
	}
	join(g);
}

void
task_text_read(struct span message, struct task_text *text_out)
{
	struct gather g = {.out = text_out};
	struct span end = text_trim(message);

	memset(text_out, 0, sizeof *text_out);
	take(&g, message);
	/* nothing but a quotation: then that is the message */
	if (text_out->n <= 2 && text_out->fences == 0 && text_out->traces == 0) {
		memset(text_out, 0, sizeof *text_out);
		g = (struct gather){.out = text_out, .keep_quotes = true};
		take(&g, message);
	}
	text_out->asks = text_ends(end, "?") || text_ends(end, "\xef\xbc\x9f");
	for (size_t i = 0; i < end.n; i++)
		text_out->chars += ((unsigned char)end.p[i] & 0xc0) != 0x80;
}
