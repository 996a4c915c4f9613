/*
 * http_only.h - keeps a transfer of libcurl to http and https, whatever its address says: no file
 * of this machine, no FTP. The option was renamed between the versions of libcurl we build with.
 */
#ifndef BASE_IO_HTTP_ONLY_H
#define BASE_IO_HTTP_ONLY_H

#include <curl/curl.h>
#include <stdbool.h>

/* False: libcurl did not take it, and the transfer must not be made. */
bool http_only_set(CURL *curl);

#endif /* BASE_IO_HTTP_ONLY_H */
