/* hostile_mirror.c - see hostile_mirror.h. */
#include "tests/support/proofs/hostile_mirror.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hex.h"
#include "proofs/bundle/bundle.h"
#include "proofs/bundle/checkpoint_file.h"
#include "proofs/commit/piece.h"
#include "tests/support/test.h"

static void insist(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

void hostile_mirror_start(struct hostile_mirror *mirror, const char *folder)
{
    int input[2];
    int output[2];
    char text[16] = "";
    ssize_t size;

    assert_int_equal(pipe(input), 0);
    assert_int_equal(pipe(output), 0);
    mirror->pid = fork();
    assert_true(mirror->pid >= 0);
    if (mirror->pid == 0) {
        (void)dup2(input[0], STDIN_FILENO);
        (void)dup2(output[1], STDOUT_FILENO);
        (void)close(input[1]);
        (void)execlp("python3", "python3", "tests/verifier/check/hostile_mirror.py", folder,
                     (char *)NULL);
        _exit(127);
    }
    (void)close(input[0]);
    (void)close(output[1]);
    mirror->input = input[1];
    size = read(output[0], text, sizeof(text) - 1);
    (void)close(output[0]);
    if (size <= 0) {
        fail_msg("the mirror did not start: is python3 there?");
    }
    (void)snprintf(mirror->url, sizeof(mirror->url), "http://127.0.0.1:%d", atoi(text));
}

void hostile_mirror_stop(struct hostile_mirror *mirror)
{
    (void)close(mirror->input);
    (void)waitpid(mirror->pid, NULL, 0);
}

void hostile_mirror_copy(const char *to, const char *from)
{
    struct file_bytes bytes;
    struct error error;

    error_init(&error);
    insist(file_read(&bytes, &error, from, (uint64_t)1 << 26), &error);
    insist(file_write(to, &error, bytes.data, bytes.size, 0600), &error);
    file_bytes_release(&bytes);
}

/* The list of the hashes of a checkpoint's pieces. */
static void publish_pieces(const char *to, const char *checkpoint, const struct job *job)
{
    const uint64_t count = piece_count_of_state(job->tape);
    struct digest *hashes = calloc(count, sizeof(*hashes));
    struct safetensors file;
    struct error error;

    error_init(&error);
    insist(safetensors_open(&file, &error, checkpoint), &error);
    insist(checkpoint_file_pieces(hashes, &file, job->tape, &error), &error);
    safetensors_close(&file);
    insist(file_write(to, &error, hashes, count * sizeof(*hashes), 0600), &error);
    free(hashes);
}

static void publish_segment(struct check_segment *segment, const char *folder, const char *path,
                            struct bundle *bundle, uint32_t index)
{
    const uint32_t length = (uint32_t)bundle_job(bundle)->segment_length;
    char from[1400];
    char to[1400];
    struct error error;

    error_init(&error);
    segment->steps = length;
    for (uint32_t k = 0; k < length; k++) {
        insist(bundle_state_root(&segment->states[k], bundle, index * length + k + 1, &error),
               &error);
    }
    insist(bundle_segment_root(&segment->root, bundle, index, &error), &error);
    (void)snprintf(from, sizeof(from), "%s/checkpoints/%012u.safetensors", path,
                   (index + 1) * length);
    (void)snprintf(to, sizeof(to), "%s/checkpoints/%012u.safetensors", folder,
                   (index + 1) * length);
    hostile_mirror_copy(to, from);
    (void)snprintf(to, sizeof(to), "%s/checkpoints/%012u.pieces", folder, (index + 1) * length);
    publish_pieces(to, from, bundle_job(bundle));
}

struct digest hostile_mirror_publish(struct check_segment *segments, const char *folder,
                                     const char *bundle)
{
    struct bundle *opened = NULL;
    struct digest job_id;
    char id[HEX_SIZE(DIGEST_SIZE)];
    char below[1200];
    char from[1400];
    char to[1400];
    struct error error;

    error_init(&error);
    insist(bundle_open(&opened, bundle, BUNDLE_READ, &error), &error);
    job_id = bundle_job(opened)->id;
    hex_encode(id, job_id.bytes, DIGEST_SIZE);
    (void)snprintf(below, sizeof(below), "%s/v1/jobs/%s", folder, id);
    (void)snprintf(to, sizeof(to), "%s/checkpoints", below);
    insist(file_make_folder(to, &error, 0700), &error);
    (void)snprintf(from, sizeof(from), "%s/job", bundle);
    (void)snprintf(to, sizeof(to), "%s/job", below);
    hostile_mirror_copy(to, from);
    for (uint32_t i = 0; i * bundle_job(opened)->segment_length < bundle_job(opened)->steps; i++) {
        publish_segment(&segments[i], below, bundle, opened, i);
    }
    bundle_close(opened);
    return job_id;
}
