/*
 * gpu_ladder.c - gpu-check: everything that only a GPU can show, in one program, in an order that
 * wastes no minute of a borrowed device. Links nothing but the engine, the hashes and the C
 * library, so that it can be built on a bare machine with gcc and nvcc: see mk/cuda.mk.
 *
 *     gpu-check [--budget 8m] [FOLDER [NOTE]]
 *         exit 0: all bits equal; 1: some differ; 2: no device, or a part of it could not tell.
 *         Results go to files of their own in FOLDER (gpu_results.h), row by row; NOTE is made to
 *         hold their path without its ending. A budget (s, m or h) bounds the whole: each section
 *         gets a share of what is left, and what finds none is left out aloud.
 *     GPU_CHECK_ONLY=bits|speed|NAME       one half alone, or the sections with NAME in theirs
 *     GPU_CHECK_QUICK=1                    small sizes, to see that everything runs
 *
 * First all variants are barred but plain kernels; then one is freed at a time. One that differs,
 * fails, traps or does not end is named, and barred from all that follows. Then bits of every kind,
 * models and pinned states, by what is free. Then speed; then the same launches under load; then
 * the toolkit's own tools.
 */
#include "tests/gpu/gpu_results.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/gpu/gpu_section.h"

#define WITHOUT_BUDGET_S 86400.0
/* Of what is left a section gets this part, but no less than SHARE_LEAST_S. */
#define SHARE            0.125
#define SHARE_LEAST_S    5.0

#define TEST_S  60
#define SHORT_S 300
#define LONG_S  1500

/* ---- the device ----------------------------------------------------------------- */

/* Opens and closes devices, for the facts of the first or the reason why there is none. */
static void look(struct gpu_check *check, int kind)
{
    struct device_facts *facts = &check->tally->facts;
    struct device *device = NULL;
    struct device_facts ignored;
    struct error error;
    enum device_result result = check->calls->open(&device, facts, 0);

    (void)kind;
    error_init(&error);
    if (result != DEVICE_OK) {
        gpu_check_must(device_error(check->calls, facts, 0, result, &error), &error);
    }
    check->calls->close(device);
    check->tally->offered = selftest_offered(facts);
    check->tally->devices = 1;
    if (check->calls->open(&device, &ignored, 1) == DEVICE_OK) {
        check->calls->close(device);
        check->tally->devices = 2;
    }
    printf("gpu-check: %s%s, compute capability %d.%d, %.0f MiB, driver for CUDA %d.%d, plugin for "
           "%d.%d\n",
           facts->name, check->tally->devices > 1 ? " and another" : "", facts->capability / 10,
           facts->capability % 10, (double)facts->memory / 1048576.0, facts->driver / 1000,
           facts->driver % 1000 / 10, facts->runtime / 1000, facts->runtime % 1000 / 10);
}

/* ---- the ladder ------------------------------------------------------------------ */

