/* check_resume.c - see check_resume.h. */
#include "verifier/check/check_resume.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/hex.h"
#include "base/reader.h"
#include "base/steady.h"
#include "proofs/bundle/checkpoint_write.h"
#include "proofs/hash/sha256.h"
#include "verifier/check/check_keep.h"

#define NOTE_MAGIC "lockstep resume 1"
#define RIGHT_SIZE (4 + 4 + 8 + MERKLE_LEAF_SIZE)
#define NOTE_SIZE                                                                                  \
    (sizeof(NOTE_MAGIC) + DIGEST_SIZE + 3 * 4 + GAME_LEAVES * RIGHT_SIZE + DIGEST_SIZE)
#define WRITE_SHARE 20 /* writing takes no more than one part in so many of the time */

/* Two files take turns, so that the one that the note names is always whole. */
enum {
    SLOTS = 2,
};

static bool is_wanted(const struct checker *checker)
{
    const struct check_request *request = checker->request;

    return request->resume_ms != 0 && !request->disputed && !request->trial && !request->journal &&
           !request->states && request->proven == 0;
}

/* ---- names ------------------------------------------------------------------ */

/* All that decides what the check computes. */
static struct digest about_of(const struct checker *checker)
{
    const struct check_request *request = checker->request;
    struct sha256 hash;
    struct digest about;
    uint8_t numbers[2 * sizeof(uint32_t)];

    sha256_init(&hash, SHA256_ISA_BEST);
    sha256_add(&hash, request->job_id.bytes, DIGEST_SIZE);
    sha256_add(&hash, request->seed.bytes, HASH32_SIZE);
    endian_store_be32(numbers, request->index);
    endian_store_be32(numbers + sizeof(uint32_t), request->segment_count);
    sha256_add(&hash, numbers, sizeof(numbers));
    for (uint32_t i = 0; i < request->segment_count; i++) {
        sha256_add(&hash, request->segments[i].states,
                   request->segments[i].steps * sizeof(request->segments[i].states[0]));
    }
    sha256_end(&hash, &about);
    return about;
}

#define NAME_MAX_SIZE (HEX_SIZE(DIGEST_SIZE) + 16)

static void name_of(char name[NAME_MAX_SIZE], const struct checker *checker, const char *ending)
{
    const struct digest about = about_of(checker);
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, about.bytes, DIGEST_SIZE);
    (void)snprintf(name, NAME_MAX_SIZE, "%s.resume%s", text, ending);
}

/* slot: SLOTS for the note. */
static bool path_of(char path[FILE_PATH_MAX], const struct checker *checker, uint32_t slot)
{
    static const char *const endings[SLOTS + 1] = {"-0", "-1", ""};
    char name[NAME_MAX_SIZE];

    name_of(name, checker, endings[slot]);
    return snprintf(path, FILE_PATH_MAX, "%s/%s", checker->request->cache, name) < FILE_PATH_MAX;
}

/* What a killed check was writing lies there under another name. kept: note and states stay.
 */
