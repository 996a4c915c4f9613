/* doctor.c - see doctor.h. */
#include "base/cli/doctor.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "base/host.h"
#include "base/io/file.h"
#include "base/version.h"

#define GIBIBYTE             1073741824.0
#define MEMORY_ENOUGH_BYTES  (UINT64_C(2) << 30)
#define DISK_ENOUGH_GIB      2.0
#define CLOCK_LEAST_S        1750000000 /* June 2025 */
#define CUDA_DEVICES_MAX     16
#define CUDA_DEVICE_NAME_MAX 128

static void set_finding(struct doctor_finding *finding, enum doctor_grade grade, const char *format,
                        ...) __attribute__((format(printf, 3, 4)));

static void set_finding(struct doctor_finding *finding, enum doctor_grade grade, const char *format,
                        ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding->text, sizeof(finding->text), format, arguments);
    va_end(arguments);
    finding->grade = grade;
}

static void add_advice(struct doctor_finding *finding, const char *advice)
{
    snprintf(finding->advice, sizeof(finding->advice), "%s", advice);
}

/* ---- the checks ------------------------------------------------------------------------- */

static void look_at_cpu(struct doctor_finding *finding, const struct command_context *context)
{
    struct host host;
    const char *fastest;

    (void)context;
    host_look(&host);
    bool quick = host.has_avx2 || host.has_neon;

    fastest = host.has_avx512 ? "AVX-512 with VNNI"
              : host.has_avx2 ? "AVX2"
              : host.has_i8mm ? "NEON with products of bytes"
              : host.has_neon ? "NEON"
                              : "no vector instructions that Lockstep uses";
    set_finding(finding, quick ? DOCTOR_GOOD : DOCTOR_NOTE, "%s, %u cores, %s", host.cpu,
                host.cores, fastest);
    if (!quick) {
        add_advice(finding, "everything works and gives the same bits, by scalar code, slowly");
    }
}

static void look_at_arithmetic(struct doctor_finding *finding,
                               const struct command_context *context)
{
    struct host host;

    (void)context;
    host_look(&host);
    if (host.flushes_subnormals) {
        set_finding(finding, DOCTOR_BROKEN,
                    "subnormal numbers are flushed to zero: results would differ");
        add_advice(finding, "look for a preloaded library (LD_PRELOAD) that was built for speed");
    } else {
        set_finding(finding, DOCTOR_GOOD, "binary32 keeps its subnormal numbers");
    }
}

static void look_at_memory(struct doctor_finding *finding, const struct command_context *context)
{
    struct host host;
    bool enough;

    (void)context;
    host_look(&host);
    enough = host.memory_free_bytes >= MEMORY_ENOUGH_BYTES;
    set_finding(finding, enough ? DOCTOR_GOOD : DOCTOR_NOTE, "%.1f GiB, %.1f GiB free",
                (double)host.memory_bytes / GIBIBYTE, (double)host.memory_free_bytes / GIBIBYTE);
    if (!enough) {
        add_advice(finding, "less than 2 GiB is free: small models only");
    }
}

static void look_at_libraries(struct doctor_finding *finding, const struct command_context *context)
{
    (void)context;
    set_finding(
        finding, DOCTOR_GOOD, "OpenSSL %s, curl %s, sqlite %s, jansson %s, microhttpd %s, zstd %s",
        OpenSSL_version(OPENSSL_VERSION_STRING), curl_version_info(CURLVERSION_NOW)->version,
        sqlite3_libversion(), JANSSON_VERSION, MHD_get_version(), ZSTD_versionString());
    if (sqlite3_threadsafe() == 0) {
        set_finding(finding, DOCTOR_BROKEN, "sqlite was built without threads");
        add_advice(finding, "install the sqlite3 library of the distribution");
    }
}

/* The calls of the driver that doctor makes, found at run time: CUDA is never required. */
struct cuda_driver {
    void *library;
    int (*init)(unsigned flags);
    int (*version)(int *version);
    int (*device_count)(int *count);
    int (*device_name)(char *name, int size, int device);
};

