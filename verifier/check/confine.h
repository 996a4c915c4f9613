/*
 * confine.h - what a child that checks may ask of the system: a stranger's bytes are read in it.
 *
 * From its start it runs no program, makes no process, traces and signals nobody, and opens sockets
 * to the network only where a mirror has a URL. Where the kernel has landlock it reads the system's
 * libraries, its data and its mirrors, and writes to its cache and its dispute's folder alone. Once
 * all is fetched it opens no socket at all. Whoever tries is ended by the kernel (SIGSYS), except
 * for files, which are then not to be had.
 *
 * Only for a process that checks on the CPU: the drivers of a GPU do what they like.
 */
#ifndef VERIFIER_CHECK_CONFINE_H
#define VERIFIER_CHECK_CONFINE_H

#include "verifier/check/check_wire.h"

/* What this system can enforce. */
struct confine_means {
    bool calls; /* seccomp filters, on a processor whose calls are known here */
    bool files; /* landlock */
};

struct confine_means confine_means(void);

#define CONFINE_TEXT_MAX 200

/* Says in one sentence what checks are kept from; true: from all of it. */
bool confine_describe(char text[CONFINE_TEXT_MAX], bool on_device);

/* Of this process, while it has one thread, for good. What cannot be enforced is left out. */
void confine_begin(const struct check_request *request);

/* Of this process and all its threads: nothing is fetched any more. */
void confine_network(void);

#endif /* VERIFIER_CHECK_CONFINE_H */
