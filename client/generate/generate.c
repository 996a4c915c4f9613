/*
 * generate.c - see generate.h: a prompt, or a conversation that is read line by line.
 *
 * The answer goes to standard output as it comes; all else goes to standard error. Ctrl-C ends an
 * answer between two tokens.
 */
#include "client/generate/generate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/stop.h"
#include "base/steady.h"
#include "client/generate/answer.h"
#include "client/generate/generate_options.h"
#include "client/generate/model_source.h"
#include "client/generate/prove.h"
#include "client/generate/question.h"
#include "client/generate/typed_lines.h"
#include "data/text/utf8.h"
#include "engine/decode/decode.h"
#include "engine/decode/sampler.h"
#include "engine/plan/backend.h"
#include "proofs/receipt/receipt_state.h"
#include "proofs/run/run.h"

#define CHAT_CONTEXT   4096 /* where --context says nothing */
#define PREFILL_TOKENS 256  /* between two looks at Ctrl-C */

struct generation {
    struct command_context *context;
    struct error *error;
    struct stop stop;
    struct receipt_state state; /* of a bundle, as a folder */
    struct model_source source;
    struct tokenizer tokenizer;
    struct question question;
    struct answer_stops stops;
    struct decode *decode;
    struct sampler sampler;
    struct sampler_rule rule;
    uint32_t *kept; /* the tokens that the decoder has */
    FILE *logits;
    struct prove prove;
    bool terminal;
    uint32_t answers;
};

/* What became of one answer. */
struct outcome {
    const char *end; /* "stop", "length" or "interrupted" */
    uint32_t prompt_tokens;
    uint32_t tokens;
    double seconds_reading;
    double seconds_writing;
};

/* ---- opening -------------------------------------------------------------- */

static enum status open_tokenizer(struct generation *generation, struct error *error)
{
    const char *given = options_text(generation->context->options, "tokenizer");
    enum status status = tokenizer_open(&generation->tokenizer, error,
                                        given != NULL ? given : generation->source.folder);

    if (status != STATUS_OK && given == NULL) {
        error_advise(error, "name another with --tokenizer FOLDER; 'bytes' stands for the bytes");
    }
    return status;
}

static enum status find_layout(const struct chat_layout **layout,
                               const struct generation *generation, struct error *error)
{
    const char *name = options_text(generation->context->options, "chat");

    *layout = NULL;
    if (name == NULL) {
        return STATUS_OK;
    }
    if (strcmp(name, "auto") == 0) {
        return chat_layout_of(layout, error, &generation->tokenizer);
    }
    *layout = chat_layout_named(name);
    if (*layout == NULL) {
        return error_set(error, STATUS_USAGE, "there is no layout '%s'", name);
    }
    return STATUS_OK;
}

static void add_stop_id(struct answer_stops *stops, uint32_t id)
{
    if (id != VOCABULARY_NONE && stops->id_count < ANSWER_STOPS_MAX) {
        stops->ids[stops->id_count++] = id;
    }
}

static enum status read_stops(struct generation *generation, struct error *error)
{
    const struct options *given = generation->context->options;
    struct answer_stops *stops = &generation->stops;

    add_stop_id(stops, generation->tokenizer.eos);
    for (size_t i = 0; i < options_list_count(given, "stop"); i++) {
        const char *text = options_list_item(given, "stop", i);

        if (text[0] == '\0' || stops->text_count == ANSWER_STOPS_MAX) {
            return error_set(error, STATUS_USAGE, "--stop takes a text, at most %d times",
                             ANSWER_STOPS_MAX);
        }
        add_stop_id(stops, tokenizer_id(&generation->tokenizer, text));
        stops->texts[stops->text_count++] = text;
    }
    return STATUS_OK;
}

static enum status machine_of(struct machine_options *machine, const struct options *given,
                              struct error *error)
{
    const char *isa = options_text(given, "isa");

    TRY(machine_options_default(machine, error));
    if (isa != NULL) {
        TRY(machine_options_isa(machine, isa, error));
    }
    machine->thread_count = (int)options_number(given, "threads");
    return STATUS_OK;
}

/* The most tokens that the decoder may have. A receipt's row has one more, and whole sixteens. */
static uint32_t longest_sequence(const struct generation *generation)
{
    const uint32_t provable = receipt_base_longest(&generation->prove.base);

    if (generation->prove.path == NULL) {
        return model_source_longest(&generation->source);
    }
    return provable == 0 ? 0 : provable - 1;
}

