/*
 * money_book.h - the money of accounts of a ledger, by its events.
 *
 * A book listens to a board (chain/job/board.h), from the board's first event on. What jobs hold it
 * reads in the board; what changed hands it counts. Purse and debt are asked of the ledger.
 */
#ifndef CHAIN_MONEY_MONEY_BOOK_H
#define CHAIN_MONEY_MONEY_BOOK_H

#include "chain/job/board.h"
#include "chain/money/money.h"

struct money_claimant {
    struct address owner;
    wei bond;
};

/* A claim that is open. The first claimant leads. */
struct money_claim {
    struct hash32 key;
    struct hash32 job;
    uint32_t generation;
    struct address solver;
    bool convicted; /* another claim did that, so nobody gains by a bond that is lost */
    wei query_fee;  /* of a query that has no reply yet */
    struct money_claimant *claimants;
    uint32_t count;
    uint32_t room;
};

struct money_book {
    const struct board *board;
    struct money *accounts; /* purse, debt, stakes, escrow and gas are not in them */
    uint32_t account_count;
    struct money_claim *claims;
    uint32_t claim_count;
    uint32_t claim_room;
    wei fees; /* of the leg that is being settled */
    struct {
        bool now; /* the event before disproved a right: whose bond goes to whom is next */
        struct hash32 job;
        struct address mover;
    } disproved;
};

/* The board must not have followed a ledger yet, or begins again. Release the book after it. */
MUST_CHECK enum status money_book_open(struct money_book *book, struct board *board,
                                       const struct address *accounts, uint32_t count,
                                       struct error *error);
void money_book_release(struct money_book *book); /* a zero-filled one is allowed */

/* What the events say of an account: all but purse, debt and gas. */
struct money money_book_look(const struct money_book *book, uint32_t number);

/* The same, with purse, debt and gas as the ledger has them now: they fit the events
 * once the board has read all. */
MUST_CHECK enum status money_book_ask(const struct money_book *book, struct money *money,
                                      uint32_t number, struct ledger *ledger, struct error *error);

/* Lets the board follow the ledger, and tells of each account in its order what it has now. money
 * has room for all of them. */
MUST_CHECK enum status money_book_read(const struct money_book *book, struct money *money,
                                       struct board *board, struct ledger *ledger,
                                       struct error *error);

#endif /* CHAIN_MONEY_MONEY_BOOK_H */
