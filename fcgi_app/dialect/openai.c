#include "dialect/openai.h"

#include "base/emit.h"

static void
emit_error(struct buf *out, int status, const char *type, const char *code, struct span message)
{
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_object(&e, "error");
	emit_text(&e, "message", message);
	emit_z(&e, "type", type == NULL ? dialect_error_type(status) : type);
	emit_null(&e, "param");
	emit_z(&e, "code", code);
	emit_end(&e);
	emit_end(&e);
}

void
openai_error_body(
    struct buf *out, int status, const char *type, const char *code, struct span message)
{
	emit_error(out, status, type, code, message);
	buf_char(out, '\n');
}

void
openai_error_event(
    struct buf *out, int status, const char *type, const char *code, struct span message)
{
	buf_z(out, "data: ");
	emit_error(out, status, type, code, message);
	buf_z(out, "\n\n");
}
