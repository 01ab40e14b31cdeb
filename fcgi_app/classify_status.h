/*
 * classify_status - between HTTP statuses and verdicts, both ways, where a body says no more.
 *
 * Source    SPEC.md section 6; formats.md A.7, C.8, F.2 (7)
 */
#ifndef CLASSIFY_STATUS_H
#define CLASSIFY_STATUS_H

#include "locate.h"
#include "verdict.h"

/* Of a bare 4xx or 5xx; 401, 403 and 404 need the body and are not asked here. */
enum verdict classify_status_verdict(int status);
/* The status that belongs to an error's type, for errors inside a 200; 0 = none. Too wide to decide anything else. */
int classify_status_of_type(const struct locate_error *error);
/* The status with which such an answer would have come. */
int classify_status_of_verdict(enum verdict verdict);

#endif
