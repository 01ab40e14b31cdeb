#include "endpoint.h"

static const struct endpoint table[] = {
    {"/v1/chat/completions", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD, &dialect_chat,
        FORM_CHAT, true},
    {"/v1/messages", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD, &dialect_messages,
        FORM_MESSAGES, true},
    {"/v1/messages/count_tokens", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD,
        &dialect_count_tokens, FORM_MESSAGES, false},
    {"/v1/responses", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD, &dialect_responses,
        FORM_RESPONSES, true},
    {"/v1/responses", true, ENDPOINT_GET | ENDPOINT_DELETE, ENDPOINT_CLIENT, ENDPOINT_RECALL,
        &dialect_responses, FORM_RESPONSES, false},
    {"/v1/run", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD, &dialect_run, FORM_RUN,
        true},
    {"/v1/completions", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD,
        &dialect_completions, FORM_CHAT, false},
    {"/v1/embeddings", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD, &dialect_embeddings,
        FORM_CHAT, false},
    {"/v1/moderations", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD,
        &dialect_moderations, FORM_CHAT, false},
    {"/v1/images/generations", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD,
        &dialect_images, FORM_CHAT, false},
    {"/v1/images/edits", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD,
        &dialect_image_edits, FORM_CHAT, false},
    {"/v1/images/variations", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD,
        &dialect_image_variations, FORM_CHAT, false},
    {"/v1/audio/speech", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD, &dialect_speech,
        FORM_CHAT, false},
    {"/v1/audio/transcriptions", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD,
        &dialect_transcriptions, FORM_CHAT, false},
    {"/v1/audio/translations", false, ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_FORWARD,
        &dialect_translations, FORM_CHAT, false},
    {"/v1/models", true, ENDPOINT_GET, ENDPOINT_CLIENT, ENDPOINT_MODELS, &dialect_chat, FORM_CHAT,
        false},
    {"/v1/doctor", false, ENDPOINT_GET | ENDPOINT_POST, ENDPOINT_CLIENT, ENDPOINT_DOCTOR,
        &dialect_chat, FORM_CHAT, false},
    {"/healthz", false, ENDPOINT_GET, ENDPOINT_ANYONE, ENDPOINT_HEALTHZ, &dialect_chat, FORM_CHAT,
        false},
    {"/status", false, ENDPOINT_GET, ENDPOINT_ADMIN, ENDPOINT_STATUS, &dialect_chat, FORM_CHAT,
        false},
};

const struct endpoint *
endpoint_find(struct span path)
{
	for (size_t i = 0; i < NELEM(table); i++) {
		struct span base = text_span(table[i].path);

		if (text_equal(path, base))
			return &table[i];
		if (table[i].below && path.n > base.n + 1 && path.p[base.n] == '/' &&
		    text_starts(path, table[i].path))
			return &table[i];
	}
	return NULL;
}

enum path_kind
endpoint_known(struct span path)
{
	const struct endpoint *endpoint = endpoint_find(path);

	if (endpoint == NULL)
		return PATH_UNKNOWN;
	return endpoint->who == ENDPOINT_ADMIN ? PATH_ADMIN : PATH_CLIENT;
}

const char *
endpoint_allow(const struct endpoint *endpoint)
{
	if (endpoint->methods == (ENDPOINT_GET | ENDPOINT_POST))
		return "GET, HEAD, POST, OPTIONS";
	if (endpoint->methods & ENDPOINT_DELETE)
		return "GET, HEAD, DELETE, OPTIONS";
	return endpoint->methods & ENDPOINT_POST ? "POST, OPTIONS" : "GET, HEAD, OPTIONS";
}

bool
endpoint_takes(const struct endpoint *endpoint, struct span method)
{
	if ((endpoint->methods & ENDPOINT_POST) && text_is(method, "POST"))
		return true;
	if ((endpoint->methods & ENDPOINT_DELETE) && text_is(method, "DELETE"))
		return true;
	return (endpoint->methods & ENDPOINT_GET) &&
	       (text_is(method, "GET") || text_is(method, "HEAD"));
}
