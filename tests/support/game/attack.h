/*
 * attack.h - one attack, played on both ledgers.
 */
#ifndef TESTS_SUPPORT_GAME_ATTACK_H
#define TESTS_SUPPORT_GAME_ATTACK_H

#include "tests/support/game/scene.h"
#include "tests/support/test.h"

/* A test for each ledger: the one with a chain is skipped where no node of one is installed. */
#define ATTACK(name)                                                                               \
    static void play_##name(struct scene *scene);                                                  \
    static void test_##name##_on_the_embedded_ledger(void **state)                                 \
    {                                                                                              \
        struct scene scene;                                                                        \
        (void)state;                                                                               \
        scene_open(&scene, STAGE_EMBEDDED, #name);                                                 \
        play_##name(&scene);                                                                       \
        scene_close(&scene);                                                                       \
    }                                                                                              \
    static void test_##name##_on_a_chain(void **state)                                             \
    {                                                                                              \
        struct scene scene;                                                                        \
        (void)state;                                                                               \
        scene_open(&scene, STAGE_ANVIL, #name "-evm");                                             \
        play_##name(&scene);                                                                       \
        scene_close(&scene);                                                                       \
    }                                                                                              \
    static void play_##name(struct scene *scene)

#define ATTACK_TESTS(name)                                                                         \
    cmocka_unit_test(test_##name##_on_the_embedded_ledger),                                        \
        cmocka_unit_test(test_##name##_on_a_chain)

#endif /* TESTS_SUPPORT_GAME_ATTACK_H */