/* The longest sequence: what is asked for, as far as the model goes. */
static enum status context_of(uint32_t *context, const struct generation *generation, size_t prompt,
                              struct error *error)
{
    const struct options *given = generation->context->options;
    const uint32_t longest = longest_sequence(generation);
    uint64_t wanted = prompt + options_number(given, "tokens");

    if (options_given(given, "context")) {
        wanted = options_number(given, "context");
        if (wanted > longest) {
            return error_set(error, STATUS_USAGE,
                             "--context %" PRIu64 ": the model takes sequences of %u tokens",
                             wanted, longest);
        }
    } else if (options_text(given, "chat") != NULL) {
        wanted = wanted > CHAT_CONTEXT ? wanted : CHAT_CONTEXT;
    }
    *context = (uint32_t)(wanted < longest ? wanted : longest);
    if (prompt >= *context) {
        return error_set(error, STATUS_REFUSED,
                         "a prompt of %zu tokens leaves no place for an answer: there are %u",
                         prompt, *context);
    }
    return STATUS_OK;
}

/* The decoder, once the prompt is known. */
static enum status open_decoder(struct generation *generation, struct error *error)
{
    const struct options *given = generation->context->options;
    const struct model_options model = model_source_options(&generation->source);
    struct machine_options machine;
    struct decode_options wanted = {
        .model = &model, .read = model_source_read, .read_context = &generation->source};

    TRY(machine_of(&machine, given, error));
    TRY(context_of(&wanted.context, generation, generation->question.encoder.count, error));
    wanted.isa = machine.isa;
    wanted.thread_count = machine.thread_count;
    generation->kept = calloc((size_t)wanted.context + 1, sizeof(*generation->kept));
    if (generation->kept == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u tokens", wanted.context);
    }
    TRY(decode_open(&generation->decode, &wanted, error));
    return sampler_init(&generation->sampler, &generation->rule,
                        decode_vocabulary(generation->decode), error);
}

/*
 * A receipt names the root of weights in files, so a bundle's state is written as a folder for a
 * while; and so is that of a model from a seed, which no other folder describes.
 */
static enum status open_source(struct generation *generation, struct error *error)
{
    const struct options *given = generation->context->options;
    const char *path = given->arguments[0];
    const char *base = options_text(given, "base");
    const bool proves = options_text(given, "prove") != NULL;
    const uint64_t step = options_given(given, "step") ? options_number(given, "step") : UINT64_MAX;

    if (receipt_state_is_bundle(path) && (proves || base == NULL)) {
        const enum status status = receipt_state_open(&generation->state, path, base, step, error);

        if (status == STATUS_USAGE && base == NULL) {
            error_advise(error, "name it: --base FOLDER");
        }
        TRY(status);
        return model_source_open(&generation->source, generation->state.folder, NULL, UINT64_MAX,
                                 error);
    }
    if (proves && base != NULL) {
        (void)error_set(error, STATUS_USAGE,
                        "--prove is for a bundle, or for a model in a folder of its own");
        error_advise(error, "write one with 'job fetch KEY --hf FOLDER --merge', and name FOLDER");
        return STATUS_USAGE;
    }
    return model_source_open(&generation->source, path, base, step, error);
}

static enum status open_generation(struct generation *generation, struct error *error)
{
    const struct options *given = generation->context->options;
    const char *logits = options_text(given, "logits");
    const char *proof = options_text(given, "prove");
    const struct chat_layout *layout;
    struct sampler probe;

    generation->rule = (struct sampler_rule){
        .temperature = (float)options_real(given, "temperature"),
        .top_k = (uint32_t)options_number(given, "top-k"),
        .top_p = (float)options_real(given, "top-p"),
        .seed = options_number(given, "seed"),
    };
    TRY(sampler_init(&probe, &generation->rule, 1, error)); /* before the weights are read */
    sampler_release(&probe);
    TRY(open_source(generation, error));
    TRY(open_tokenizer(generation, error));
    TRY(find_layout(&layout, generation, error));
    TRY(question_init(&generation->question, error, &generation->tokenizer, layout,
                      options_text(given, "date")));
    TRY(read_stops(generation, error));
    if (proof != NULL) {
        TRY(prove_open(&generation->prove, proof, generation->source.folder, error));
    }
    if (logits != NULL) {
        generation->logits = fopen(logits, "wb");
        if (generation->logits == NULL) {
            return error_set_errno(error, "cannot write %s", logits);
        }
    }
    return STATUS_OK;
}

