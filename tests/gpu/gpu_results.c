/* gpu_results.c - see gpu_results.h. */
#include "tests/gpu/gpu_results.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/cuda/device/loader.h"

#define NUMBERS_MAX 100 /* of runs on one device on one day */

/* ---- names -------------------------------------------------------------------- */

/* Adds the letters and digits of text; a hyphen for each run of anything else between them. */
static void add_plain(char name[GPU_RESULTS_NAME_MAX], const char *text, size_t most)
{
    size_t used = strlen(name);
    bool gap = used > 0;

    for (; *text != '\0' && most > 0; text++, most--) {
        const char letter = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;

        if (!(letter >= 'a' && letter <= 'z') && !(letter >= '0' && letter <= '9')) {
            gap = used > 0;
            continue;
        }
        if (gap && used + 2 < GPU_RESULTS_NAME_MAX) {
            name[used++] = '-';
        }
        gap = false;
        if (used + 1 < GPU_RESULTS_NAME_MAX) {
            name[used++] = letter;
        }
    }
    name[used] = '\0';
}

#define DEVICE_LETTERS 60
#define REST_LETTERS   30

void gpu_results_name(char name[GPU_RESULTS_NAME_MAX], const char *device, const char *date,
                      const char *rest)
{
    name[0] = '\0';
    add_plain(name, "gpu-check", GPU_RESULTS_NAME_MAX);
    add_plain(name, device, DEVICE_LETTERS);
    add_plain(name, date, GPU_RESULTS_NAME_MAX);
    add_plain(name, rest, REST_LETTERS);
}

/* ---- files -------------------------------------------------------------------- */

static void path_of(char path[GPU_RESULTS_PATH_MAX], const struct gpu_results *results,
                    const char *ending)
{
    (void)snprintf(path, GPU_RESULTS_PATH_MAX, "%.*s%s", GPU_RESULTS_PATH_MAX - 16, results->path,
                   ending);
}

/* A new file, or NULL: errno says why. */
static FILE *new_file(const struct gpu_results *results, const char *ending)
{
    char path[GPU_RESULTS_PATH_MAX];
    int descriptor;

    path_of(path, results, ending);
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return descriptor < 0 ? NULL : fdopen(descriptor, "w");
}

static void remove_file(const struct gpu_results *results, const char *ending)
{
    char path[GPU_RESULTS_PATH_MAX];

    path_of(path, results, ending);
    (void)unlink(path);
}

static bool is_there(const struct gpu_results *results, const char *ending)
{
    char path[GPU_RESULTS_PATH_MAX];

    path_of(path, results, ending);
    return access(path, F_OK) == 0;
}

/* Both files of a name that nobody has; false with errno EEXIST: somebody has. */
static bool open_both(const struct gpu_results *results, struct gpu_check *check)
{
    if (is_there(results, ".md") || is_there(results, ".json")) {
        errno = EEXIST;
        return false;
    }
    check->table = new_file(results, ".part.md");
    if (check->table == NULL) {
        return false;
    }
    check->json = new_file(results, ".part.json");
    if (check->json == NULL) {
        const int why = errno;

        (void)fclose(check->table);
        check->table = NULL;
        remove_file(results, ".part.md");
        errno = why;
        return false;
    }
    return true;
}

static bool open_next(struct gpu_results *results, struct gpu_check *check, const char *folder,
                      const char *name)
{
    for (int number = 1; number <= NUMBERS_MAX; number++) {
        char ending[16] = "";

        if (number > 1) {
            (void)snprintf(ending, sizeof(ending), "-%d", number);
        }
        (void)snprintf(results->path, sizeof(results->path), "%.*s/%s%s",
                       GPU_RESULTS_PATH_MAX - GPU_RESULTS_NAME_MAX - 32, folder, name, ending);
        if (open_both(results, check)) {
            if (number > 1) {
                printf("gpu-check: %s/%s has results of an earlier run: these go beside them\n",
                       folder, name);
            }
            return true;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    printf("gpu-check: no file for results at %s: %s\n", results->path, strerror(errno));
    results->path[0] = '\0';
    return false;
}

/* ---- what they hold ------------------------------------------------------------- */

/* Text between quotation marks, as JSON has it. */
static void write_text(FILE *file, const char *text)
{
    (void)fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            (void)fputc('\\', file);
        }
        if ((unsigned char)*text < 0x20) {
            fprintf(file, "\\u%04x", (unsigned)(unsigned char)*text);
        } else {
            (void)fputc(*text, file);
        }
    }
    (void)fputc('"', file);
}

/* Text in a cell of a table. */
static void write_cell(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        (void)fputc(*text == '|' || *text == '\n' || *text == '\r' ? ' ' : *text, file);
    }
}

