#include "base/environment.h"

#include <string.h>
#include <unistd.h>

void
environment_forget(const char *name)
{
	size_t n = strlen(name);
	char **to = environ;

	for (char **from = environ; *from != NULL; from++)
		if (strncmp(*from, name, n) != 0 || (*from)[n] != '=')
			*to++ = *from;
	*to = NULL;
}