static void remove_files(const struct checker *checker, bool kept)
{
    DIR *folder = opendir(checker->request->cache);
    char name[NAME_MAX_SIZE];
    struct dirent *entry;
    size_t size;

    name_of(name, checker, "");
    size = strlen(name);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        const char *rest = entry->d_name + size;

        if (strncmp(entry->d_name, name, size) == 0 &&
            !(kept && (rest[0] == '\0' || strcmp(rest, "-0") == 0 || strcmp(rest, "-1") == 0))) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/* ---- the note ----------------------------------------------------------------- */

struct note {
    uint32_t place; /* the step whose state was left, */
    uint32_t step;
    uint32_t slot; /* ... and in which file */
};

static enum status write_note(const struct checker *checker, const struct note *note,
                              struct error *error)
{
    const struct check_result *result = checker->result;
    const struct digest about = about_of(checker);
    struct buffer bytes;
    struct digest hash;
    char path[FILE_PATH_MAX];
    enum status status;

    buffer_init(&bytes, NOTE_SIZE);
    buffer_add(&bytes, NOTE_MAGIC, sizeof(NOTE_MAGIC));
    buffer_add(&bytes, about.bytes, DIGEST_SIZE);
    buffer_add_u32(&bytes, note->place);
    buffer_add_u32(&bytes, note->step);
    buffer_add_u32(&bytes, note->slot);
    for (uint32_t i = 0; i < GAME_LEAVES; i++) {
        buffer_add_u32(&bytes, result->rights[i].step);
        buffer_add_u32(&bytes, result->rights[i].tensor);
        buffer_add_u64(&bytes, result->rights[i].leaf);
        buffer_add(&bytes, result->leaves[i], MERKLE_LEAF_SIZE);
    }
    TRY_OUT(buffer_check(&bytes, error, "what a check hands on"));
    sha256(&hash, bytes.data, bytes.size);
    buffer_add(&bytes, hash.bytes, DIGEST_SIZE);
    TRY_OUT(buffer_check(&bytes, error, "what a check hands on"));
    TRY_OUT(path_of(path, checker, SLOTS) ? STATUS_OK
                                          : error_set(error, STATUS_USAGE, "too long a path"));
    TRY_OUT(file_write(path, error, bytes.data, bytes.size, 0600));
out:
    buffer_release(&bytes);
    return status;
}

/* A place and a step of this check, before its last. */
static bool work_fits(const struct checker *checker, const struct note *note)
{
    const struct check_request *request = checker->request;

    return note->slot < SLOTS && note->place >= checker->start &&
           note->place < request->segment_count &&
           note->step < request->segments[note->place].steps &&
           (note->place + 1 < request->segment_count ||
            note->step + 1 < request->segments[note->place].steps);
}

/* The leaves go into the result: those of steps that are replayed again are written over. */
static bool take_note(struct checker *checker, struct note *note, const struct file_bytes *file)
{
    struct check_result *result = checker->result;
    const struct digest about = about_of(checker);
    char magic[sizeof(NOTE_MAGIC)];
    struct digest digest;
    struct reader reader;

    if (file->size != NOTE_SIZE) {
        return false;
    }
    sha256(&digest, file->data, NOTE_SIZE - DIGEST_SIZE);
    if (memcmp(digest.bytes, file->data + NOTE_SIZE - DIGEST_SIZE, DIGEST_SIZE) != 0) {
        return false;
    }
    reader_init(&reader, file->data, NOTE_SIZE - DIGEST_SIZE);
    reader_copy(&reader, magic, sizeof(magic));
    reader_copy(&reader, digest.bytes, DIGEST_SIZE);
    note->place = reader_u32(&reader);
    note->step = reader_u32(&reader);
    note->slot = reader_u32(&reader);
    if (memcmp(magic, NOTE_MAGIC, sizeof(magic)) != 0 || !digest_equal(&digest, &about) ||
        !work_fits(checker, note)) {
        return false;
    }
    for (uint32_t i = 0; i < GAME_LEAVES; i++) {
        result->rights[i].step = reader_u32(&reader);
        result->rights[i].tensor = reader_u32(&reader);
        result->rights[i].leaf = reader_u64(&reader);
        reader_copy(&reader, result->leaves[i], MERKLE_LEAF_SIZE);
    }
    return true;
}

static bool read_note(struct checker *checker, struct note *note)
{
    char path[FILE_PATH_MAX];
    struct file_bytes file;
    struct error none;
    bool taken;

    error_init(&none);
    if (!path_of(path, checker, SLOTS) || file_read(&file, &none, path, NOTE_SIZE) != STATUS_OK) {
        return false;
    }
    taken = take_note(checker, note, &file);
    file_bytes_release(&file);
    return taken;
}

/* ---- the check ------------------------------------------------------------------ */

static void wait_for(struct check_resume *resume, uint64_t write_ns, uint64_t least_ms)
{
    const uint64_t least_ns = least_ms * 1000000;
    const uint64_t share_ns = write_ns * WRITE_SHARE;

    resume->due_ns = steady_ns() + (share_ns > least_ns ? share_ns : least_ns);
}

enum status check_resume_begin(struct checker *checker, struct error *error)
{
    const struct check_request *request = checker->request;
    struct check_resume *resume = &checker->resume;
    struct note note = {0};
    char path[FILE_PATH_MAX];
    struct error none;

    *resume = (struct check_resume){.place = checker->start};
    if (!is_wanted(checker)) {
        return STATUS_OK;
    }
    wait_for(resume, 0, request->resume_ms);
    remove_files(checker, true);
    if (!read_note(checker, &note) || !path_of(path, checker, note.slot)) {
        return STATUS_OK;
    }
    error_init(&none);
    if (check_load_state(checker->run.machine, path,
                         &request->segments[note.place].states[note.step], &none) != STATUS_OK) {
        check_resume_end(checker);
        return check_begin_at(checker, checker->run.machine, checker->start, error);
    }
    resume->slot = 1 - note.slot;
    resume->step = note.step + 1;
    resume->place = note.place;
    if (resume->step == request->segments[note.place].steps) {
        resume->place++;
        resume->step = 0;
    }
    return STATUS_OK;
}

void check_resume_note(struct checker *checker, uint32_t place, uint32_t step)
{
    const struct check_request *request = checker->request;
    struct check_resume *resume = &checker->resume;
    const struct note note = {.place = place, .step = step, .slot = resume->slot};
    const uint64_t begun = steady_ns();
    const struct checkpoint_write what = {.job = checker->job,
                                          .step = check_first_step_at(checker, place) + step + 1,
                                          .root = &request->segments[place].states[step],
                                          .machine = checker->run.machine};
    char path[FILE_PATH_MAX];
    struct error none;

    if (!is_wanted(checker) || begun < resume->due_ns || !work_fits(checker, &note)) {
        return;
    }
    error_init(&none);
    if (path_of(path, checker, resume->slot) &&
        check_keep_room(checker, UINT64_MAX, &none) == STATUS_OK &&
        checkpoint_write(&what, path, &none) == STATUS_OK &&
        write_note(checker, &note, &none) == STATUS_OK) {
        resume->slot = 1 - resume->slot;
    }
    wait_for(resume, steady_ns() - begun, request->resume_ms);
}

void check_resume_end(struct checker *checker)
{
    if (is_wanted(checker)) {
        remove_files(checker, false);
    }
}
