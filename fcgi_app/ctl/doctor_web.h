/*
 * doctor_web - what the web server lets through, to whom, and what of it the gateway sees.
 *
 * Source    SPEC.md section 4; hosting.md 2, 7
 */
#ifndef CTL_DOCTOR_WEB_H
#define CTL_DOCTOR_WEB_H

#include "ctl/doctor_row.h"

void doctor_web_reach(struct doctor *d);
void doctor_web_gateway(struct doctor *d);
void doctor_web_anonymous(struct doctor *d);
void doctor_web_access(struct doctor *d);
void doctor_web_setup(struct doctor *d);
void doctor_web_state(struct doctor *d);
void doctor_web_forged(struct doctor *d);
void doctor_web_bearer(struct doctor *d);
void doctor_web_api_key(struct doctor *d);
void doctor_web_paths(struct doctor *d);
void doctor_web_admin(struct doctor *d);

#endif
