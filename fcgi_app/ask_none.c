#include "ask.h"

/* Until there is somebody to ask. */
void
ask_run(struct serve_job *job, const struct ask *ask, struct ask_answer *answer_out)
{
	(void)job;
	(void)ask;
	*answer_out = (struct ask_answer){.ok = false};
	err_why(&answer_out->why, "nobody can be asked");
}
