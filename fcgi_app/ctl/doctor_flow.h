/*
 * doctor_flow - how bytes pass: streams, compressed or not, long bodies, long silences.
 *
 * Source    hosting.md 1, 4, 5
 */
#ifndef CTL_DOCTOR_FLOW_H
#define CTL_DOCTOR_FLOW_H

#include "ctl/doctor_row.h"

void doctor_flow_stream(struct doctor *d);
void doctor_flow_compressed(struct doctor *d);
void doctor_flow_body(struct doctor *d);
void doctor_flow_chunked(struct doctor *d);
void doctor_flow_first(struct doctor *d);
void doctor_flow_between(struct doctor *d);

#endif