static enum status close_logits(struct generation *generation, struct error *error)
{
    FILE *file = generation->logits;

    generation->logits = NULL;
    if (file != NULL && fclose(file) != 0) {
        return error_set_errno(error, "cannot write the logits");
    }
    return STATUS_OK;
}

static void close_generation(struct generation *generation)
{
    if (generation->logits != NULL) {
        (void)fclose(generation->logits);
    }
    prove_close(&generation->prove);
    sampler_release(&generation->sampler);
    decode_close(generation->decode);
    question_release(&generation->question);
    tokenizer_release(&generation->tokenizer);
    model_source_close(&generation->source);
    receipt_state_close(&generation->state);
    free(generation->kept);
}

/* ---- an answer ------------------------------------------------------------ */

static enum status take_tokens(struct generation *generation, const uint32_t *tokens, size_t count,
                               struct error *error)
{
    const uint32_t before = decode_count(generation->decode);

    TRY(decode_take(generation->decode, tokens, count, error));
    memcpy(generation->kept + before, tokens, count * sizeof(*tokens));
    return STATUS_OK;
}

/* Brings the decoder to the question: what it has in common with the tokens so far stays. */
static enum status read_question(struct generation *generation, struct outcome *outcome,
                                 struct error *error)
{
    const struct encoder *encoder = &generation->question.encoder;
    const uint32_t had = decode_count(generation->decode);
    size_t at = 0;

    while (at < had && at + 1 < encoder->count && generation->kept[at] == encoder->ids[at]) {
        at++;
    }
    decode_forget(generation->decode, (uint32_t)at);
    outcome->prompt_tokens = (uint32_t)encoder->count;
    while (at < encoder->count && !stop_requested(&generation->stop)) {
        const size_t left = encoder->count - at;
        const size_t taken = left < PREFILL_TOKENS ? left : PREFILL_TOKENS;

        TRY(take_tokens(generation, encoder->ids + at, taken, error));
        at += taken;
    }
    return STATUS_OK;
}

static enum status choose_token(uint32_t *token, struct generation *generation, struct error *error)
{
    const float *logits = decode_logits(generation->decode);
    const size_t count = decode_vocabulary(generation->decode);
    struct sampler_choice choice;

    if (generation->logits != NULL &&
        fwrite(logits, sizeof(*logits), count, generation->logits) != count) {
        return error_set_errno(error, "cannot write the logits");
    }
    sampler_next(&choice, &generation->sampler, logits);
    *token = choice.token;
    return STATUS_OK;
}

/* Takes a token as the next one of the answer. */
static enum status accept_token(bool *ended, struct generation *generation, struct answer *answer,
                                json_t *tokens, uint32_t token, struct outcome *outcome,
                                struct error *error)
{
    const uint64_t most = options_number(generation->context->options, "tokens");

    outcome->tokens++;
    (void)json_array_append_new(tokens, json_integer(token));
    *ended = true;
    if (answer_add(answer, token)) {
        outcome->end = "stop";
        return STATUS_OK;
    }
    TRY(buffer_check(&answer->text, error, "the answer"));
    if (outcome->tokens == most ||
        decode_count(generation->decode) == decode_context(generation->decode)) {
        return STATUS_OK;
    }
    *ended = false;
    return take_tokens(generation, &token, 1, error);
}

static enum status write_answer(struct generation *generation, struct answer *answer,
                                json_t *tokens, struct outcome *outcome, struct error *error)
{
    bool ended = false;

    outcome->end = "length";
    while (!ended) {
        uint32_t token = 0;

        if (stop_requested(&generation->stop)) {
            outcome->end = "interrupted";
            return STATUS_OK;
        }
        TRY(choose_token(&token, generation, error));
        TRY(accept_token(&ended, generation, answer, tokens, token, outcome, error));
    }
    return STATUS_OK;
}

/* ---- a receipt ------------------------------------------------------------- */

