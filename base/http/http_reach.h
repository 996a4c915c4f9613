/*
 * http_reach.h - which addresses a transfer may call.
 *
 * A party that writes on a ledger where it is found could write an address of our own machine or
 * network, where a request from us is more than a request from them. So what a stranger names
 * reaches the public Internet alone; what the user names himself reaches everything.
 */
#ifndef BASE_HTTP_HTTP_REACH_H
#define BASE_HTTP_HTTP_REACH_H

#include <stdbool.h>

struct sockaddr;

enum http_reach {
    HTTP_REACH_PUBLIC = 0,
    HTTP_REACH_LOOPBACK, /* and this machine by its loopback addresses */
    HTTP_REACH_ANY,
};

/* Why a transfer of that reach may not call the address; NULL: it may. */
const char *http_reach_refuses(enum http_reach reach, const struct sockaddr *address);

/* What is wrong with the form of a URL that a stranger names; NULL: nothing. A name of a host says
 * nothing yet of its addresses. */
const char *http_reach_bad_url(const char *url);

bool http_reach_is_url(const char *text);   /* http:// or https:// */
bool http_reach_is_plain(const char *text); /* printable ASCII without blanks */

#endif /* BASE_HTTP_HTTP_REACH_H */
