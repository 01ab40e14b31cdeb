#include "dialect/openai.h"
#include "dialect/read.h"

static enum err
check(const struct dialect_request *request, struct why *why)
{
	enum err err = dialect_check_model(request, why);

	return err == ERR_OK ? dialect_check_text(&request->input, "input", why) : err;
}

static bool
answer(struct span body, struct dialect_tap *tap)
{
	return openai_list(body, "data", tap);
}

const struct dialect dialect_embeddings = {
    .name = "embeddings",
    .path = "/embeddings",
    .judged = false,
    .streams = false,
    .usage_option = false,
    .check = check,
    .event = openai_event,
    .answer = answer,
    .end_marker = "",
    .error_body = openai_error_body,
    .error_event = openai_error_event,
};
