/* bench.c - see bench.h. */
#include "bench/support/bench.h"

#include <assert.h>
#include <jansson.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/host.h"

#define REPETITIONS_MIN     5
#define REPETITIONS_MAX     4096
#define SECONDS_MIN_DEFAULT 0.5
#define CPU_NAME_MAX        128

static double read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double bench_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

struct bench_time bench_clocks(void)
{
    return (struct bench_time){read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_PROCESS_CPUTIME_ID)};
}

struct bench_time bench_since(const struct bench_time *start)
{
    struct bench_time now = bench_clocks();

    return (struct bench_time){now.seconds - start->seconds, now.processor - start->processor};
}

void bench_init(struct bench *bench, const char *title, const char *peer_name, int argc,
                char **argv)
{
    host_wait_quietly(argv);
    memset(bench, 0, sizeof(*bench));
    bench->title = title;
    bench->peer_name = peer_name;
    bench->json_path = argc > 1 ? argv[1] : NULL;
}

void bench_record(struct bench *bench, const char *name, const char *unit, double ours, double peer,
                  int more_is_better)
{
    struct bench_row *row;

    assert(bench->row_count < BENCH_ROWS_MAX);
    row = &bench->rows[bench->row_count++];
    snprintf(row->name, sizeof(row->name), "%s", name);
    snprintf(row->unit, sizeof(row->unit), "%s", unit);
    row->ours = ours;
    row->peer = peer;
    if (ours > 0 && peer > 0) {
        row->ratio = more_is_better ? ours / peer : peer / ours;
    }
    fprintf(stderr, "  %s: %.4g %s\n", row->name, row->ours, row->unit);
}

static double timed(const struct bench_case *one, void (*call)(void *context))
{
    double start;

    if (one->reset != NULL) {
        one->reset(one->context);
    }
    start = bench_now();
    call(one->context);
    return bench_now() - start;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(values[0]), compare_doubles);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void bench_compare(struct bench *bench, const struct bench_case *one)
{
    double *ours = calloc(REPETITIONS_MAX, sizeof(*ours));
    double *peer = calloc(REPETITIONS_MAX, sizeof(*peer));
    double enough = one->seconds_min > 0 ? one->seconds_min : SECONDS_MIN_DEFAULT;
    double spent = 0;
    double ours_median;
    double peer_median;
    size_t count = 0;

    assert(ours != NULL);
    assert(peer != NULL);
    (void)timed(one, one->ours);
    if (one->peer != NULL) {
        (void)timed(one, one->peer);
    }
    while (count < REPETITIONS_MAX && (count < REPETITIONS_MIN || spent < enough)) {
        ours[count] = timed(one, one->ours);
        peer[count] = one->peer == NULL ? 0 : timed(one, one->peer);
        /* The faster side decides, so both are measured for long enough. */
        spent += one->peer != NULL && peer[count] < ours[count] ? peer[count] : ours[count];
        count++;
    }
    ours_median = median(ours, count);
    peer_median = median(peer, count);
    free(ours);
    free(peer);
    if (one->work > 0) {
        bench_record(bench, one->name, one->unit, one->work / ours_median,
                     peer_median > 0 ? one->work / peer_median : 0, 1);
    } else {
        bench_record(bench, one->name, "s", ours_median, peer_median, 0);
    }
}

static void cpu_name(char *name, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];

    snprintf(name, size, "unknown");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char *value = strstr(line, ": ");

        if (strncmp(line, "model name", 10) == 0 && value != NULL) {
            snprintf(name, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static json_t *rows_json(const struct bench *bench)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < bench->row_count; i++) {
        const struct bench_row *row = &bench->rows[i];
        json_t *entry =
            json_pack("{s:s, s:f, s:s}", "name", row->name, "ours", row->ours, "unit", row->unit);

        if (row->peer > 0) {
            json_object_set_new(entry, "peer", json_real(row->peer));
            json_object_set_new(entry, "ratio", json_real(row->ratio));
        }
        json_array_append_new(rows, entry);
    }
    return rows;
}

static int write_json(const struct bench *bench)
{
    char cpu[CPU_NAME_MAX];
    json_t *root;
    int failed;

    cpu_name(cpu, sizeof(cpu));
    root = json_pack("{s:s, s:s, s:s, s:i, s:s, s:o}", "bench", bench->title, "peer",
                     bench->peer_name == NULL ? "" : bench->peer_name, "cpu", cpu, "threads",
                     omp_get_max_threads(), "compiler", __VERSION__, "rows", rows_json(bench));
    failed = root == NULL ||
             json_dump_file(root, bench->json_path, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) != 0;
    json_decref(root);
    if (failed) {
        fprintf(stderr, "bench: cannot write %s\n", bench->json_path);
    }
    return failed;
}

int bench_finish(struct bench *bench)
{
    char cpu[CPU_NAME_MAX];

    printf("%s%s%s\n", bench->title, bench->peer_name == NULL ? "" : " against ",
           bench->peer_name == NULL ? "" : bench->peer_name);
    printf("  %-44s %12s %12s %8s  %s\n", "", "ours", "peer", "ratio", "unit");
    for (size_t i = 0; i < bench->row_count; i++) {
        const struct bench_row *row = &bench->rows[i];

        printf("  %-44s %12.4g ", row->name, row->ours);
        if (row->peer > 0) {
            printf("%12.4g %8.2f  %s\n", row->peer, row->ratio, row->unit);
        } else {
            printf("%12s %8s  %s\n", "-", "-", row->unit);
        }
    }
    cpu_name(cpu, sizeof(cpu));
    printf("  ratio: above 1 is ours better; on %s\n", cpu);
    return bench->json_path == NULL ? 0 : write_json(bench);
}
