#include "ctl/tokens_run.h"

#include "base/emit.h"
#include "conf/conf.h"
#include "ctl/args.h"
#include "ctl/human.h"
#include "dialect/tokens.h"
#include "tokenizer.h"

#include <errno.h>
#include <string.h>

#define TEXT_MAX ((size_t)256 << 20)
#define OUTPUT_MAX 65536
#define READ_BYTES 65536

struct counted {
	const char *model, *file;
	struct tokens_model by;
	struct buf text;
	int64_t tokens;
	char tables[PATH_MAX]; /* "": none */
};

/* No configuration is needed; with one the folder of its state_dir is a place, too. */
static bool
find_tables(struct ctl *ctl, char path_out[PATH_MAX])
{
	struct conf_report report = {.n = 0};
	struct conf *conf = NULL;
	char file[PATH_MAX];
	bool found;

	if (conf_find(ctl->conf_given, file, sizeof file, NULL) == ERR_OK &&
	    conf_load(file, &conf, &report, NULL) != ERR_OK)
		conf = NULL;
	conf_report_release(&report);
	found = tokenizer_find(conf == NULL ? "" : conf->state_dir.p, path_out);
	if (conf != NULL)
		conf_free(&conf);
	return found;
}

static bool
open_tables(struct ctl *ctl, struct counted *c, struct tokens **tokens_out)
{
	struct why why;

	*tokens_out = NULL;
	if (!find_tables(ctl, c->tables)) {
		c->tables[0] = '\0';
		return true;
	}
	if (tokens_open(c->tables, tokens_out, &why) != ERR_OK) {
		fprintf(ctl->err, "sluicectl: %s\n", why.text);
		return false;
	}
	if (!tokens_are_whole(*tokens_out)) {
		fprintf(ctl->err, "sluicectl: %s: it is damaged\n", c->tables);
		tokens_close(tokens_out);
		return false;
	}
	return true;
}

static bool
read_all(struct ctl *ctl, struct counted *c)
{
	bool from_stdin = strcmp(c->file, "-") == 0, ok;
	FILE *f = from_stdin ? stdin : fopen(c->file, "rbe");
	char *room;
	size_t n = 1;

	if (f == NULL) {
		fprintf(ctl->err, "sluicectl: %s: %s\n", c->file, strerror(errno));
		return false;
	}
	while (n > 0 && (room = buf_room(&c->text, READ_BYTES)) != NULL) {
		n = fread(room, 1, READ_BYTES, f);
		c->text.n += n;
	}
	ok = n == 0 && ferror(f) == 0;
	if (!from_stdin)
		fclose(f);
	if (!ok)
		fprintf(ctl->err, "sluicectl: %s: it cannot be read, or has more than %zu bytes\n",
		    c->file, TEXT_MAX);
	return ok;
}

/* Whose tables were used; NULL: those of estimate.h. */
static const char *
encoding_of(const struct tokens_model *by)
{
	if (!by->coded)
		return NULL;
	return by->by.table == ESTIMATE_CL100K ? "cl100k_base" : "o200k_base";
}

static int
tell(struct ctl *ctl, const struct counted *c)
{
	const char *encoding = encoding_of(&c->by);
	struct buf out;
	struct emit e;
	int status;

	if (!ctl->json) {
		fprintf(ctl->out, "%lld token%s, %s%s%s\n", (long long)c->tokens,
		    c->tokens == 1 ? "" : "s", c->by.exact ? "exactly" : "estimated",
		    encoding == NULL ? "" : ", by ", encoding == NULL ? "" : encoding);
		return CTL_DONE;
	}
	buf_init(&out, OUTPUT_MAX);
	emit_init(&e, &out);
	emit_object(&e, NULL);
	emit_z(&e, "model", c->model);
	emit_i64(&e, "tokens", c->tokens);
	emit_bool(&e, "exact", c->by.exact);
	emit_z(&e, "encoding", encoding);
	emit_i64(&e, "bytes", (int64_t)c->text.n);
	emit_z(&e, "tables", c->tables[0] == '\0' ? NULL : c->tables);
	emit_end(&e);
	buf_char(&out, '\n');
	status = human_print(ctl, &out);
	buf_release(&out);
	return status;
}

static int
count(struct ctl *ctl, struct counted *c)
{
	struct tokens *tokens;
	int status = CTL_FAILED;

	if (!open_tables(ctl, c, &tokens))
		return CTL_FAILED;
	buf_init(&c->text, TEXT_MAX);
	if (read_all(ctl, c)) {
		c->by = tokens_model(tokens, text_span(c->model));
		c->tokens = tokens_text(&c->by, buf_text(&c->text));
		status = tell(ctl, c);
	}
	buf_release(&c->text);
	tokens_close(&tokens);
	return status;
}

int
tokens_run(struct ctl *ctl, int argc, char **argv)
{
	struct counted c = {.model = NULL, .file = "-"};
	const struct args_option options[] = {{.name = "--model", .text = &c.model}};

	if (!args_read(ctl, &argc, argv, options, NELEM(options)))
		return CTL_USAGE;
	if (c.model == NULL || argc > 2) {
		fprintf(
		    ctl->err, "sluicectl: tokens wants --model and one file at most; see --help\n");
		return CTL_USAGE;
	}
	if (argc == 2)
		c.file = argv[1];
	return count(ctl, &c);
}