static void write_begin(struct gpu_check *check, const char *date, const char *only)
{
    const struct device_facts *facts = &check->tally->facts;
    char driver[LOADER_DRIVER_MAX];

    loader_driver(driver);
    fprintf(check->json, "[\n  {\"name\": \"device\", \"value\": ");
    write_text(check->json, facts->name);
    fprintf(check->json,
            ", \"driver_version\": \"%s\", \"driver\": %d, \"runtime\": %d, \"capability\": %d, "
            "\"date\": \"%s\", \"quick\": %s, \"only\": ",
            driver, facts->driver, facts->runtime, facts->capability, date,
            check->quick ? "true" : "false");
    write_text(check->json, only == NULL ? "" : only);
    fprintf(check->json, "}");
    fprintf(check->table, "# gpu-check, %s\n\n", date);
    write_cell(check->table, facts->name);
    fprintf(check->table,
            ", compute capability %d.%d, %.0f MiB; driver %s for CUDA %d.%d, plugin built with "
            "%d.%d%s.",
            facts->capability / 10, facts->capability % 10, (double)facts->memory / 1048576.0,
            driver, facts->driver / 1000, facts->driver % 1000 / 10, facts->runtime / 1000,
            facts->runtime % 1000 / 10, check->quick ? "; QUICK: these are no measurements" : "");
    if (only != NULL) {
        fprintf(check->table, " Only: ");
        write_cell(check->table, only);
        fprintf(check->table, ".");
    }
    fprintf(check->table, "\n\n| what | value | unit | goal |\n|---|---:|---|---|\n");
    (void)fflush(check->json);
    (void)fflush(check->table);
}

bool gpu_results_begin(struct gpu_results *results, struct gpu_check *check, const char *folder,
                       const char *only)
{
    const time_t seconds = time(NULL);
    struct tm calendar;
    char date[32] = "";
    char rest[64];
    char name[GPU_RESULTS_NAME_MAX];

    (void)strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&seconds, &calendar));
    (void)snprintf(rest, sizeof(rest), "%s%s%.40s", check->quick ? "quick " : "",
                   only == NULL ? "" : "only ", only == NULL ? "" : only);
    gpu_results_name(name, check->tally->facts.name, date, rest);
    if (!open_next(results, check, folder, name)) {
        return false;
    }
    write_begin(check, date, only);
    return true;
}

void gpu_results_section(struct gpu_check *check, const char *name, const char *verdict,
                         uint64_t comparisons, const char *reason)
{
    if (check->json != NULL) {
        fprintf(check->json, ",\n  {\"name\": ");
        write_text(check->json, name);
        fprintf(check->json, ", \"value\": \"%s\", \"comparisons\": %llu, \"reason\": ", verdict,
                (unsigned long long)comparisons);
        write_text(check->json, reason);
        fprintf(check->json, "}");
        (void)fflush(check->json);
    }
    if (check->table != NULL) {
        fprintf(check->table, "| %s | %s | ", name, verdict);
        if (comparisons > 0) {
            fprintf(check->table, "%llu comparisons", (unsigned long long)comparisons);
        }
        fprintf(check->table, " | ");
        write_cell(check->table, reason);
        fprintf(check->table, " |\n");
        (void)fflush(check->table);
    }
}

/* To its lasting name, over nothing that is there. */
static bool keep(const struct gpu_results *results, FILE *file, const char *part,
                 const char *ending)
{
    const bool written = fflush(file) == 0 && fsync(fileno(file)) == 0;
    char from[GPU_RESULTS_PATH_MAX];
    char to[GPU_RESULTS_PATH_MAX];

    path_of(from, results, part);
    path_of(to, results, ending);
    if (fclose(file) == 0 && written) {
        if (link(from, to) == 0) {
            (void)unlink(from);
            return true;
        }
        /* Some file systems have no links. */
        if (errno != EEXIST && !is_there(results, ending) && rename(from, to) == 0) {
            return true;
        }
    }
    printf("gpu-check: the results stay in %s: %s\n", from, strerror(errno));
    return false;
}

bool gpu_results_end(struct gpu_results *results, struct gpu_check *check, uint32_t untold)
{
    const struct gpu_tally *tally = check->tally;
    bool kept;

    fprintf(check->json,
            ",\n  {\"name\": \"comparisons\", \"value\": %llu, \"differ\": %llu, \"untold\": "
            "%u}\n]\n",
            (unsigned long long)tally->comparisons, (unsigned long long)tally->failures, untold);
    fprintf(check->table, "\n%llu comparisons of bits, %llu differ; %u sections could not tell.\n",
            (unsigned long long)tally->comparisons, (unsigned long long)tally->failures, untold);
    kept = keep(results, check->table, ".part.md", ".md");
    kept = keep(results, check->json, ".part.json", ".json") && kept;
    check->table = NULL;
    check->json = NULL;
    if (kept) {
        printf("gpu-check: results in %s.md and .json\n", results->path);
    }
    return kept;
}
