/*
 * http_words.h - words of a request, which a stranger wrote.
 */
#ifndef BASE_HTTP_HTTP_WORDS_H
#define BASE_HTTP_HTTP_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_WORDS_HOST_MAX 256

/* The name in a Host header, without the port and the brackets of IPv6. False: it has none, or one
 * that is too long. */
bool http_words_host(char name[HTTP_WORDS_HOST_MAX], const char *header);

#endif /* BASE_HTTP_HTTP_WORDS_H */
