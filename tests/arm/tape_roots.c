/*
 * tape_roots.c - prints what one instruction set computes, for make arm to compare.
 *
 *   tape_roots SET tapes COUNT
 *   tape_roots SET pinned STEPS
 *
 * tapes: a root of each of COUNT random tapes, SHA-256 of states, outputs and loss after two steps.
 * pinned: the states of the pinned training runs, up to that many steps; the exit status is 1 where
 * one is another. The last line is SHA-256 of the lines before, by this processor's instructions.
 * SET is a name of isa_name(), or "best"; one that is not here is refused with the status 2.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "proofs/hash/sha256.h"
#include "tests/support/device/training_runs.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

#define THREADS 2

static void digest_add(struct sha256 *hash, const struct random_machine *random)
{
    const struct tape *tape = random->machine->tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];

        if (tensor->role == ROLE_STATE || tensor->role == ROLE_OUTPUT || id == tape->loss) {
            sha256_add(hash, backend_cpu.peek(random->machine, id),
                       tensor->count * dtype_size(tensor->dtype));
        }
    }
}

/* Prints a line, and adds it to the sum of all. */
static void print_root(struct sha256 *all, const char *name, uint64_t number, const char *root)
{
    char line[160];

    (void)snprintf(line, sizeof(line), "%s %llu %s\n", name, (unsigned long long)number, root);
    sha256_add(all, line, strlen(line));
    (void)fputs(line, stdout);
}

static void end(char *text, struct sha256 *hash)
{
    struct digest digest;

    sha256_end(hash, &digest);
    hex_encode(text, digest.bytes, sizeof(digest.bytes));
}

static void print_tape(struct sha256 *all, enum isa isa, uint64_t seed)
{
    struct tape *tape = random_tape(seed, 3 + (uint32_t)(seed % 25));
    struct machine_options options = {.isa = isa, .thread_count = THREADS};
    struct random_machine random;
    struct sha256 hash;
    char text[2 * sizeof(struct digest) + 1];

    random_machine_open(&random, tape, &options, seed);
    random_machine_step(&random, NULL);
    random_machine_step(&random, NULL);
    sha256_init(&hash, SHA256_ISA_BEST);
    digest_add(&hash, &random);
    end(text, &hash);
    print_root(all, "tape", seed, text);
    random_machine_close(&random);
    tape_free(tape);
}

/* Is every state up to `most` steps the pinned one? */
static bool print_run(struct sha256 *all, enum isa isa, const struct training_run *run,
                      uint32_t most)
{
    struct model_options options;
    struct small_model small;
    struct machine *machine;
    uint32_t done = 0;
    bool same = true;

    small_model_options(&options, run->kind);
    small_model_open(&small, &options);
    machine = small_machine_open(&small, isa, THREADS, false);
    for (int i = 0; i < TRAINING_MARKS_MAX && run->steps[i] != 0 && run->steps[i] <= most; i++) {
        char digest[SMALL_DIGEST_TEXT];

        small_machine_steps(machine, run->steps[i] - done);
        done = run->steps[i];
        small_machine_digest(digest, machine);
        print_root(all, model_kind_name(run->kind), done, digest);
        same &= strcmp(digest, run->digests[i]) == 0;
    }
    backend_cpu.close(machine);
    small_model_close(&small);
    return same;
}

static enum isa isa_named(const char *name)
{
    int isa = ISA_SCALAR;

    while (isa < ISA_COUNT && strcmp(name, isa_name((enum isa)isa)) != 0) {
        isa++;
    }
    return strcmp(name, "best") == 0 ? isa_best() : (enum isa)isa;
}

int main(int argc, char **argv)
{
    enum isa isa = argc == 4 ? isa_named(argv[1]) : ISA_COUNT;
    bool same = true;

    if (!isa_available(isa)) {
        fprintf(stderr, "tape_roots: SET (here and right) tapes|pinned COUNT\n");
        return 2;
    }
    uint64_t count = strtoull(argv[3], NULL, 10);
    char text[2 * sizeof(struct digest) + 1];
    struct sha256 all;

    sha256_init(&all, SHA256_ISA_BEST);

    for (uint64_t seed = 0; strcmp(argv[2], "tapes") == 0 && seed < count; seed++) {
        print_tape(&all, isa, seed);
    }
    for (int kind = 0; strcmp(argv[2], "pinned") == 0 && kind < MODEL_COUNT; kind++) {
        same &= print_run(&all, isa, &training_runs[kind], (uint32_t)count);
    }
    end(text, &all);
    printf("all of them %s\n", text);
    return same ? 0 : 1;
}
