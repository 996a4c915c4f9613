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

/* Puts each byte in the place of its "%41", but for "%00", which stays. Returns the length. */
size_t http_words_unescape(char *text);

#endif /* BASE_HTTP_HTTP_WORDS_H */
