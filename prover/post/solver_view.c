/* solver_view.c - see solver_view.h. */
#include "prover/post/solver_view.h"

#include <stdarg.h>
#include <stdio.h>

void solver_view_note(struct solver_view *view, const char *format, ...)
{
    va_list list;

    if (view->trouble[0] != '\0') {
        return;
    }
    va_start(list, format);
    (void)vsnprintf(view->trouble, sizeof(view->trouble), format, list);
    va_end(list);
}

void solver_view_follow(struct solver_view *view, struct ledger *ledger, const char *what,
                        const char *name, enum status submitted, struct error *error)
{
    struct ledger_outcome outcome;

    view->pending++;
    if (submitted != STATUS_OK) {
        solver_view_note(view, "%s: %.300s", what, error->text);
        return;
    }
    if (ledger_look(ledger, &outcome, name, error) != STATUS_OK) {
        solver_view_note(view, "%s: %.300s", what, error->text);
    } else if (outcome.state == LEDGER_MOVE_REFUSED) {
        solver_view_note(view, "%s: the ledger refuses it: %s", what,
                         outcome.refusal.kind == GAME_REFUSED_NOT
                             ? "it gives no known reason"
                             : game_refusal_text(outcome.refusal.kind));
    } else if (outcome.trouble[0] != '\0') {
        solver_view_note(view, "%s: %s", what, outcome.trouble);
    }
}