static enum status take_receipt(struct generation *generation, const json_t *tokens,
                                const struct outcome *outcome, struct error *error)
{
    const struct encoder *encoder = &generation->question.encoder;
    const size_t count = json_array_size(tokens);
    uint32_t *answer = calloc(count + 1, sizeof(*answer));
    enum status status;

    if (answer == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %zu tokens", count);
    }
    for (size_t i = 0; i < count; i++) {
        answer[i] = (uint32_t)json_integer_value(json_array_get(tokens, i));
    }
    status = prove_take(&generation->prove, encoder->ids, outcome->prompt_tokens, answer,
                        (uint32_t)count, &generation->sampler.rule, &generation->stops, error);
    free(answer);
    return status;
}

/* The answer once more from its tokens. */
static void repeat_answer(struct answer *answer, const json_t *tokens)
{
    const struct answer again = *answer;

    answer_release(answer);
    answer_init(answer, again.tokenizer, again.stops, again.out, again.terminal);
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        (void)answer_add(answer, (uint32_t)json_integer_value(json_array_get(tokens, i)));
    }
}

/* Goes on from a token of the answer with another. */
static enum status correct_answer(struct generation *generation, struct answer *answer,
                                  json_t *tokens, uint32_t at, uint32_t token,
                                  struct outcome *outcome, struct error *error)
{
    bool ended;

    while (json_array_size(tokens) > at) {
        (void)json_array_remove(tokens, json_array_size(tokens) - 1);
    }
    repeat_answer(answer, tokens);
    decode_forget(generation->decode, outcome->prompt_tokens + at);
    generation->sampler.drawn = at + 1;
    outcome->tokens = at;
    outcome->end = "length";
    TRY(accept_token(&ended, generation, answer, tokens, token, outcome, error));
    return ended ? STATUS_OK : write_answer(generation, answer, tokens, outcome, error);
}

/* Runs the step that decides the receipt, until it chooses what the answer has. */
static enum status prove_answer(struct generation *generation, struct answer *answer,
                                json_t *tokens, struct outcome *outcome, struct error *error)
{
    struct prove *prove = &generation->prove;
    struct machine_options machine;

    TRY(machine_of(&machine, generation->context->options, error));
    for (prove->corrections = 0;; prove->corrections++) {
        uint32_t at;
        uint32_t token;

        if (strcmp(outcome->end, "interrupted") == 0) {
            return error_set(error, STATUS_STOPPED, "no receipt: the answer was interrupted");
        }
        TRY(take_receipt(generation, tokens, outcome, error));
        TRY(prove_find(&at, &token, prove, &machine, error));
        if (at == outcome->tokens) {
            return prove_write(prove, &machine, error);
        }
        if (prove->corrections == PROVE_CORRECTIONS_MAX) {
            return error_set(error, STATUS_REFUSED,
                             "no receipt: after %d corrections the step still chooses another "
                             "token, number %u of the answer",
                             PROVE_CORRECTIONS_MAX, at);
        }
        TRY(correct_answer(generation, answer, tokens, at, token, outcome, error));
    }
}

/* Proves the answer, where a receipt is wanted, and prints what was held back till then. */
static enum status end_answer(struct generation *generation, struct answer *answer, json_t *tokens,
                              struct outcome *outcome, struct error *error)
{
    enum status status = STATUS_OK;

    if (generation->prove.path != NULL) {
        status = prove_answer(generation, answer, tokens, outcome, error);
        answer->out = command_people(generation->context);
        repeat_answer(answer, tokens);
    }
    TRY(answer_end(answer, status == STATUS_OK ? error : NULL));
    if (status == STATUS_OK && generation->prove.path != NULL && answer->out != NULL) {
        (void)fflush(answer->out);
        fprintf(stderr, "\n%s: %" PRIu32 " tokens are proven, %" PRIu32 " of them corrected\n",
                generation->prove.path, outcome->tokens, generation->prove.corrections);
    }
    return status;
}

/* ---- the report ------------------------------------------------------------ */

/* U+FFFD in place of what is no UTF-8. The caller releases it. */
static void make_valid(struct buffer *valid, const struct buffer *text)
{
    size_t at = 0;

    buffer_init(valid, 4 * text->size + 1);
    while (at < text->size) {
        const size_t good = utf8_valid(text->data + at, text->size - at);

        buffer_add(valid, text->data + at, good);
        at += good;
        if (at < text->size) {
            buffer_add_text(valid, "\xef\xbf\xbd");
            at += utf8_invalid(text->data + at, text->size - at);
        }
    }
}

