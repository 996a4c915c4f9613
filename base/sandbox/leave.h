/*
 * leave.h - ends a process whose answer nobody waits for any more.
 *
 * A check that was started on another machine learns of the end of who started it by one thing
 * alone: the reader of its output is gone, because a line is cut or the command in between is
 * killed.
 */
#ifndef BASE_SANDBOX_LEAVE_H
#define BASE_SANDBOX_LEAVE_H

/* From now on a thread of its own ends this process when the last reader of the pipe or socket has
 * closed it. Of a file or a terminal nothing is noticed. */
void leave_unheard(int output);

#endif /* BASE_SANDBOX_LEAVE_H */
