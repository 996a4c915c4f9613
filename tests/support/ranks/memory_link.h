/*
 * memory_link.h - ranks that are threads of a test, and send each other messages in memory.
 *
 * Every message is checked: its tag and size are those that its receiver waits for.
 */
#ifndef TESTS_SUPPORT_RANKS_MEMORY_LINK_H
#define TESTS_SUPPORT_RANKS_MEMORY_LINK_H

#include "engine/ranks/ranks_link.h"

struct memory_links;

struct memory_links *memory_links_new(uint32_t ranks);
void memory_links_free(struct memory_links *links);

/* The end of one rank, which its thread alone uses. */
const struct ranks_link *memory_links_of(struct memory_links *links, uint32_t rank);

/* Bytes of elements that all have sent so far. */
uint64_t memory_links_sent(struct memory_links *links);

#endif /* TESTS_SUPPORT_RANKS_MEMORY_LINK_H */
