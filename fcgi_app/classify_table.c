#include "classify_table.h"

#define CLIENT VERDICT_CLIENT
#define CONTEXT VERDICT_CONTEXT_LENGTH
#define AUTH VERDICT_AUTH_FAILED
#define CREDIT VERDICT_HARD_CREDIT
#define SOFT VERDICT_SOFT_RATE
#define MODEL VERDICT_MODEL_RATE
#define MISSING VERDICT_MODEL_MISSING
#define OVERLOAD VERDICT_OVERLOAD
#define SERVER VERDICT_SERVER
#define NETWORK VERDICT_NETWORK
#define TRY_ONE VERDICT_UNEXPLAINED /* another account may do it; nobody is punished */

static const struct classify_row openai[] = {
    {.code = "usage_limit_reached", .verdict = SOFT, .whole = true},
    {.code = "slow_down", .verdict = SOFT, .whole = true},
    {.code = "organization_usage_limit_exceeded", .verdict = CREDIT, .implied = IMPLIED_MONTH},
    {.code = "invalid_organization", .verdict = AUTH},
    {.text = "must be a member of an organization", .verdict = AUTH},
    {.code = "unsupported_country_region_territory", .verdict = NETWORK},
    {.code = "previous_response_not_found", .verdict = CLIENT},
    {.code = "invalid_encrypted_content", .verdict = CLIENT},
    {.text = "item with id*not found", .verdict = CLIENT},
    /* a key may be narrower than what the caller asks of it */
    {.text = "insufficient permissions for this operation|missing scopes", .verdict = TRY_ONE},
};

static const struct classify_row anthropic[] = {
    {.status = 429, .text = "usage credits are required", .verdict = CLIENT},
    {.code = "enforced_spend_limit_reached", .verdict = CREDIT, .implied = IMPLIED_MONTH},
    {.code = "contract_spend_limit_reached", .verdict = CREDIT, .implied = IMPLIED_MONTH},
    {.code = "*spend_limit_reached", .verdict = CREDIT},
    {.code = "linked_organization_billing_unavailable", .verdict = CREDIT},
    {.text = "credit balance is too low", .verdict = CREDIT},
    {.text = "reached your specified api usage limits", .verdict = CREDIT},
    {.code = "ramp_limit_exceeded", .verdict = SOFT, .whole = true},
    {.code = "claude_code_version_too_old", .verdict = CLIENT},
    {.text = "organization has been disabled", .verdict = AUTH},
    {.status = 404, .code = "not_found_error", .text = "^model:", .verdict = MISSING},
    {.status = 429, .text = "input tokens per minute|output tokens per minute", .verdict = MODEL},
};

static const struct classify_row zhipu[] = {
    {.code = "1000", .verdict = AUTH},
    {.code = "1001", .verdict = AUTH},
    {.code = "1002", .verdict = AUTH},
    {.code = "1003", .verdict = AUTH},
    {.code = "1004", .verdict = AUTH},
    {.code = "1005", .verdict = AUTH},
    {.code = "1110", .verdict = AUTH},
    {.code = "1111", .verdict = AUTH},
    {.code = "1112", .verdict = AUTH},
    {.code = "1113", .verdict = CREDIT},
    {.code = "1120", .verdict = SOFT},
    {.code = "1121", .verdict = AUTH},
    {.code = "1200", .verdict = SERVER},
    {.code = "1210", .verdict = CLIENT},
    {.code = "1211", .verdict = MISSING},
    {.code = "1212", .verdict = CLIENT},
    {.code = "1213", .verdict = CLIENT},
    {.code = "1214", .verdict = CLIENT},
    {.code = "1215", .verdict = CLIENT},
    {.code = "1220", .verdict = MISSING},
    {.code = "1221", .verdict = MISSING},
    {.code = "1222", .verdict = MISSING},
    {.code = "1230", .verdict = SERVER},
    {.code = "1231", .verdict = CLIENT},
    {.code = "1234", .verdict = SERVER},
    {.code = "1261", .verdict = CONTEXT},
    {.code = "1300", .verdict = CLIENT},
    {.code = "1301", .verdict = CLIENT},
    {.code = "1302", .verdict = SOFT},
    {.code = "1303", .verdict = SOFT},
    {.code = "1304", .verdict = SOFT, .implied = IMPLIED_CHINA_DAY},
    {.code = "1305", .verdict = OVERLOAD},
    {.code = "1308", .verdict = SOFT},
    {.code = "1309", .verdict = CREDIT},
    {.code = "1310", .verdict = SOFT},
    {.code = "1311", .verdict = MISSING},
    {.code = "1312", .verdict = OVERLOAD},
    {.code = "1313", .verdict = SOFT},
    {.code = "1316", .verdict = SOFT},
    {.code = "1317", .verdict = SOFT},
    {.code = "1318", .verdict = SOFT},
    {.code = "1319", .verdict = SOFT},
    {.code = "1320", .verdict = SOFT},
    {.code = "1321", .verdict = SOFT},
    {.status = 434, .verdict = AUTH},
};

