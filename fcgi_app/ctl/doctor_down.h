/*
 * doctor_down - what to make of it when no answer of the gateway comes through the web server.
 */
#ifndef CTL_DOCTOR_DOWN_H
#define CTL_DOCTOR_DOWN_H

#include "ctl/doctor_row.h"

/* The first request: no HTTP answer came. */
void doctor_down_silent(struct doctor *d, const struct doctor_answer *answer);
/* Is this the web server saying that it wants TLS here? Then it was told. */
bool doctor_down_scheme(struct doctor *d, const struct doctor_answer *answer);
/* The web server says 5xx by itself. */
void doctor_down_gateway(struct doctor *d, int status);
/* Is this the gateway saying that it cannot serve at all? Then it was told. */
bool doctor_down_unfit(struct doctor *d, const struct doctor_answer *answer);

#endif
