/*
 * safetensors.h - named tensors in one file: our checkpoints, and those of other programs.
 *
 * A file is a length, a JSON header and the tensors' bytes. The header is hostile: the reader
 * checks types, shapes, and that the tensors cover the data without hole or overlap, as the format
 * demands. It also refuses headers above SAFETENSORS_HEADER_MAX (JSON takes up to forty times its
 * size in memory), duplicate or unknown keys, and names that no terminal should print.
 */
#ifndef PROOFS_FORMAT_SAFETENSORS_H
#define PROOFS_FORMAT_SAFETENSORS_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/io/whole_file.h"
#include "proofs/commit/element.h"
#include "proofs/format/encryption.h"

#define SAFETENSORS_HEADER_MAX  (2u << 20)
#define SAFETENSORS_ENTRIES_MAX 16384
#define SAFETENSORS_NAME_MAX    255

struct json_t; /* of jansson */

struct safetensors_entry {
    char name[SAFETENSORS_NAME_MAX + 1];
    enum element element;
    uint32_t rank;
    uint64_t dims[ELEMENT_DIMS_MAX];
    uint64_t offset; /* of its first byte in the data, which begins at data_offset of the file */
    uint64_t size;
};

struct safetensors {
    struct safetensors_entry *entries; /* in the order of their bytes */
    uint32_t entry_count;
    struct json_t *metadata; /* NULL where there is none */
    uint64_t data_offset;
    uint64_t data_size;
    int descriptor;                       /* -1: encrypted, or only the header was read */
    struct encryption_reader *encryption; /* NULL: the file is not encrypted */
    char path[256];                       /* for errors; a longer one is cut */
};

/* Reads a header (without the eight bytes of its length) for data_size bytes of data. Close with
 * safetensors_close(), except after a failure. */
MUST_CHECK enum status safetensors_header_read(struct safetensors *file, struct error *error,
                                               const char *header, size_t header_size,
                                               uint64_t data_size);

MUST_CHECK enum status safetensors_open(struct safetensors *file, struct error *error,
                                        const char *path);

/* The same for an encrypted file (encryption.h) of this context. */
MUST_CHECK enum status safetensors_open_encrypted(struct safetensors *file, struct error *error,
                                                  const char *path,
                                                  const struct encryption_key *key,
                                                  const char *context);
void safetensors_close(struct safetensors *file);

/* NULL: there is no tensor of that name. */
const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name);

/* Has the entry the tensor's type and shape? */
bool safetensors_entry_fits(const struct safetensors_entry *entry, const struct tensor *tensor);

/* The entry of the tensor's name, type and shape. */
MUST_CHECK enum status safetensors_find_tensor(const struct safetensors_entry **entry,
                                               const struct safetensors *file,
                                               const struct tensor *tensor, struct error *error);

/* The text under key in the metadata, or NULL; lives as long as file. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);

/* How many texts the metadata holds. */
size_t safetensors_metadata_count(const struct safetensors *file);

/* Reads size bytes of a tensor from its byte `from` on; they must lie inside. One thread at a time
 * when the file is encrypted. */
MUST_CHECK enum status safetensors_read(const struct safetensors *file, struct error *error,
                                        void *data, const struct safetensors_entry *entry,
                                        size_t size, uint64_t from);

/* ---- writing ---- */

struct safetensors_text {
    const char *key;
    const char *value;
};

struct safetensors_writer {
    struct whole_file file;
    struct encryption_writer *encryption; /* NULL: the file is not encrypted */
    uint64_t left;                        /* bytes of tensors that have not come yet */
};

/* The content of the header. Borrowed; sets offset and size of the entries. */
struct safetensors_plan {
    struct safetensors_entry *entries;
    uint32_t entry_count;
    const struct safetensors_text *texts;
    uint32_t text_count;
    const struct encryption_key *key; /* NULL: the file is not encrypted */
    const char *context;              /* what the encrypted file is, for encryption.h */
};

/* Appends what stands before the data: the length of the header and the header. Sets offset and
 * size of the entries. bytes takes up to SAFETENSORS_HEADER_MAX + 8. */
MUST_CHECK enum status safetensors_plan_header(struct buffer *bytes,
                                               const struct safetensors_plan *plan,
                                               struct error *error);

/* The entry of a tensor: its name, type and shape. */
void safetensors_describe(struct safetensors_entry *entry, const struct tensor *tensor);

/*
 * Begins a file at path; the bytes of the entries then follow in their order. Wider element types
 * come first, so that every tensor is aligned. STATUS_BAD_FORMAT: one would not be aligned, or a
 * name is not plain or is there twice.
 */
MUST_CHECK enum status safetensors_writer_open_plan(struct safetensors_writer *writer,
                                                    struct error *error, const char *path,
                                                    const struct safetensors_plan *plan);

/* The same for a file that is not encrypted. */
MUST_CHECK enum status
safetensors_writer_open(struct safetensors_writer *writer, struct error *error, const char *path,
                        struct safetensors_entry *entries, uint32_t entry_count,
                        const struct safetensors_text *texts, uint32_t text_count);

/* More bytes than the entries announce is the caller's bug. */
MUST_CHECK enum status safetensors_writer_add(struct safetensors_writer *writer,
                                              struct error *error, const void *data, size_t size);

/* Makes room for all bytes that have not come, which others then write: *first is the first of
 * them, and writer->file.part_path the file. It is not encrypted. */
MUST_CHECK enum status safetensors_writer_room(uint64_t *first, struct safetensors_writer *writer,
                                               struct error *error);

/* Makes the file appear. All bytes must have been added. */
MUST_CHECK enum status safetensors_writer_keep(struct safetensors_writer *writer,
                                               struct error *error);
/* Keeps it, or after a failure drops it; returns that failure. */
MUST_CHECK enum status safetensors_writer_end(struct safetensors_writer *writer, enum status status,
                                              struct error *error);

/* Forgets the file. Does nothing after keep or a failed open. */
void safetensors_writer_drop(struct safetensors_writer *writer);

#endif /* PROOFS_FORMAT_SAFETENSORS_H */