/* Free quotas are a model's; "insufficient_quota" with this text is tokens per minute, not money. */
static const struct classify_row dashscope[] = {
    {.code = "Model.AccessDenied", .verdict = MISSING},
    {.code = "*Unpurchased", .verdict = MISSING},
    {.code = "*AccessDenied", .text = "does not support|model", .verdict = MISSING},
    {.code = "*AccessDenied", .verdict = AUTH},
    {.code = "AllocationQuota.FreeTierOnly", .verdict = MODEL},
    {.text = "free allocated quota exceeded", .verdict = MODEL},
    {.text = "^allocated quota exceeded", .verdict = MODEL},
    {.code = "Throttling*", .verdict = MODEL},
    {.code = "limit_requests", .verdict = MODEL},
    {.code = "limit_burst_rate", .verdict = MODEL},
    {.code = "InvalidParameter*", .text = "range of input length should be", .verdict = CONTEXT},
    {.code = "invalid_parameter*", .text = "range of input length should be", .verdict = CONTEXT},
    {.code = "InternalError*", .verdict = SERVER},
    {.code = "ModelServingError", .verdict = OVERLOAD},
    {.code = "ServiceUnavailable", .verdict = OVERLOAD},
    {.code = "ModelUnavailable", .verdict = OVERLOAD},
};

static const struct classify_row moonshot[] = {
    {.text = "usage limit for this billing cycle", .verdict = CREDIT},
    {.text = "current state: suspended", .verdict = CREDIT},
    {.text = "only available for coding agents|access terminated", .verdict = AUTH},
    {.status = 404, .code = "resource_not_found_error", .verdict = MISSING},
    {.status = 429, .code = "engine_overloaded_error", .verdict = OVERLOAD},
    {.status = 429,
        .code = "rate_limit_reached_error",
        .text = "tpd",
        .verdict = SOFT,
        .implied = IMPLIED_CHINA_DAY},
};

static const struct classify_row siliconflow[] = {
    {.code = "30001", .verdict = CREDIT},
    {.code = "30003", .verdict = MISSING},
    {.status = 403, .text = "real-name|real name|实名", .verdict = MISSING},
    {.status = 429,
        .text = "tpm limit reached|rpm limit reached|tpm/rpm limit reached",
        .verdict = MODEL},
    {.code = "50505", .verdict = OVERLOAD},
    {.code = "50501", .verdict = OVERLOAD},
    {.status = 504, .verdict = OVERLOAD},
};

static const struct classify_row openrouter[] = {
    {.code = "in_flight_budget_exhausted", .verdict = SOFT},
    {.text = "key limit exceeded", .verdict = CREDIT},
    {.status = 429, .text = "free-models-per-", .verdict = SOFT},
    {.status = 403, .code = "moderation_reasons", .verdict = CLIENT},
    {.status = 429, .code = "provider_name", .verdict = OVERLOAD},
};

