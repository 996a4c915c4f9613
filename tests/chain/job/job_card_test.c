/*
 * Goal: what an opening says of a job is read back, cut where it does not fit, and hostile text is
 * neither believed nor printed.
 * Method: random texts of all printable characters, addresses of every length, damaged bytes.
 */
#include "tests/support/test.h"

#include <string.h>

#include "chain/job/job_card.h"
#include "tests/support/numeric/small_job.h"

static struct game_bytes bytes_of(const char *text)
{
    return (struct game_bytes){(const uint8_t *)text, strlen(text)};
}

static void fill_text(char *text, uint64_t *seed, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)(' ' + test_random_below(seed, '~' - ' ' + 1));
    }
    text[size] = '\0';
}

static void test_cards_come_back_beside_any_address(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (size_t length = 0; length <= GAME_CONTACT_MAX; length++) {
        struct job_card card = {.parameters = test_random(&seed) % 1000000000000000000u,
                                .tokens = length,
                                .data_bytes = 7,
                                .checkpoint_bytes = 1};
        char place[GAME_CONTACT_MAX + 1];
        char contact[GAME_CONTACT_MAX + 1];
        char found[GAME_CONTACT_MAX + 1];
        struct job_card again;
        struct game_bytes bytes;

        fill_text(card.title, &seed, length % (JOB_CARD_TEXT_MAX + 1));
        fill_text(card.model, &seed, test_random_below(&seed, 20));
        memset(place, 'h', length);
        place[length] = '\0';
        assert_true(job_card_write(contact, place, &card));
        assert_true(strlen(contact) <= GAME_CONTACT_MAX);
        bytes = bytes_of(contact);
        job_card_address(found, &bytes);
        assert_string_equal(found, place);
        job_card_read(&again, &bytes);
        /* Texts are cut at their ends; numbers are there where there is room for any card. */
        assert_memory_equal(again.title, card.title, strlen(again.title));
        assert_memory_equal(again.model, card.model, strlen(again.model));
        if (strchr(contact, '#') != NULL) {
            assert_int_equal(again.parameters, card.parameters);
            assert_int_equal(again.tokens, card.tokens);
            assert_int_equal(again.samples, 0);
            assert_int_equal(again.data_bytes, 7);
            assert_int_equal(again.checkpoint_bytes, 1);
        } else {
            assert_true(length > 100);
        }
        if (length < 40 && strlen(card.title) < 20) {
            assert_string_equal(again.title, card.title);
        }
    }
}

static void test_addresses_that_cannot_carry_a_card_are_refused(void **state)
{
    const struct job_card card = {.title = "a"};
    char contact[GAME_CONTACT_MAX + 1];
    char place[GAME_CONTACT_MAX + 2];

    (void)state;
    assert_false(job_card_write(contact, "http://a#b", &card));
    memset(place, 'a', sizeof(place) - 1);
    place[sizeof(place) - 1] = '\0';
    assert_false(job_card_write(contact, place, &card));
    assert_true(job_card_write(contact, NULL, &card));
    assert_string_equal(contact, "#title=a&model=");
}

static void test_hostile_text_is_left_out(void **state)
{
    struct job_card card;
    struct game_bytes bytes;
    uint64_t seed = 5;

    (void)state;
    bytes = bytes_of("x#title=a%0Ab%1B%7F%c3z%00%4&parameters=12a&tokens=1234567890123456789"
                     "&samples=-1&state=9&state=&nothing=3&data=5");
    job_card_read(&card, &bytes);
    assert_string_equal(card.title, "a?b???z%00%4"); /* what is no escape stays */
    assert_string_equal(card.model, "");
    assert_int_equal(card.parameters + card.tokens + card.samples + card.checkpoint_bytes, 0);
    assert_int_equal(card.data_bytes, 5);
    bytes =
        bytes_of("x#tokens=0000000000000000000000712&samples=00000000000000000000007x&data=0007");
    job_card_read(&card, &bytes); /* no part of a long number is taken for it */
    assert_int_equal(card.tokens + card.samples, 0);
    assert_int_equal(card.data_bytes, 7);
    for (uint32_t round = 0; round < 20000; round++) {
        static const char words[] = "#title=&model=%4tokens=&parameters=99+";
        uint8_t any[GAME_CONTACT_MAX];
        char place[GAME_CONTACT_MAX + 1];

        for (size_t i = 0; i < sizeof(any); i++) {
            any[i] = test_random_below(&seed, 4) == 0
                         ? (uint8_t)test_random(&seed)
                         : (uint8_t)words[(i + round) % (sizeof(words) - 1)];
        }
        bytes = (struct game_bytes){any, test_random_below(&seed, sizeof(any) + 1)};
        job_card_read(&card, &bytes);
        job_card_address(place, &bytes);
        for (const char *at = card.title; *at != '\0'; at++) {
            assert_in_range(*at, ' ', '~');
        }
        assert_null(strchr(place, '#'));
    }
}

static void test_a_jobs_card_is_what_its_tape_says(void **state)
{
    struct small_job_options options;
    struct job_card card;
    struct job *job;
    uint64_t count = 0;

    (void)state;
    small_job_defaults(&options);
    job = small_job_new(&options);
    job_card_of(&card, job);
    for (uint32_t i = 0; i < job->tape->state_count; i++) {
        const struct tensor *tensor = &job->tape->tensors[job->tape->states[i].before];
        bool moment = tensor->name[1] == '.' && strchr("mv", tensor->name[0]) != NULL;

        count += tensor->dtype == DTYPE_F32 && !moment ? tensor->count : 0;
    }
    assert_int_equal(card.parameters, count);
    assert_int_equal(card.tokens, job->steps * options.model.batch * options.model.length);
    job_free(job);
}

static void test_a_card_is_said_in_words(void **state)
{
    struct job_card card = {.title = "not said"};
    char words[JOB_CARD_WORDS_MAX];

    (void)state;
    job_card_words(words, &card);
    assert_string_equal(words, "");
    assert_true(job_card_trains(&card)); /* it says nothing */
    card = (struct job_card){.model = "gpt2",
                             .parameters = 124439808,
                             .tokens = 9999999,
                             .data_bytes = UINT64_C(3) << 30,
                             .checkpoint_bytes = 1 << 20};
    job_card_words(words, &card);
    assert_string_equal(words, "gpt2; 124.4 million parameters; learns from 9999999 tokens; "
                               "3.00 GiB of data, checkpoints of 1.00 MiB");
    assert_true(job_card_trains(&card));
    card.parameters = 0;
    assert_false(job_card_trains(&card));
    job_card_words(words, &card);
    assert_string_equal(words, "gpt2; states, and no loss; reads 9999999 tokens; "
                               "3.00 GiB of data, checkpoints of 1.00 MiB");
    memset(card.model, 'x', JOB_CARD_TEXT_MAX);
    card.parameters = card.tokens = card.data_bytes = card.checkpoint_bytes = UINT64_MAX;
    job_card_words(words, &card);
    assert_non_null(strstr(words, "GiB"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cards_come_back_beside_any_address),
        cmocka_unit_test(test_addresses_that_cannot_carry_a_card_are_refused),
        cmocka_unit_test(test_hostile_text_is_left_out),
        cmocka_unit_test(test_a_jobs_card_is_what_its_tape_says),
        cmocka_unit_test(test_a_card_is_said_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
