#include "classify_status.h"

enum verdict
classify_status_verdict(int status)
{
	static const struct {
		int status;
		enum verdict verdict;
	} known[] = {
	    {402, VERDICT_HARD_CREDIT},
	    {407, VERDICT_NETWORK}, /* of the proxy between */
	    {408, VERDICT_SERVER},
	    {409, VERDICT_SERVER},
	    {424, VERDICT_SERVER},
	    {425, VERDICT_SOFT_RATE},
	    {429, VERDICT_SOFT_RATE},
	    {498, VERDICT_OVERLOAD},
	    {499, VERDICT_SERVER},
	    {503, VERDICT_OVERLOAD},
	    {529, VERDICT_OVERLOAD},
	};

	for (size_t i = 0; i < NELEM(known); i++)
		if (known[i].status == status)
			return known[i].verdict;
	return status >= 400 && status < 500 ? VERDICT_CLIENT : VERDICT_SERVER;
}

int
classify_status_of_type(const struct locate_error *error)
{
	static const struct {
		const char *type;
		int status;
	} types[] = {
	    {"invalid_request_error", 400},
	    {"authentication_error", 401},
	    {"billing_error", 402},
	    {"permission_error", 403},
	    {"not_found_error", 404},
	    {"request_too_large", 413},
	    {"rate_limit_error", 429},
	    {"api_error", 500},
	    {"server_error", 500},
	    {"timeout_error", 504},
	    {"overloaded_error", 529},
	};

	for (size_t i = 0; i < error->ncodes; i++)
		for (size_t j = 0; j < NELEM(types); j++)
			if (text_is(error->codes[i], types[j].type))
				return types[j].status;
	return 0;
}

int
classify_status_of_verdict(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_CLIENT:
	case VERDICT_CONTEXT_LENGTH: return 400;
	case VERDICT_AUTH_FAILED:
	case VERDICT_SESSION_DEAD: return 401;
	case VERDICT_HARD_CREDIT: return 402;
	case VERDICT_UNEXPLAINED: return 403;
	case VERDICT_MODEL_MISSING:
	case VERDICT_NOT_FOUND: return 404;
	case VERDICT_SOFT_RATE:
	case VERDICT_MODEL_RATE: return 429;
	case VERDICT_OVERLOAD: return 503;
	case VERDICT_OK: return 200;
	case VERDICT_SERVER:
	case VERDICT_NETWORK:
	case VERDICT_CANCELLED:
	case VERDICT_NOBODY:
	case VERDICT__MAX: break;
	}
	return 502;
}
