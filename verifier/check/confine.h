/*
 * confine.h - keeps a child that checks from what it does not need (base/sandbox/sandbox.h): it
 * reads its data and its mirrors, writes to its cache and its dispute's folder, and opens sockets
 * only where a mirror has a URL.
 */
#ifndef VERIFIER_CHECK_CONFINE_H
#define VERIFIER_CHECK_CONFINE_H

#include "verifier/check/check_wire.h"

#define CONFINE_TEXT_MAX 200

/* Says in one sentence what checks are kept from; true: from all of it. */
bool confine_describe(char text[CONFINE_TEXT_MAX], bool on_device);

/* Of this process, while it has one thread, for good. What cannot be enforced is left out. */
void confine_begin(const struct check_request *request);

#endif /* VERIFIER_CHECK_CONFINE_H */
