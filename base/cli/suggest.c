/* suggest.c - see suggest.h. */
#include "base/cli/suggest.h"

#include <string.h>

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment, three rows at a time: a swap looks two rows back. */
size_t suggest_distance(const char *left, const char *right)
{
    size_t rows[3][SUGGEST_WORD_MAX + 1];
    size_t left_length = strlen(left);
    size_t right_length = strlen(right);

    if (left_length >= SUGGEST_WORD_MAX || right_length >= SUGGEST_WORD_MAX) {
        return SUGGEST_WORD_MAX;
    }
    for (size_t j = 0; j <= right_length; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= left_length; i++) {
        size_t *now = rows[i % 3];
        const size_t *before = rows[(i - 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= right_length; j++) {
            size_t changed = before[j - 1] + (left[i - 1] != right[j - 1]);

            now[j] = smaller_of(changed, smaller_of(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
                now[j] = smaller_of(now[j], rows[(i - 2) % 3][j - 2] + 1);
            }
        }
    }
    return rows[left_length % 3][right_length];
}

void suggestion_init(struct suggestion *suggestion, const char *word)
{
    suggestion->word = word;
    suggestion->best = NULL;
    suggestion->distance = SUGGEST_WORD_MAX;
}

void suggestion_consider(struct suggestion *suggestion, const char *known)
{
    size_t distance = suggest_distance(suggestion->word, known);
    /* A third of the word may be wrong: enough for slips, too little for another word. */
    size_t bearable = 1 + strlen(known) / 3;

    if (distance <= bearable && distance < suggestion->distance) {
        suggestion->best = known;
        suggestion->distance = distance;
    }
}
