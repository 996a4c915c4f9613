/*
 * http_only.h - limits a transfer of libcurl to http and https: no local file, no FTP. The option
 * has two names in the versions of libcurl that we build with.
 */
#ifndef BASE_IO_HTTP_ONLY_H
#define BASE_IO_HTTP_ONLY_H

#include <curl/curl.h>
#include <stdbool.h>

/* False: libcurl refused the option; do not make the transfer. */
bool http_only_set(CURL *curl);

#endif /* BASE_IO_HTTP_ONLY_H */
