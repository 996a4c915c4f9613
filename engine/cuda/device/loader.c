/* loader.c - see loader.h. */
#include "engine/cuda/device/loader.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cuda/kernels/args.h"
#include "engine/rules/rule.h"

/* Where the plugin may lie, seen from the folder of the program. */
static const char *const places[] = {"", "../lib/lockstep/"};

#define PLACE_COUNT (sizeof(places) / sizeof(places[0]))

/* The folder of the program with a / at its end; empty where the system does not say. */
static void program_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    char *end;

    folder[length > 0 ? length : 0] = '\0';
    end = strrchr(folder, '/');
    folder[end == NULL ? 0 : end + 1 - folder] = '\0';
}

enum status loader_check(const struct device_calls *calls, const char *file, struct error *error)
{
    if (calls != NULL && calls->abi == DEVICE_ABI && calls->rules_version == RULES_VERSION &&
        calls->kernel_count == KERNEL_COUNT && calls->arguments_check == KERNEL_ARGUMENTS_CHECK) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_DEVICE, "the CUDA plugin %s is of another build", file);
    error_advise(error, "build or install the program and its plugin together: make && make "
                        "install");
    return STATUS_DEVICE;
}

static enum status load_plugin(const struct device_calls **calls, const char *file,
                               struct error *error)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    device_plugin *plugin = NULL;
    void *symbol;

    if (library == NULL) {
        (void)error_set(error, STATUS_DEVICE, "cannot load the CUDA plugin: %s", dlerror());
        error_advise(error, "build it with 'make' where nvcc is installed, or unset LOCKSTEP_CUDA");
        return STATUS_DEVICE;
    }
    symbol = dlsym(library, DEVICE_SYMBOL);
    /* POSIX promises that a function's address fits a void pointer; ISO C has no cast for it. */
    memcpy(&plugin, &symbol, sizeof(plugin));
    if (plugin == NULL) {
        (void)error_set(error, STATUS_DEVICE, "%s is no CUDA plugin: it has no %s", file,
                        DEVICE_SYMBOL);
        error_advise(error, "let LOCKSTEP_CUDA name %s, or unset it", LOADER_PLUGIN);
        return STATUS_DEVICE;
    }
    *calls = plugin();
    return loader_check(*calls, file, error);
}

enum status loader_open(const struct device_calls **calls, struct error *error)
{
    const char *wish = getenv("LOCKSTEP_CUDA");
    char folder[PATH_MAX];
    char file[PATH_MAX + 64];

    if (wish != NULL && strcmp(wish, "off") == 0) {
        return error_set(error, STATUS_NOT_FOUND, "CUDA is turned off by LOCKSTEP_CUDA");
    }
    if (wish != NULL && wish[0] != '\0') {
        return load_plugin(calls, wish, error);
    }
    program_folder(folder);
    for (size_t i = 0; i < PLACE_COUNT; i++) {
        (void)snprintf(file, sizeof(file), "%s%s%s", folder, places[i], LOADER_PLUGIN);
        if (access(file, R_OK) == 0) {
            return load_plugin(calls, file, error);
        }
    }
    (void)error_set(error, STATUS_NOT_FOUND,
                    "there is no CUDA plugin: %s lies neither in %s nor "
                    "in %s../lib/lockstep",
                    LOADER_PLUGIN, folder, folder);
    error_advise(error, "build it with 'make' where nvcc is installed, or let LOCKSTEP_CUDA name "
                        "the file");
    return STATUS_NOT_FOUND;
}

void loader_driver(char number[LOADER_DRIVER_MAX])
{
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    char line[256] = "";
    const char *at = line;

    (void)snprintf(number, LOADER_DRIVER_MAX, "not known");
    if (file == NULL) {
        return;
    }
    if (fgets(line, sizeof(line), file) == NULL) {
        line[0] = '\0';
    }
    (void)fclose(file);
    for (; *at != '\0'; at++) {
        const size_t length = strspn(at, "0123456789.");

        /* The first word of digits with a point between them. */
        if (length >= 3 && length < LOADER_DRIVER_MAX && memchr(at, '.', length) != NULL &&
            *at != '.' && (at == line || at[-1] == ' ')) {
            (void)snprintf(number, LOADER_DRIVER_MAX, "%.*s", (int)length, at);
            return;
        }
    }
}
