/*
 * Goal: a solver's node is not well while a client refuses, while verifiers cannot get what it
 * serves, or while it is silent.
 * Method: views as the node writes them, with one trouble each.
 */
#include "tests/support/test.h"

#include <string.h>

#include "prover/node/node_view.h"

static void test_health_says_what_is_wrong_with_a_job(void **state)
{
    static const struct {
        const char *text;
        const char *trouble; /* NULL: it is well */
    } views[] = {
        {"{\"alive\": 1000, \"jobs\": [{\"unseen_segments\": 0, \"trouble\": \"a note\"}]}", NULL},
        {"{\"alive\": 1000, \"jobs\": [{\"unseen_segments\": 2, \"trouble\": \"not seen\"}]}",
         "not seen"},
        {"{\"alive\": 1000, \"jobs\": [{\"refused_until\": 7, \"trouble\": \"refused\"}]}",
         "refused"},
        {"{\"alive\": 1, \"jobs\": []}", "silent"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
        json_t *view = json_loads(views[i].text, 0, NULL);
        const char *trouble;

        assert_non_null(view);
        trouble = node_view_trouble(view, 1000);
        if (views[i].trouble == NULL) {
            assert_null(trouble);
        } else {
            assert_non_null(trouble);
            assert_non_null(strstr(trouble, views[i].trouble));
        }
        json_decref(view);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_health_says_what_is_wrong_with_a_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
