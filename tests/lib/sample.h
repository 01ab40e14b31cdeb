/*
 * sample - recorded provider traffic, read from tests/data (the working directory is the top of the
 * tree).
 */
#ifndef LIB_SAMPLE_H
#define LIB_SAMPLE_H

#include "base/buf.h"

/* The whole of tests/data/<name>, which must be there. Ends with buf_release(). */
struct buf sample_read(const char *name);

#endif
