/* text.h - what C's strings lack: ends, words and numbers that are taken off, escapes of URLs. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Also true for the end itself, with nothing before it. */
static inline bool text_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* What stands behind the last slash. */
const char *text_last_part(const char *path);

/* Moves *at behind the word that it begins with. False: it begins otherwise, and stays. */
bool text_take_word(const char **at, const char *word);

/* Moves *at behind the decimal digits that it begins with. False: there is none, or they are more
 * than most; *at is anywhere in them then. */
bool text_take_number(uint64_t *number, const char **at, uint64_t most);

/* A whole text of digits. False: it is none (nor is NULL), or more than most. */
bool text_is_number(uint64_t *number, const char *text, uint64_t most);

/* Writes what of text takes at most `room` bytes, and a NUL: bytes that are not in plain as "%41".
 * Returns how many bytes those are. */
size_t text_escape(char *to, size_t room, const char *text, const char *plain);

/* Puts each byte in the place of its "%41", but for "%00", which stays. Returns the length. */
size_t text_unescape(char *text);

#endif /* BASE_TEXT_H */
