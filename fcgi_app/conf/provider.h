/*
 * provider - what is known of each named provider before anything is configured: one row each.
 *
 * Source    formats.md 0.5, A.9, D.7, F
 */
#ifndef CONF_PROVIDER_H
#define CONF_PROVIDER_H

#include "base/text.h"

enum provider_id {
	PROVIDER_COMPATIBLE, /* "openai-compatible": no default base_url */
	PROVIDER_OPENAI,
	PROVIDER_ANTHROPIC,
	PROVIDER_DEEPSEEK,
	PROVIDER_ZHIPU,
	PROVIDER_DASHSCOPE,
	PROVIDER_MOONSHOT,
	PROVIDER_SILICONFLOW,
	PROVIDER_OPENROUTER,
	PROVIDER_GEMINI,
	PROVIDER_XAI,
	PROVIDER_AZURE,
	PROVIDER__MAX
};

enum provider_wire { WIRE_CHAT, WIRE_MESSAGES, WIRE_RESPONSES };
enum provider_auth { AUTH_BEARER, AUTH_X_API_KEY, AUTH_API_KEY };

struct provider {
	enum provider_id id;
	const char *name;
	const char *base_url; /* NULL: must be configured */
	enum provider_wire wire;
	enum provider_auth auth;
	const char *timezone; /* of times without a zone: "Asia/Shanghai" for zhipu and dashscope */
	const char *utc_offset; /* the same on a host without zone files: "+08:00" */
	bool limits_per_model;  /* a plain rate limit is model_rate */
};

const struct provider *provider_find(struct span name); /* or NULL */
const struct provider *provider_at(enum provider_id id);

#endif
