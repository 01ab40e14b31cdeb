#include "conf/claim.h"

static const char *const clients[] = {
    "AUTHORIZATION", /* mod_fcgid's FcgidPassHeader */
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "DOCUMENT_URI",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "QUERY_STRING",
    "REMOTE_IDENT",
    "REMOTE_PORT",
    "REQUEST_METHOD",
    "REQUEST_URI",
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "SCRIPT_URI",
    "SCRIPT_URL",
    "SERVER_NAME",
    "SERVER_PROTOCOL",
    "SSL_TLS_SNI",
    "THE_REQUEST",
};

bool
claim_is_clients(struct span name)
{
	while (text_starts_fold(name, "REDIRECT_"))
		name = text_from(name, 9);
	if (text_starts_fold(name, "HTTP_"))
		return true;
	for (size_t i = 0; i < NELEM(clients); i++)
		if (text_is_fold(name, clients[i]))
			return true;
	return false;
}
