#include "classify_table.h"

#define CLIENT VERDICT_CLIENT
#define CONTEXT VERDICT_CONTEXT_LENGTH
#define AUTH VERDICT_AUTH_FAILED
#define CREDIT VERDICT_HARD_CREDIT
#define SOFT VERDICT_SOFT_RATE
#define MODEL VERDICT_MODEL_RATE
#define MISSING VERDICT_MODEL_MISSING
#define OVERLOAD VERDICT_OVERLOAD
#define TRY_ONE VERDICT_UNEXPLAINED /* another account may do it; nobody is punished */

#define RATE_WORDS                                                                                   \
	"rate limit|rate-limit|ratelimit|rate_limit|too many requests|too many tokens, please wait|" \
	"tokens per min|tokens per day|requests per min|requests per day|requests per second"
#define RESET_WORDS "will reset at|limit will reset|重置"

/* Precedence of the classes: formats.md F.3. The numbers are those that SPEC.md section 6 and F.3 name. */
static const struct classify_row codes[] = {
    {.code = "6004", .verdict = MODEL},
    {.code = "14003", .verdict = SOFT, .whole = true},
    {.code = "14017", .verdict = CREDIT},
    {.code = "14018", .verdict = CREDIT},
    {.code = "11140",
        .text = RATE_WORDS "|" RESET_WORDS "|频率|限流",
        .verdict = SOFT,
        .whole = true},
    {.status = 403, .code = "11140", .text = "illegal", .verdict = AUTH},
    {.status = STATUS_BAND, .code = "11140", .text = "illegal", .verdict = AUTH},
    {.code = "11128", .verdict = CLIENT},
    {.code = "11101", .verdict = CLIENT},
    {.code = "11102", .verdict = MISSING},
    {.code = "11115", .verdict = CLIENT},
    {.code = "12153", .verdict = VERDICT_SESSION_DEAD},

    {.code = "context_length_exceeded", .verdict = CONTEXT},
    {.code = "string_above_max_length", .verdict = CONTEXT},
    {.code = "request_too_large", .verdict = CONTEXT},
    {.code = "exceed_context_size_error", .verdict = CONTEXT},
    {.code = "1261", .verdict = CONTEXT},

    {.code = "insufficient_quota", .verdict = CREDIT},
    {.code = "credit_balance_exhausted", .verdict = CREDIT},
    {.code = "billing_hard_limit_reached", .verdict = CREDIT},
    {.code = "billing_not_active", .verdict = CREDIT},
    {.code = "billing_error", .verdict = CREDIT},
    {.code = "organization_spend_limit_exceeded", .verdict = CREDIT},
    {.code = "project_spend_limit_exceeded", .verdict = CREDIT},
    {.code = "organization_usage_limit_exceeded", .verdict = CREDIT, .implied = IMPLIED_MONTH},
    {.code = "exceeded_current_quota_error", .verdict = CREDIT},
    {.code = "Arrearage", .verdict = CREDIT},
    {.code = "AccountOverdueError", .verdict = CREDIT},
    {.code = "insufficient_balance", .verdict = CREDIT},
    {.code = "insufficient_credits", .verdict = CREDIT},
    {.code = "1113", .verdict = CREDIT},

    {.code = "model_not_found", .verdict = MISSING},
    {.code = "model_not_supported", .verdict = MISSING},
    {.code = "ModelNotFound", .verdict = MISSING},
    {.code = "ModelNotSupported", .verdict = MISSING},
    {.code = "model_not_available", .verdict = MISSING},
    {.code = "InvalidEndpointOrModel*", .verdict = MISSING},
    {.code = "ModelNotOpen", .verdict = MISSING},
    {.code = "DeploymentNotFound", .verdict = MISSING},
    {.code = "1211", .verdict = MISSING},
    {.code = "20012", .verdict = MISSING},

    {.code = "content_filter", .verdict = CLIENT},
    {.code = "content_policy_violation", .verdict = CLIENT},
    {.code = "data_inspection_failed", .verdict = CLIENT},
    {.code = "DataInspectionFailed", .verdict = CLIENT},
    {.code = "moderation_blocked", .verdict = CLIENT},
    {.code = "invalid_prompt", .verdict = CLIENT},
    {.code = "bio_policy", .verdict = CLIENT},
    {.code = "SensitiveContentDetected*", .verdict = CLIENT},
    {.code = "1300", .verdict = CLIENT},
    {.code = "1301", .verdict = CLIENT},

    /* larger than the whole limit of this account: waiting does not help, a larger account does */
    {.code = "rate_limit_exceeded", .text = "^request too large", .verdict = TRY_ONE},
    {.code = "usage_limit_reached", .verdict = SOFT, .whole = true},
    {.code = "slow_down", .verdict = SOFT, .whole = true},
    {.code = "rate_limit_exceeded", .verdict = SOFT},
    {.code = "rate_limit_error", .verdict = SOFT},
    {.code = "rate_limit_reached_error", .verdict = SOFT},
    {.code = "RateLimitReached", .verdict = SOFT},
    {.code = "RateLimitExceeded.*", .verdict = MODEL},
    {.code = "RateLimitExceeded", .verdict = SOFT},
    {.code = "ModelAccount*RateLimitExceeded", .verdict = MODEL},
    {.code = "QuotaExceeded", .verdict = MODEL},
    {.code = "Throttling*", .verdict = SOFT},
    {.code = "RESOURCE_EXHAUSTED", .verdict = SOFT},
    {.code = "limit_requests", .verdict = SOFT},
    {.code = "too_many_requests", .verdict = SOFT},

    {.code = "overloaded_error", .verdict = OVERLOAD},
    {.code = "server_is_overloaded", .verdict = OVERLOAD},
    {.code = "engine_overloaded_error", .verdict = OVERLOAD},
    {.code = "service_unavailable_error", .verdict = OVERLOAD},
    {.code = "unavailable_error", .verdict = OVERLOAD},
    {.code = "UNAVAILABLE", .verdict = OVERLOAD},
    {.code = "ServerOverloaded", .verdict = OVERLOAD},
    {.code = "ModelServingError", .verdict = OVERLOAD},
    {.code = "MODEL_CAPACITY_EXHAUSTED", .verdict = OVERLOAD},
    {.code = "1305", .verdict = OVERLOAD},
    {.code = "1312", .verdict = OVERLOAD},

    {.code = "invalid_api_key", .verdict = AUTH},
    {.code = "InvalidApiKey", .verdict = AUTH},
    {.code = "API_KEY_INVALID", .verdict = AUTH},
    {.code = "authentication_error", .verdict = AUTH},
    {.code = "AuthenticationError", .verdict = AUTH},
    {.code = "invalid_authentication_error", .verdict = AUTH},
    {.code = "incorrect_api_key_error", .verdict = AUTH},
    {.code = "account_deactivated", .verdict = AUTH},
    {.code = "organization_on_hold", .verdict = AUTH},
    {.code = "validation_required", .verdict = AUTH},
    {.code = "unauthorized", .verdict = AUTH},

    {.code = "unsupported_parameter", .verdict = CLIENT},
    {.code = "unsupported_value", .verdict = CLIENT},
    {.code = "unknown_parameter", .verdict = CLIENT},
    {.code = "missing_required_parameter", .verdict = CLIENT},
    {.code = "invalid_parameter_error", .verdict = CLIENT},
    {.code = "extra_forbidden", .verdict = CLIENT},
    {.code = "invalid_value", .verdict = CLIENT},
    {.code = "invalid_type", .verdict = CLIENT},
};
const struct classify_table classify_table_codes = {
    .name = "generic", .rows = codes, .n = NELEM(codes)};

