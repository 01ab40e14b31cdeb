/*
 * doctor_remedy - what mends a trouble in a set-up, and where to write it: one table. Pure.
 *
 * Source    hosting.md 0, 1, 2, 4, 5; what .htaccess may hold was tried with Apache 2.4
 */
#ifndef CTL_DOCTOR_REMEDY_H
#define CTL_DOCTOR_REMEDY_H

#include "ctl/doctor_judge.h"

enum doctor_trouble {
	DOCTOR_NO_TROUBLE,
	DOCTOR_CONFIG,         /* the configuration does not load */
	DOCTOR_STATE_DIR,      /* state_dir is not fit */
	DOCTOR_STORE,          /* the store does not open */
	DOCTOR_NO_TOKENS,      /* the tables for exact counts are missing, or damaged */
	DOCTOR_UNREACHABLE,    /* no HTTP answer */
	DOCTOR_HANGS,          /* connected, and no answer */
	DOCTOR_SCHEME,         /* TLS where there is none, or the reverse */
	DOCTOR_BAD_TLS,        /* the certificate is not trusted, or TLS fails */
	DOCTOR_FAILS,          /* the web server fails by itself, HTTP 500 */
	DOCTOR_DOWN,           /* the web server has no gateway to ask */
	DOCTOR_NO_POOL,        /* ... and none runs */
	DOCTOR_SOCKET,         /* ... though one runs */
	DOCTOR_NOT_THERE,      /* something else answers at this URL */
	DOCTOR_NOT_OURS,       /* the gateway does not know this sluicectl */
	DOCTOR_EXPOSED,        /* the configuration lies below the document root */
	DOCTOR_AUTH_MODE,      /* the gateway cannot do what auth.mode says */
	DOCTOR_OPEN,           /* whoever comes is let in */
	DOCTOR_REFUSED,        /* the web server refuses good credentials */
	DOCTOR_CHECK_FAILS,    /* ... or fails when it looks at any */
	DOCTOR_SHIPPED,        /* the token that is in our files lets in */
	DOCTOR_NO_USER,        /* ... or lets them in and names no user */
	DOCTOR_FORGED,         /* a client can say who it is */
	DOCTOR_NO_BEARER,      /* Authorization does not arrive */
	DOCTOR_NO_API_KEY,     /* X-Api-Key does not arrive */
	DOCTOR_PATHS,          /* the API's paths are not found */
	DOCTOR_SLASH,          /* ... with a slash that is encoded */
	DOCTOR_ADMIN_OPEN,     /* admin paths for everybody */
	DOCTOR_COLLECTED,      /* no stream: collected */
	DOCTOR_COMPRESSED,     /* ... because it is compressed */
	DOCTOR_BODY,           /* 1.2 MB are refused */
	DOCTOR_CHUNKED,        /* ... without a length */
	DOCTOR_SILENT_FIRST,   /* cut before the first byte */
	DOCTOR_SILENT_BETWEEN, /* cut between two events */
	DOCTOR_TROUBLE__MAX
};

struct doctor_remedy {
	const char *directive, *file;
};

/* Never empty, but for DOCTOR_NO_TROUBLE, which has none. */
struct doctor_remedy doctor_remedy(enum doctor_setup setup, enum doctor_trouble trouble);

#endif
