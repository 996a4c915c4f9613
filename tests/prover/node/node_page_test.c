/*
 * Goal: a node's page, its text and its JSON say what its file says, and what strangers wrote of it
 * is no markup: neither a job's trouble, which the first line of the page repeats, nor its names.
 * Method: a file of a node whose texts are all hostile.
 */
#include "prover/node/node_page.h"

#include <string.h>

#include "prover/node/node_view.h"
#include "tests/support/test.h"

#define NOW_S    1800000000
#define HOSTILE  "<script>alert(1)</script>\\u001b[2J"
#define JOB_KEY  "0xa18446ab0f226ecaaf5158020c719f32e9f973c72a9aa29b9107934ace1b0588"
#define SILENT_S 1000

static const char file[] =
    "{\"account\": \"0x7\", \"contact\": \"" HOSTILE "\", \"nobody_fetches\": \"\","
    " \"contact_trouble\": \"" HOSTILE "\", \"started\": 1799990000, \"alive\": 1800000000,"
    " \"trouble\": \"\", \"endpoints\": \"" HOSTILE "\", \"money\": null, \"paid\": 3, \"lost\": 0,"
    " \"slots\": [{\"device\": \"cpu\", \"does\": \"training\", \"job\": \"" JOB_KEY "\","
    " \"why\": \"" HOSTILE "\", \"holds_up\": false}],"
    " \"jobs\": [{\"title\": \"" HOSTILE "\", \"about\": \"" HOSTILE "\", \"job\": \"" JOB_KEY "\","
    " \"state\": \"trains\", \"trained\": 5, \"steps\": 9, \"loss\": 2.5, \"losses\": [[1, 3.5]],"
    " \"held_out_losses\": [], \"squares\": \"210\", \"segments\": 3, \"final\": 1,"
    " \"open_claims\": 0, \"unseen_segments\": 1, \"refused_until\": 0,"
    " \"segment_reward_wei\": \"5\", \"stake_wei\": \"7\", \"trouble\": \"" HOSTILE "\"}],"
    " \"offers\": [{\"job\": \"" JOB_KEY "\", \"refused\": true, \"hour_wei\": null,"
    " \"why\": \"" HOSTILE "\"}]}";

static void make(struct sheet *sheet, uint64_t now_s)
{
    json_t *made = json_loads(file, 0, NULL);

    assert_non_null(made);
    sheet_init(sheet);
    node_page_show(sheet, made, now_s);
    json_decref(made);
}

static void test_a_trouble_that_strangers_wrote_is_no_markup(void **state)
{
    struct sheet sheet;
    struct buffer page;

    (void)state;
    make(&sheet, NOW_S);
    buffer_init(&page, SHEET_SIZE_MAX);
    sheet_page_write(&page, &sheet, 0);
    assert_int_equal(page.status, STATUS_OK);
    assert_non_null(strstr(buffer_text(&page), "<b>Not well</b>: &#60;script&#62;alert(1)"));
    assert_non_null(strstr(buffer_text(&page), "<title>! Lockstep solver</title>"));
    assert_null(strstr(buffer_text(&page), "<script"));
    buffer_release(&page);
    sheet_release(&sheet);
}

static void test_page_text_and_json_have_the_job(void **state)
{
    struct sheet sheet;
    struct buffer text;

    (void)state;
    make(&sheet, NOW_S + SILENT_S);
    buffer_init(&text, SHEET_SIZE_MAX);
    sheet_text_write(&text, &sheet);
    assert_non_null(strstr(buffer_text(&text), "Not well: the node is silent."));
    assert_non_null(strstr(buffer_text(&text), "0xa18446ab0f22 trains\n"));
    assert_non_null(strstr(buffer_text(&text), "5 of 9 steps trained, 1 of 3 segments final"));
    assert_non_null(strstr(buffer_text(&text), "\n#=.\n"));
    assert_null(strchr(buffer_text(&text), '\x1b'));
    buffer_clear(&text);
    sheet_json_write(&text, &sheet);
    assert_non_null(strstr(buffer_text(&text), "\"trained\":5,\"steps\":9"));
    buffer_clear(&text);
    sheet_page_write(&text, &sheet, NOW_S);
    assert_non_null(strstr(buffer_text(&text), "5 of 9 steps trained, 1 of 3 segments final"));
    buffer_release(&text);
    sheet_release(&sheet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trouble_that_strangers_wrote_is_no_markup),
        cmocka_unit_test(test_page_text_and_json_have_the_job),
    };

    return cmocka_run_group_tests_name("node_page", tests, NULL, NULL);
}