#define ALONE(name, run, variant)                                                                  \
    {"self-test of " name, gpu_check_selftest, VARIANT_##variant, GPU_RUNG_ALONE, TEST_S},         \
    {                                                                                              \
        name " alone", run, VARIANT_##variant, GPU_RUNG_ALONE, SHORT_S                             \
    }
#define MODEL(name, kind)                                                                          \
    {name, gpu_check_model, MODEL_##kind, GPU_RUNG_BITS, SHORT_S},                                 \
    {                                                                                              \
        "pinned states of " name, gpu_check_pinned, MODEL_##kind, GPU_RUNG_BITS, SHORT_S           \
    }
#define BITS(name, run, kind)                                                                      \
    {                                                                                              \
        name, run, kind, GPU_RUNG_BITS, SHORT_S                                                    \
    }
#define SPEED(name, run, kind)                                                                     \
    {                                                                                              \
        name, run, kind, GPU_RUNG_SPEED, SHORT_S                                                   \
    }

/* clang-format off */
static const struct gpu_section sections[] = {
    ALONE("plain", gpu_check_variant, PLAIN),
    BITS("models by plain kernels", gpu_check_fused, VARIANT_PLAIN),
    ALONE("mma", gpu_check_variant, MMA),
    ALONE("half", gpu_check_variant, HALF),
    ALONE("wgmma", gpu_check_variant, WGMMA),
    BITS("one root by every unit", gpu_check_units, 0),
    ALONE("held", gpu_check_fused, HELD),
    ALONE("attention", gpu_check_fused, ATTENTION),
    ALONE("entropy", gpu_check_fused, ENTROPY),
    ALONE("lists", gpu_check_fused, LISTS),
    ALONE("columns", gpu_check_fused, COLUMNS),
    ALONE("strips", gpu_check_fused, STRIPS),
    ALONE("dots", gpu_check_fused, DOTS),
    ALONE("views", gpu_check_fused, VIEWS),
    ALONE("epilogue", gpu_check_fused, EPILOGUE),
    BITS("functions of nasty numbers", gpu_check_functions, 0),
    MODEL("gpt2", GPT2),
    MODEL("llama", LLAMA),
    MODEL("convnet", CONVNET),
    MODEL("mlp", MLP),
    BITS("roots of tensors", gpu_check_hashes, 0),
    BITS("random tapes", gpu_check_tapes, 0),
    SPEED("bytes or halves", gpu_check_unit_times, 0),
    SPEED("hashing", gpu_check_hashing, 0),
    SPEED("product of 8192^3", gpu_check_product, 2),
    SPEED("steps of 4 x 1024", gpu_check_step, 4),
    SPEED("kernels of a step", gpu_check_kernels, 4),
    SPEED("steps without variants that spare passes", gpu_check_fused_speed, 4),
    SPEED("speed of wgmma", gpu_check_variant_speed, VARIANT_WGMMA),
    SPEED("speed of mma", gpu_check_variant_speed, VARIANT_MMA),
    SPEED("speed of half", gpu_check_variant_speed, VARIANT_HALF),
    BITS("thousand launches of wgmma", gpu_check_load, VARIANT_WGMMA),
    BITS("thousand launches of mma", gpu_check_load, VARIANT_MMA),
    BITS("thousand launches of half", gpu_check_load, VARIANT_HALF),
    BITS("steps under load", gpu_check_load, VARIANT_COUNT),
    BITS("steps by ranges and slices", gpu_check_slices, 0),
    BITS("steps split over devices", gpu_check_split, 0),
    SPEED("product 0", gpu_check_product, 0),
    SPEED("product 1", gpu_check_product, 1),
    SPEED("product 3", gpu_check_product, 3),
    SPEED("product 4", gpu_check_product, 4),
    SPEED("product 5", gpu_check_product, 5),
    SPEED("product 6", gpu_check_product, 6),
    SPEED("product 7", gpu_check_product, 7),
    SPEED("product 8", gpu_check_product, 8),
    SPEED("steps of 16 x 1024", gpu_check_step, 16),
    BITS("12 tokens on one and in parts", gpu_check_tokens, 12),
    BITS("52 tokens on one and in parts", gpu_check_tokens, 52),
    BITS("512 tokens on one and in parts", gpu_check_tokens, 512),
    SPEED("gpt2 124M within 1 GiB", gpu_check_small_memory, 4),
    {"compute-sanitizer", gpu_check_tool, GPU_TOOL_SANITIZER, GPU_RUNG_TOOL, LONG_S},
    {"ncu", gpu_check_tool, GPU_TOOL_NCU, GPU_RUNG_TOOL, LONG_S},
};
/* clang-format on */

/* What a run has so far. */
struct ladder {
    struct gpu_check check;
    const char *only;
    double ends_at;
    uint32_t untold;
    bool failed[VARIANT_COUNT]; /* it did not come to an end: not tried once more */
};

/* Sections of a variant that the device does not have are none. */
static bool is_meant(const struct ladder *ladder, const struct gpu_section *section)
{
    const bool contracts = section->run == gpu_check_variant_speed ||
                           (section->run == gpu_check_load && section->kind != VARIANT_COUNT);
    const char *only = ladder->only;

    if ((section->rung == GPU_RUNG_ALONE || contracts) &&
        (ladder->check.tally->offered >> section->kind & 1) == 0) {
        return false;
    }
    if (only == NULL || section->run == gpu_check_selftest) {
        return true;
    }
    return (strcmp(only, "speed") == 0 && section->rung == GPU_RUNG_SPEED) ||
           (strcmp(only, "bits") == 0 && section->rung <= GPU_RUNG_BITS) ||
           strstr(section->name, only) != NULL;
}

/* Why it is not even tried; NULL: it is. */
static const char *left_out(const struct ladder *ladder, const struct gpu_section *section)
{
    const bool contracts = section->run == gpu_check_variant_speed ||
                           (section->run == gpu_check_load && section->kind != VARIANT_COUNT);

    if (ladder->ends_at - gpu_check_now() < 1.0) {
        return "the budget is spent";
    }
    if (section->rung == GPU_RUNG_ALONE && ladder->failed[section->kind]) {
        return "its self-test did not come to an end";
    }
    return contracts && (ladder->check.tally->barred >> section->kind & 1) != 0
               ? "the variant is barred"
               : NULL;
}

static double limit_of(const struct ladder *ladder, const struct gpu_section *section)
{
    const double left = ladder->ends_at - gpu_check_now();
    double share = left * SHARE > SHARE_LEAST_S ? left * SHARE : SHARE_LEAST_S;

    share = share < left ? share : left;
    return share < section->limit_s ? share : section->limit_s;
}

/* From here on nothing uses the variant; the plain kernels have nothing in their place. */
static void bar(struct ladder *ladder, const struct gpu_section *section, bool ended)
{
    const uint32_t bit = 1u << section->kind;

    if (section->rung != GPU_RUNG_ALONE) {
        return;
    }
    ladder->failed[section->kind] = ladder->failed[section->kind] || !ended;
    if (section->kind == VARIANT_PLAIN) {
        printf("  GUILTY: plain kernels, and nothing takes their place\n");
    } else if ((ladder->check.tally->barred & bit) == 0) {
        ladder->check.tally->barred |= bit;
        printf("  GUILTY: %s is barred from here on\n",
               selftest_name((enum kernel_variant)section->kind));
    }
}

static void report(struct ladder *ladder, const struct gpu_section *section, const char *verdict,
                   uint64_t comparisons, const char *reason)
{
    if (reason[0] != '\0') {
        printf("  %-8s %s: %s\n", verdict, section->name, reason);
    } else {
        printf("  %-8s %-52s %llu comparisons\n", verdict, section->name,
               (unsigned long long)comparisons);
    }
    gpu_results_section(&ladder->check, section->name, verdict, comparisons, reason);
}

static void climb(struct ladder *ladder, const struct gpu_section *section)
{
    struct gpu_check *check = &ladder->check;
    struct gpu_tally *tally = check->tally;
    const uint64_t before = tally->comparisons;
    const uint64_t differed = tally->failures;
    const char *why_not = left_out(ladder, section);

    if (why_not != NULL) {
        ladder->untold++;
        report(ladder, section, "left out", 0, why_not);
    } else if (!gpu_section_run(check, section, limit_of(ladder, section))) {
        ladder->untold++;
        report(ladder, section, "CANNOT TELL", 0, tally->reason);
        bar(ladder, section, false);
    } else if (tally->failures != differed) {
        report(ladder, section, "DIFFERS", tally->comparisons - before, tally->first);
        bar(ladder, section, true);
    } else if (section->rung != GPU_RUNG_SPEED) {
        report(ladder, section, section->rung == GPU_RUNG_TOOL ? "clean" : "equal",
               tally->comparisons - before, tally->reason);
    }
    (void)fflush(stdout);
}

/* ---- the program ------------------------------------------------------------------ */

/* "8m", "90s", "1h"; false: no such time. */
static bool read_budget(double *seconds, const char *text)
{
    char *end = NULL;
    const double number = strtod(text, &end);
    const double unit = strcmp(end, "s") == 0   ? 1.0
                        : strcmp(end, "m") == 0 ? 60.0
                        : strcmp(end, "h") == 0 ? 3600.0
                                                : 0.0;

    *seconds = number * unit;
    return end != text && *seconds >= 1.0 && *seconds <= WITHOUT_BUDGET_S;
}

/* For the script that goes on with the files. */
static bool leave_note(const char *path, const struct gpu_results *results)
{
    FILE *note = path == NULL ? NULL : fopen(path, "w");

    if (path != NULL &&
        (note == NULL || fprintf(note, "%s\n", results->path) < 0 || fclose(note) != 0)) {
        perror(path);
        return false;
    }
    return true;
}

static int run_all(struct ladder *ladder, const char *folder, const char *note)
{
    static const struct gpu_section first = {"device", look, 0, GPU_RUNG_BITS, TEST_S};
    struct gpu_results results = {.path = ""};
    struct gpu_check *check = &ladder->check;
    bool unkept = false;

    if (!gpu_section_run(check, &first, limit_of(ladder, &first))) {
        printf("gpu-check: %s\n", check->tally->reason);
        return GPU_CHECK_NO_DEVICE;
    }
    if (folder != NULL && !gpu_results_begin(&results, check, folder, ladder->only)) {
        return GPU_CHECK_NO_DEVICE;
    }
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (is_meant(ladder, &sections[i])) {
            climb(ladder, &sections[i]);
        }
    }
    if (folder != NULL &&
        !(gpu_results_end(&results, check, ladder->untold) && leave_note(note, &results))) {
        unkept = true;
    }
    printf("gpu-check: %llu comparisons, %llu differ; %u sections could not tell\n",
           (unsigned long long)check->tally->comparisons,
           (unsigned long long)check->tally->failures, ladder->untold);
    return check->tally->failures != 0     ? GPU_CHECK_REFUTED
           : ladder->untold != 0 || unkept ? GPU_CHECK_NO_DEVICE
                                           : GPU_CHECK_OK;
}

int main(int argc, char **argv)
{
    const bool bounded = argc > 1 && strcmp(argv[1], "--budget") == 0;
    const int at = bounded ? 3 : 1;
    double budget = WITHOUT_BUDGET_S;
    struct ladder ladder = {.check = {.quick = getenv("GPU_CHECK_QUICK") != NULL},
                            .only = getenv("GPU_CHECK_ONLY")};

    if (bounded && (argc < 3 || !read_budget(&budget, argv[2]))) {
        fprintf(stderr, "gpu-check: --budget takes a time of at most 24h, such as 8m or 90s\n");
        return GPU_CHECK_NO_DEVICE;
    }
    ladder.ends_at = gpu_check_now() + budget;
    ladder.check.tally = mmap(NULL, sizeof(*ladder.check.tally), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ladder.check.tally == MAP_FAILED) {
        perror("gpu-check");
        return GPU_CHECK_NO_DEVICE;
    }
    return run_all(&ladder, argc > at ? argv[at] : NULL, argc > at + 1 ? argv[at + 1] : NULL);
}