static int report_json(struct generation *generation, const struct buffer *text, json_t *tokens,
                       const struct outcome *outcome)
{
    const double seconds = outcome->seconds_writing;

    json_t *json = json_pack("{s:o, s:o, s:s, s:I, s:I, s:f, s:f}", "text",
                             json_stringn(buffer_text(text), text->size), "tokens", tokens, "end",
                             outcome->end, "prompt_tokens", (json_int_t)outcome->prompt_tokens,
                             "seed", (json_int_t)generation->sampler.rule.seed, "seconds_reading",
                             outcome->seconds_reading, "tokens_per_second",
                             seconds > 0.0 ? outcome->tokens / seconds : 0.0);

    if (generation->prove.path != NULL) {
        (void)json_object_set_new(json, "receipt", json_string(generation->prove.path));
        (void)json_object_set_new(json, "corrected",
                                  json_integer((json_int_t)generation->prove.corrections));
    }
    return command_say(generation->context, json, "%s", "");
}

/* Answers the question, and keeps the answer in a conversation. */
static enum status answer_question(struct generation *generation, struct outcome *outcome,
                                   int *code, struct error *error)
{
    struct command_context *context = generation->context;
    json_t *tokens = json_array();
    struct answer answer;
    struct buffer valid = {0};
    double start = steady_seconds();
    enum status status;

    *outcome = (struct outcome){.end = "interrupted"};
    answer_init(&answer, &generation->tokenizer, &generation->stops,
                generation->prove.path != NULL ? NULL : command_people(context),
                generation->terminal);
    sampler_restart(&generation->sampler, generation->rule.seed + generation->answers++);
    TRY_OUT(read_question(generation, outcome, error));
    outcome->seconds_reading = steady_seconds() - start;
    start = steady_seconds();
    if (!stop_requested(&generation->stop)) {
        TRY_OUT(write_answer(generation, &answer, tokens, outcome, error));
    }
    outcome->seconds_writing = steady_seconds() - start;
    TRY_OUT(end_answer(generation, &answer, tokens, outcome, error));
    make_valid(&valid, &answer.text);
    TRY_OUT(buffer_check(&valid, error, "the answer"));
    if (generation->question.layout != NULL) {
        TRY_OUT(question_add(&generation->question, error, CHAT_ASSISTANT, buffer_text(&valid),
                             valid.size));
    }
    if (command_people(context) == NULL) {
        *code = report_json(generation, &valid, json_incref(tokens), outcome);
    } else {
        fputc('\n', context->out);
        (void)fflush(context->out);
    }
out:
    json_decref(tokens);
    buffer_release(&valid);
    answer_release(&answer);
    return status;
}

/* ---- a conversation ------------------------------------------------------- */

static enum status say_message(struct generation *generation, const char *text, size_t size,
                               struct outcome *outcome, int *code, struct error *error)
{
    struct question *question = &generation->question;

    if (question->layout == NULL) {
        TRY(question_of_text(question, error, text, size));
    } else {
        TRY(question_add(question, error, CHAT_USER, text, size));
        TRY(question_lay_out(question, error));
        if (generation->answers == 0) {
            add_stop_id(&generation->stops, question->end_of_turn);
        }
    }
    if (generation->decode == NULL) {
        TRY(open_decoder(generation, error));
    }
    return answer_question(generation, outcome, code, error);
}

/* Begins with the prompt, if there is one. */
static enum status hold_conversation(struct generation *generation, const char *prompt, size_t size,
                                     int *code, struct error *error)
{
    const struct options *given = generation->context->options;
    const char *system = options_text(given, "system");
    const bool asks = isatty(STDIN_FILENO) && command_people(generation->context) != NULL;
    struct typed_lines lines = {.bytes = malloc(TYPED_LINE_SIZE_MAX)};
    struct outcome outcome = {.end = ""};
    enum status status = STATUS_OK;

    if (lines.bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a line");
    }
    if (system != NULL) {
        TRY_OUT(question_add(&generation->question, error, CHAT_SYSTEM, system, strlen(system)));
    }
    for (;;) {
        if (prompt == NULL) {
            if (asks) {
                fprintf(stderr, "> ");
            }
            prompt = typed_lines_next(&size, &lines, &generation->stop);
        }
        if (prompt == NULL || *code != COMMAND_OK) {
            break;
        }
        if (size > 0) {
            TRY_OUT(say_message(generation, prompt, size, &outcome, code, error));
        }
        prompt = NULL;
    }
out:
    free(lines.bytes);
    return status;
}