/* The short retryDelay of a daily quota misleads. */
static const struct classify_row gemini[] = {
    {.code = "*PerDay*", .verdict = MODEL, .implied = IMPLIED_PACIFIC_DAY},
    {.code = "*PerMinute*", .verdict = MODEL},
    {.code = "MODEL_CAPACITY_EXHAUSTED", .verdict = OVERLOAD},
    {.text = "spending cap|spend cap", .verdict = CREDIT},
    {.code = "API_KEY_INVALID", .verdict = AUTH},
    {.code = "SERVICE_DISABLED", .verdict = AUTH},
    {.code = "UNAUTHENTICATED", .verdict = AUTH},
    {.text = "api key not valid|api key expired|reported as leaked", .verdict = AUTH},
    {.status = 403, .text = "consumer*has been suspended", .verdict = AUTH},
    {.text = "user location is not supported", .verdict = NETWORK},
    {.code = "RESOURCE_EXHAUSTED", .verdict = MODEL},
    {.status = 404, .text = "models/", .verdict = MISSING},
    {.code = "DEADLINE_EXCEEDED", .verdict = SERVER},
    {.code = "INTERNAL", .verdict = SERVER},
};

static const struct classify_row azure[] = {
    {.code = "NoCapacity", .verdict = OVERLOAD},
    {.status = 429, .text = "high demand", .verdict = OVERLOAD},
    {.code = "ResponsibleAIPolicyViolation", .verdict = CLIENT},
    {.text = "invalid subscription key", .verdict = AUTH},
    {.status = 403,
        .text = "virtual network|firewall|public access is disabled|private endpoint",
        .verdict = NETWORK},
    {.status = 404, .text = "^resource not found", .verdict = VERDICT_NOT_FOUND},
    {.status = 424, .verdict = SERVER},
};

static const struct classify_row xai[] = {
    {.text =
            "used all available credits|run out of credits|monthly spending limit|have any credits",
        .verdict = CREDIT},
};

#define TABLE(id, label, array) [id] = {.name = label, .rows = array, .n = NELEM(array)}

static const struct classify_table tables[PROVIDER__MAX] = {
    [PROVIDER_COMPATIBLE] = {.name = "openai-compatible"},
    [PROVIDER_DEEPSEEK] = {.name = "deepseek"},
    TABLE(PROVIDER_OPENAI, "openai", openai),
    TABLE(PROVIDER_ANTHROPIC, "anthropic", anthropic),
    TABLE(PROVIDER_ZHIPU, "zhipu", zhipu),
    TABLE(PROVIDER_DASHSCOPE, "dashscope", dashscope),
    TABLE(PROVIDER_MOONSHOT, "moonshot", moonshot),
    TABLE(PROVIDER_SILICONFLOW, "siliconflow", siliconflow),
    TABLE(PROVIDER_OPENROUTER, "openrouter", openrouter),
    TABLE(PROVIDER_GEMINI, "gemini", gemini),
    TABLE(PROVIDER_XAI, "xai", xai),
    TABLE(PROVIDER_AZURE, "azure", azure),
};

const struct classify_table *
classify_table_of(enum provider_id id)
{
	return &tables[id < PROVIDER__MAX ? id : PROVIDER_COMPATIBLE];
}

/* MiniMax */
static const struct classify_row base_resp[] = {
    {.code = "1000", .verdict = SERVER},
    {.code = "1001", .verdict = SERVER},
    {.code = "1002", .verdict = SOFT},
    {.code = "1004", .verdict = AUTH},
    {.code = "1008", .verdict = CREDIT},
    {.code = "1013", .verdict = SERVER},
    {.code = "1024", .verdict = SERVER},
    {.code = "1026", .verdict = CLIENT},
    {.code = "1027", .verdict = CLIENT},
    {.code = "1033", .verdict = SERVER},
    {.code = "1039", .verdict = MODEL},
    {.code = "1041", .verdict = SOFT},
    {.code = "2013", .text = "context window exceeds limit", .verdict = CONTEXT},
    {.code = "2013", .verdict = CLIENT},
    {.code = "2049", .verdict = AUTH},
    {.code = "2056", .verdict = SOFT, .whole = true},
};
const struct classify_table classify_table_base_resp = {
    .name = "minimax", .rows = base_resp, .n = NELEM(base_resp)};
