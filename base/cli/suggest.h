/* suggest.h - "did you mean ...?": the known word that is nearest to a mistyped one. */
#ifndef BASE_CLI_SUGGEST_H
#define BASE_CLI_SUGGEST_H

#include <stddef.h>

/* Words that are longer are never near to anything. */
#define SUGGEST_WORD_MAX 64

/*
 * How many letters must be added, dropped, changed or swapped with a neighbour to get from one word
 * to the other; SUGGEST_WORD_MAX when a word is too long.
 */
size_t suggest_distance(const char *left, const char *right);

/* Keeps the nearest of the words it is shown. A plain value. */
struct suggestion {
    const char *word; /* what was typed */
    const char *best; /* NULL while nothing is near enough to be meant */
    size_t distance;
};

void suggestion_init(struct suggestion *suggestion, const char *word);

/* Borrows known for as long as the suggestion is used. */
void suggestion_consider(struct suggestion *suggestion, const char *known);

#endif /* BASE_CLI_SUGGEST_H */
