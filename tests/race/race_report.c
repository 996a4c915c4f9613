/* race_report.c - faults: each reported once, with its places in the code; see race.h. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/race/race_core.h"

#define FAULTS_MAX 200
#define LINE_MAX_  240
#define LINES_KEPT 64
#define DEPTH_MAX  6 /* functions that were inlined into each other */

extern const char __executable_start[];

static struct {
    struct race_fault faults[FAULTS_MAX];
    uint32_t count;
    uint32_t unexpected;
    bool expected;
    bool prepared;
} report;

/* What addr2line said of a place. */
static struct line {
    const void *site;
    char text[LINE_MAX_];
} lines[LINES_KEPT];
static uint32_t line_count;

static const char *const names[RACE_KINDS] = {
    [RACE_READ_EARLY] = "a read of what another writes, without order",
    [RACE_WRITE_EARLY] = "a write over what another reads, without order",
    [RACE_WRITE_TWICE] = "two writes without order",
    [RACE_IN_FLIGHT] = "an access where a copy may be under way",
    [RACE_PROXY] = "an asynchronous read of plain writes without a fence of the proxies",
    [RACE_UNWRITTEN] = "a read of what nobody wrote",
    [RACE_OUTSIDE] = "an access outside",
    [RACE_MISALIGNED] = "an address that is not aligned",
    [RACE_DIVERGED] = "lanes of a warp that meet at different places",
    [RACE_STUCK] = "the emulator cannot go on",
};

const char *race_kind_name(enum race_kind kind)
{
    return names[kind];
}

/* The innermost function's line, then those that it was inlined into: "f file:1 < g file:2". */
static void look_up(struct line *line)
{
    char program[512];
    char command[700];
    char text[LINE_MAX_];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    uint32_t depth = 0;
    FILE *pipe;

    (void)snprintf(line->text, sizeof(line->text), "+0x%" PRIxPTR,
                   (uintptr_t)line->site - (uintptr_t)__executable_start);
    if (length <= 0) {
        return;
    }
    program[length] = '\0';
    /* One less: a return address may be the next line's. */
    (void)snprintf(command, sizeof(command), "addr2line -ifps -e '%s' 0x%" PRIxPTR " 2>/dev/null",
                   program, (uintptr_t)line->site - (uintptr_t)__executable_start - 1);
    pipe = popen(command, "r");
    if (pipe == NULL) {
        return;
    }
    while (depth < DEPTH_MAX && fgets(text, sizeof(text), pipe) != NULL) {
        const char *begin = strstr(text, "(inlined by) ");
        const size_t used = depth == 0 ? 0 : strlen(line->text);

        text[strcspn(text, "\n")] = '\0';
        begin = begin == NULL ? text : begin + strlen("(inlined by) ");
        (void)snprintf(line->text + used, sizeof(line->text) - used, "%s%s", used == 0 ? "" : " < ",
                       begin);
        depth++;
    }
    (void)pclose(pipe);
}

static const char *line_of(const void *site)
{
    if (site == NULL) {
        return "the host";
    }
    for (uint32_t i = 0; i < line_count && i < LINES_KEPT; i++) {
        if (lines[i].site == site) {
            return lines[i].text;
        }
    }
    struct line *line = &lines[line_count++ % LINES_KEPT];

    line->site = site;
    look_up(line);
    return line->text;
}

bool race_same_line(const void *site, const void *other)
{
    char first[LINE_MAX_];

    if (site == other) {
        return true;
    }
    (void)snprintf(first, sizeof(first), "%s", line_of(site));
    return strcmp(first, line_of(other)) == 0;
}

static void tell_end(const char *what, const struct race_end *end)
{
    static const char *const accesses[] = {"read", "write", "atomic"};

    fprintf(stderr, "    %s: %s, %s", what, end->kernel, accesses[end->access]);
    if (end->thread != UINT32_MAX) {
        fprintf(stderr, " of thread %u, block (%u, %u)", end->thread, end->block[0], end->block[1]);
    }
    fprintf(stderr, ": %s\n", line_of(end->site));
}

/* Faults that nobody expected are no success, even where the program says so. */
static void end_with_faults(void)
{
    if (report.unexpected > 0) {
        fprintf(stderr, "racecheck: %u faults\n", report.unexpected);
        (void)fflush(NULL);
        _exit(1);
    }
}

void race_tell(enum race_kind kind, const struct race_end *now, const struct race_end *before,
               const char *where, uint64_t offset, uint64_t size)
{
    const void *site = before == NULL ? NULL : before->site;

    for (uint32_t i = 0; i < report.count; i++) {
        struct race_fault *fault = &report.faults[i];

        if (fault->expected == report.expected && fault->kind == kind &&
            fault->now.site == now->site && fault->before.site == site &&
            strcmp(fault->now.kernel, now->kernel) == 0) {
            fault->count++;
            return;
        }
    }
    if (report.count == FAULTS_MAX) {
        report.unexpected += !report.expected;
        return;
    }
    struct race_fault *fault = &report.faults[report.count++];

    *fault = (struct race_fault){.kind = kind,
                                 .now = *now,
                                 .where = where,
                                 .offset = offset,
                                 .size = size,
                                 .count = 1,
                                 .expected = report.expected};
    if (before != NULL) {
        fault->before = *before;
    }
    if (report.expected) {
        return;
    }
    report.unexpected++;
    if (!report.prepared) {
        report.prepared = true;
        (void)atexit(end_with_faults);
    }
    fprintf(stderr, "racecheck: %s: %s, %" PRIu64 " bytes at +%" PRIu64 " of %s\n", now->kernel,
            names[kind], size, offset, where);
    tell_end("now", now);
    if (before != NULL) {
        tell_end("before", before);
    }
}

uint32_t race_fault_count(void)
{
    return report.count;
}

const struct race_fault *race_fault_at(uint32_t at)
{
    assert(at < report.count);
    return &report.faults[at];
}

void race_forget(void)
{
    report.count = 0;
}

void race_expect(bool expected)
{
    report.expected = expected;
}

bool race_stuck(const char *why)
{
    const struct race_end now = race_end_of(race_stamp());

    race_tell(RACE_STUCK, &now, NULL, why, 0, 0);
    return report.expected;
}
