/*
 * front - what is decided before an upstream or a page is involved: CORS, exposure, access, path, method, degradation.
 *
 * Source    SPEC.md sections 3, 4.1, 4.2, 10
 */
#ifndef FRONT_H
#define FRONT_H

#include "serve_job.h"

/* May the request go on? False: it was answered. */
bool front_admit(struct serve_job *j);

#endif
