/* fate.c - see fate.h. */
#include "tests/support/node/fate.h"

enum fate_says fate_ask(struct fate *fate)
{
    if (fate->dead) {
        return FATE_DEAD;
    }
    if (fate->left == 0 || --fate->left > 0) {
        return FATE_LIVES;
    }
    fate->dead = true;
    return fate->last_counts ? FATE_LAST : FATE_DEAD;
}