static const struct classify_row texts[] = {
    {.text =
            "prompt is too long|maximum context length is #|exceed* context window|"
            "exceed* context length|exceed* maximum context|context window exceeds limit|"
            "input is too long for requested model|input token count*exceeds the maximum|"
            "maximum prompt length is #|reduce the length of the messages|"
            "reduce the length of the prompt|longer than the model's context length|"
            "exceeds the available context size|greater than the context length|"
            "exceeded model token limit|too large for model with # maximum context length|"
            "range of input length should be|prompt exceeds max length|input token length too long|"
            "input length and*exceed context limit",
        .unless = RATE_WORDS,
        .verdict = CONTEXT,
        .raw_too = true},
    {.status = 400,
        .text = "input*exceeds the limit of #",
        .unless = RATE_WORDS,
        .verdict = CONTEXT},

    /* behind these words stands what the caller sent */
    {.status = STATUS_FAULT,
        .text = "^invalid value|^invalid type|^invalid schema|^invalid parameter|^invalid request|"
                "^invalid json|^invalid input|^invalid '|^unsupported value|^unsupported parameter|"
                "^unsupported content|^unknown parameter|^unrecognized|^missing required|"
                "^additional properties|^failed to parse|^failed to deserialize|^could not parse",
        .verdict = CLIENT},

    {.text = "insufficient balance|insufficient quota|insufficient credit|insufficient credits|"
             "insufficient funds|balance is insufficient|credit balance is too low|"
             "exceeded your current quota|quota exhausted|quota has been exhausted|free tier quota|"
             "free allocated quota|requires more credits|payment required|in good standing|"
             "out of credits|regain access on|余额不足|欠费|账户余额|额度已用尽|额度不足",
        .verdict = CREDIT},

    {.text = "model*does not exist|model*not found|model*not supported|"
             "does not have access to model|does not have access to the model|"
             "do not have access to model|do not have access to the model|not have access to*model|"
             "model*is no longer available|model*has been deprecated|model*has been retired|"
             "no endpoints found|模型不存在",
        .verdict = MISSING},

    {.text = "content management policy|was flagged|been flagged|sensitive content|sensitive words|"
             "inappropriate content|considered high risk|usage policies|不安全或敏感|敏感内容",
        .verdict = CLIENT},

    {.text = RATE_WORDS
        "|rpm limit|tpm limit|rpd limit|tpd limit|concurrency limit|high concurrency|"
        "concurrency too high|max concurrency|concurrent requests|"
        "concurrent connections|usage limit|frequency limit|" RESET_WORDS
        "|请求过于频繁|请求过多|并发|使用上限|频率限制|限流|速率限制",
        .verdict = SOFT},

    {.text = "overloaded|at capacity|tier capacity exceeded|high demand|temporarily unavailable|"
             "server is busy|loading model|繁忙|过载|访问量过大",
        .verdict = OVERLOAD},

    {.text = "incorrect api key|invalid api key|invalid api-key|invalid apikey|invalid x-api-key|"
             "api key not valid|api key is invalid|api key is not valid|api key expired|"
             "api key has expired|api key has been|api key:*is invalid|token expired|"
             "token has expired|organization has been disabled|account deactivated|"
             "account suspended|account disabled|account terminated|"
             "account has been deactivated|account has been suspended|"
             "account has been disabled|account has been terminated|无效的令牌|无效的api",
        .verdict = AUTH},
};
const struct classify_table classify_table_texts = {
    .name = "generic", .rows = texts, .n = NELEM(texts)};

/* Wider words, since a refusal is certain and only its cause is asked for. */
static const struct classify_row refused[] = {
    {.code = "*api_key*", .verdict = AUTH},
    {.code = "*authentication*", .verdict = AUTH},
    {.text = "api key|api-key|apikey|api_key|x-api-key|authentication|authenticate|authorization|"
             "invalid token|token is invalid|token is expired|access token|invalid_token|"
             "bearer token|subscription key|credential|credentials|密钥|令牌|鉴权|身份验证|认证",
        .verdict = AUTH},
    {.text = "credit|credits|billing|balance|payment|overdue", .verdict = CREDIT},
    {.text = "quota", .verdict = SOFT},
};
const struct classify_table classify_table_refused = {
    .name = "generic", .rows = refused, .n = NELEM(refused)};