static bool find_symbol(void *slot, void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    /* POSIX: a function's address fits a void pointer. ISO C has no cast for it. */
    memcpy(slot, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool cuda_driver_open(struct cuda_driver *driver)
{
    memset(driver, 0, sizeof(*driver));
    driver->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver->library != NULL && find_symbol(&driver->init, driver->library, "cuInit") &&
           find_symbol(&driver->version, driver->library, "cuDriverGetVersion") &&
           find_symbol(&driver->device_count, driver->library, "cuDeviceGetCount") &&
           find_symbol(&driver->device_name, driver->library, "cuDeviceGetName");
}

static void list_devices(struct doctor_finding *finding, const struct cuda_driver *driver)
{
    int version = 0;
    int count = 0;
    size_t used;

    (void)driver->version(&version);
    if (driver->device_count(&count) != 0 || count <= 0) {
        set_finding(finding, DOCTOR_NOTE, "a CUDA driver, but no device");
        add_advice(finding, "see what nvidia-smi says");
        return;
    }
    set_finding(finding, DOCTOR_GOOD, "driver for CUDA %d.%d, %d device%s:", version / 1000,
                version % 1000 / 10, count, count == 1 ? "" : "s");
    used = strlen(finding->text);
    for (int i = 0; i < count && i < CUDA_DEVICES_MAX && used < sizeof(finding->text); i++) {
        char name[CUDA_DEVICE_NAME_MAX] = "unknown";

        (void)driver->device_name(name, sizeof(name), i);
        used += (size_t)snprintf(finding->text + used, sizeof(finding->text) - used, "%s %s",
                                 i == 0 ? "" : ",", name);
    }
}

static void look_at_cuda(struct doctor_finding *finding, const struct command_context *context)
{
    struct cuda_driver driver;

    (void)context;
    if (!cuda_driver_open(&driver)) {
        set_finding(finding, DOCTOR_NOTE, "no CUDA driver: work runs on the processor");
    } else {
        int code = driver.init(0);

        if (code == 0) {
            list_devices(finding, &driver);
        } else {
            set_finding(finding, DOCTOR_NOTE, "a CUDA driver that does not start (error %d)", code);
            add_advice(finding, "see what nvidia-smi says");
        }
    }
    if (driver.library != NULL) {
        dlclose(driver.library);
    }
}

/* The disk of the folder where nodes and outboxes keep their state. Makes no folder: looks at the
 * nearest one above that is there. */
static void look_at_disk(struct doctor_finding *finding, const struct command_context *context)
{
    char folder[FILE_PATH_MAX];
    struct error error;
    struct statvfs disk;
    double free_gib;

    (void)context;
    error_init(&error);
    if (file_place(folder, sizeof(folder), &error, FILE_PLACE_STATE, "") != STATUS_OK) {
        set_finding(finding, DOCTOR_BROKEN, "%s", error.text);
        add_advice(finding, error.advice);
        return;
    }
    while (access(folder, F_OK) != 0 && strrchr(folder, '/') > folder) {
        *strrchr(folder, '/') = '\0';
    }
    if (access(folder, W_OK | X_OK) != 0 || statvfs(folder, &disk) != 0) {
        set_finding(finding, DOCTOR_BROKEN, "%.400s: %s", folder, strerror(errno));
        add_advice(finding,
                   "the state of nodes and outboxes is kept there; XDG_STATE_HOME moves it");
        return;
    }
    free_gib = (double)disk.f_bavail * (double)disk.f_frsize / GIBIBYTE;
    set_finding(finding, free_gib >= DISK_ENOUGH_GIB ? DOCTOR_GOOD : DOCTOR_NOTE,
                "%.1f GiB free below %.400s", free_gib, folder);
    if (free_gib < DISK_ENOUGH_GIB) {
        add_advice(finding, "a verifier's node keeps up to disk-max= of what it fetches, a run "
                            "its checkpoints");
    }
}

/* Deadlines follow the ledger's clock; logs, certificates and a local ledger follow this one. */
static void look_at_clock(struct doctor_finding *finding, const struct command_context *context)
{
    struct timex clock = {.modes = 0};
    int state = adjtimex(&clock);
    time_t now = time(NULL);
    struct tm utc;
    char text[32] = "";

    (void)context;
    if (gmtime_r(&now, &utc) != NULL) {
        (void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc);
    }
    if (now < CLOCK_LEAST_S) {
        set_finding(finding, DOCTOR_BROKEN, "%s: this clock was never set", text);
        add_advice(finding, "set it; chrony or systemd-timesyncd keep it right");
    } else if (state < 0) {
        set_finding(finding, DOCTOR_NOTE, "%s; whether it is kept right is not known", text);
    } else if (state == TIME_ERROR || (clock.status & STA_UNSYNC) != 0) {
        set_finding(finding, DOCTOR_NOTE, "%s, and nothing keeps it right", text);
        add_advice(finding,
                   "chrony or systemd-timesyncd do; a machine inside another may be right");
    } else {
        set_finding(finding, DOCTOR_GOOD, "%s, kept right to %.3g s", text,
                    (double)clock.maxerror / 1e6);
    }
}

/* Only whether the CUDA backend could be built here. */
static void look_at_nvcc(struct doctor_finding *finding, const struct command_context *context)
{
    char list[PATH_MAX * 2];
    char *rest = NULL;
    const char *path = getenv("PATH");

    (void)context;
    snprintf(list, sizeof(list), "%s:/usr/local/cuda/bin", path == NULL ? "" : path);
    for (char *folder = strtok_r(list, ":", &rest); folder != NULL;
         folder = strtok_r(NULL, ":", &rest)) {
        char candidate[PATH_MAX];
        int length = snprintf(candidate, sizeof(candidate), "%s/nvcc", folder);

        if (length > 0 && (size_t)length < sizeof(candidate) && access(candidate, X_OK) == 0) {
            set_finding(finding, DOCTOR_GOOD, "%s", candidate);
            return;
        }
    }
    set_finding(finding, DOCTOR_NOTE, "not found: the CUDA backend cannot be built here");
}

const struct doctor_check doctor_checks[DOCTOR_CHECK_COUNT] = {
    {"cpu", look_at_cpu},       {"arithmetic", look_at_arithmetic},
    {"memory", look_at_memory}, {"disk", look_at_disk},
    {"clock", look_at_clock},   {"libraries", look_at_libraries},
    {"cuda", look_at_cuda},     {"nvcc", look_at_nvcc},
};

/* ---- for checks of other rooms --------------------------------------------------------------- */

static const char *environment_value(const char *name)
{
    return getenv(name);
}

/* Keys of other commands pass. */
static bool knows_any(const void *context, const char *key)
{
    (void)context;
    (void)key;
    return true;
}

enum status doctor_options(struct options *options, const struct command_context *context,
                           const struct option_table *table, struct error *error)
{
    const struct option_dictionary dictionary = {.knows = knows_any};
    struct option_sources sources = {.environment = environment_value, .dictionary = &dictionary};
    char config[FILE_PATH_MAX];

    sources.config_path = options_text(context->options, "config");
    if (sources.config_path == NULL &&
        file_place(config, sizeof(config), NULL, FILE_PLACE_CONFIG, "config") == STATUS_OK) {
        sources.config_path = config;
    }
    return options_parse(options, error, table, 1, NULL, &sources);
}

/* ---- the command ------------------------------------------------------------------------ */

static const char *grade_name(enum doctor_grade grade)
{
    switch (grade) {
    case DOCTOR_GOOD:
        return "good";
    case DOCTOR_NOTE:
        return "note";
    case DOCTOR_BROKEN:
        return "broken";
    }
    return "broken";
}

static void add_finding(struct sheet *sheet, json_t *list, const char *name,
                        const struct doctor_finding *finding)
{
    const char *grade = grade_name(finding->grade);
    char text[sizeof(finding->text) * 6];
    char advice[sizeof(finding->advice) * 6];

    log_escape(text, sizeof(text), finding->text, 0);
    log_escape(advice, sizeof(advice), finding->advice, 0);
    (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "check", name, "grade",
                                                grade, "text", text, "advice", advice));
    sheet_print(sheet, "%-7s %-11s %s\n", grade, name, text);
    if (advice[0] != '\0') {
        sheet_print(sheet, "%-19s %s\n", "", advice);
    }
}

int doctor_run(struct command_context *context)
{
    json_t *list = json_array();
    bool broken = false;
    struct sheet sheet;

    sheet_init(&sheet);
    for (size_t i = 0; i < context->group_count; i++) {
        for (size_t j = 0; j < context->groups[i]->check_count; j++) {
            const struct doctor_check *check = &context->groups[i]->checks[j];
            struct doctor_finding finding = {.grade = DOCTOR_BROKEN};

            check->look(&finding, context);
            broken = broken || finding.grade == DOCTOR_BROKEN;
            add_finding(&sheet, list, check->name, &finding);
        }
    }
    sheet_merge(&sheet, json_pack("{s:s, s:b, s:o}", "version", LOCKSTEP_VERSION, "fit", !broken,
                                  "checks", list));
    if (command_show(context, &sheet) != COMMAND_OK) {
        return COMMAND_UNKNOWN;
    }
    return broken ? COMMAND_REFUSED : COMMAND_OK;
}