/* ---- the command ---------------------------------------------------------- */

static enum status check_options(const struct options *given, struct error *error)
{
    static const char *const of_chats[] = {"system", "date"};

    for (size_t i = 0; i < sizeof(of_chats) / sizeof(of_chats[0]); i++) {
        if (options_text(given, "chat") == NULL && options_given(given, of_chats[i])) {
            return error_set(error, STATUS_USAGE, "--%s says nothing without --chat", of_chats[i]);
        }
    }
    if (options_text(given, "prove") != NULL && options_text(given, "logits") != NULL) {
        return error_set(error, STATUS_USAGE,
                         "--logits with --prove: the tokens are those of the step, and not of the "
                         "logits of a decoder");
    }
    if (options_text(given, "prompt") != NULL && options_text(given, "prompt-file") != NULL) {
        return error_set(error, STATUS_USAGE, "one of --prompt and --prompt-file is enough");
    }
    if (options_text(given, "chat") == NULL && options_text(given, "prompt") == NULL &&
        options_text(given, "prompt-file") == NULL) {
        (void)error_set(error, STATUS_USAGE, "there is nothing to go on with");
        error_advise(error, "say --prompt TEXT, --prompt-file FILE or --chat auto");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

static enum status speak_answer(struct generation *generation, const char *prompt, size_t size,
                                int *code, struct error *error)
{
    struct outcome outcome = {.end = ""};

    TRY(open_generation(generation, error));
    if (options_text(generation->context->options, "chat") != NULL) {
        TRY(hold_conversation(generation, prompt, size, code, error));
    } else {
        TRY(say_message(generation, prompt, size, &outcome, code, error));
    }
    if (stop_requested(&generation->stop)) {
        *code = COMMAND_UNKNOWN;
    }
    return close_logits(generation, error);
}

static enum status run_all(struct generation *generation, int *code, struct error *error)
{
    const struct options *given = generation->context->options;
    const char *prompt = options_text(given, "prompt");
    const char *path = options_text(given, "prompt-file");
    struct file_bytes bytes = {0};
    enum status status;

    TRY(check_options(given, error));
    TRY(stop_open(&generation->stop, error));
    if (path == NULL) {
        return speak_answer(generation, prompt, prompt == NULL ? 0 : strlen(prompt), code, error);
    }
    TRY(file_read(&bytes, error, path, ENCODE_SIZE_MAX));
    status = speak_answer(generation, (const char *)bytes.data, bytes.size, code, error);
    file_bytes_release(&bytes);
    return status;
}

static int generate_run(struct command_context *context)
{
    struct generation *generation = calloc(1, sizeof(*generation));
    struct error error;
    enum status status;
    int code = COMMAND_OK;

    error_init(&error);
    if (generation == NULL) {
        (void)error_set(&error, STATUS_NO_MEMORY, "out of memory");
        return command_fail(context, &error);
    }
    generation->context = context;
    generation->stop.descriptor = -1;
    generation->terminal = isatty(fileno(context->out));
    status = run_all(generation, &code, &error);
    close_generation(generation);
    stop_close(&generation->stop);
    free(generation);
    return status == STATUS_OK ? code : command_fail(context, &error);
}

static const struct command commands[] = {
    {.name = "generate",
     .summary = "let a model go on with a text, or answer",
     .description =
         "MODEL is a folder as Hugging Face publishes it, or what 'job fetch --hf' and 'bundle "
         "export --hf --merge' make; a bundle, or a model file, with --base FOLDER. The text comes "
         "as it is made. The same prompt, options and seed give the same text on every machine, "
         "with every number of threads and every instruction set. Ends at the tokenizer's end of "
         "text, at a --stop, or after --tokens.",
     .arguments = "MODEL",
     .example = "lockstep generate base --prompt 'Once upon a time' --tokens 50\n"
                "lockstep generate tune.run --base base --prompt 'Is 7 prime?' --temperature 0\n"
                "lockstep generate tuned --chat auto --system 'Answer in one sentence.'",
     .options = generate_options,
     .option_count = GENERATE_OPTIONS,
     .run = generate_run},
};

const struct command_group generate_commands = {
    .commands = commands, .command_count = sizeof(commands) / sizeof(commands[0])};
