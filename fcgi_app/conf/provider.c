#include "conf/provider.h"

static const struct provider table[PROVIDER__MAX] = {
    [PROVIDER_COMPATIBLE] = {.id = PROVIDER_COMPATIBLE, .name = "openai-compatible"},
    [PROVIDER_OPENAI] =
        {
            .id = PROVIDER_OPENAI,
            .name = "openai",
            .base_url = "https://api.openai.com/v1",
            .limits_per_model = true,
        },
    [PROVIDER_ANTHROPIC] =
        {
            .id = PROVIDER_ANTHROPIC,
            .name = "anthropic",
            .base_url = "https://api.anthropic.com/v1",
            .wire = WIRE_MESSAGES,
            .auth = AUTH_X_API_KEY,
        },
    [PROVIDER_DEEPSEEK] = {.id = PROVIDER_DEEPSEEK,
        .name = "deepseek",
        .base_url = "https://api.deepseek.com"},
    [PROVIDER_ZHIPU] =
        {
            .id = PROVIDER_ZHIPU,
            .name = "zhipu",
            .base_url = "https://open.bigmodel.cn/api/paas/v4",
            .timezone = "Asia/Shanghai",
            .utc_offset = "+08:00",
        },
    [PROVIDER_DASHSCOPE] =
        {
            .id = PROVIDER_DASHSCOPE,
            .name = "dashscope",
            .base_url = "https://dashscope.aliyuncs.com/compatible-mode/v1",
            .timezone = "Asia/Shanghai",
            .utc_offset = "+08:00",
        },
    [PROVIDER_MOONSHOT] = {.id = PROVIDER_MOONSHOT,
        .name = "moonshot",
        .base_url = "https://api.moonshot.cn/v1"},
    [PROVIDER_SILICONFLOW] = {.id = PROVIDER_SILICONFLOW,
        .name = "siliconflow",
        .base_url = "https://api.siliconflow.cn/v1"},
    [PROVIDER_OPENROUTER] = {.id = PROVIDER_OPENROUTER,
        .name = "openrouter",
        .base_url = "https://openrouter.ai/api/v1"},
    [PROVIDER_GEMINI] =
        {
            .id = PROVIDER_GEMINI,
            .name = "gemini",
            .base_url = "https://generativelanguage.googleapis.com/v1beta/openai",
            .limits_per_model = true,
        },
    [PROVIDER_XAI] = {.id = PROVIDER_XAI, .name = "xai", .base_url = "https://api.x.ai/v1"},
    /* each customer has a host of his own */
    [PROVIDER_AZURE] = {.id = PROVIDER_AZURE,
        .name = "azure",
        .auth = AUTH_API_KEY,
        .limits_per_model = true},
};

const struct provider *
provider_at(enum provider_id id)
{
	return &table[id];
}

const struct provider *
provider_find(struct span name)
{
	for (size_t i = 0; i < NELEM(table); i++)
		if (text_is(name, table[i].name))
			return &table[i];
	return NULL;
}
