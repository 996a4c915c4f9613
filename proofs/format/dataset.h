/*
 * dataset.h - training data on disk: mapped into memory, and checked before use.
 *
 * Three shapes of file. Tokens: a flat array of little-endian u8, u16 or u32, or a .npy of one
 * dimension (the name's end says which). Samples: a .npy of u8 or f32 whose first dimension counts
 * samples. Labels: a .npy of u8, u16 or u32 of one dimension. What a job calls by name and shape
 * may also lie in a .safetensors, or as its elements alone.
 *
 * Refused, with the place: empty files, lengths that are no whole number of elements, tokens and
 * labels out of range, numbers that are not finite, more than TENSOR_COUNT_MAX elements. The owner
 * of the data opens it: a change of the file while it is open changes the data, and a cut ends the
 * reader by a bus error.
 */
#ifndef PROOFS_FORMAT_DATASET_H
#define PROOFS_FORMAT_DATASET_H

#include "base/error.h"
#include "engine/ops/tensor.h"
#include "proofs/commit/element.h"

struct dataset {
    enum dtype dtype;
    uint64_t rows;  /* tokens, samples or labels */
    uint64_t width; /* elements of a sample; 1 for tokens and labels */
    uint32_t rank;  /* of a sample, as the file says: (rows, 8, 8, 4) has 3; else 0 */
    uint64_t dims[ELEMENT_DIMS_MAX]; /* of a sample */
    uint64_t count;                  /* rows * width */
    uint64_t offset;                 /* of the elements in a file that names them */
    const void *data;                /* count elements */
    void *mapping;                   /* NULL: data is borrowed */
    size_t mapping_size;
    bool copied; /* the mapping is memory of its own and not the file's */
};

/*
 * A dataset owns its mapping until dataset_close(). On failure there is nothing to close. Tokens
 * must be below vocabulary. dtype is the type of a flat file; a .npy names its own.
 */
MUST_CHECK enum status dataset_open_tokens(struct dataset *dataset, struct error *error,
                                           const char *path, enum dtype dtype, uint64_t vocabulary);

MUST_CHECK enum status dataset_open_samples(struct dataset *dataset, struct error *error,
                                            const char *path);

/* There must be one label for each of `samples`, and each must be below classes. */
MUST_CHECK enum status dataset_open_labels(struct dataset *dataset, struct error *error,
                                           const char *path, uint64_t samples, uint64_t classes);

/* A .npy of u8, u16, u32 or finite f32, of any shape whose first dimension counts the rows. */
MUST_CHECK enum status dataset_open_rows(struct dataset *dataset, struct error *error,
                                         const char *path);

/*
 * The elements of a job's data tensor: those of a .safetensors under its name (only its part of the
 * file is mapped, or copied where it begins off its alignment, as older programs wrote), a .npy, or
 * a file of nothing else, of which rank is 0. The root binds them, so only their number, type and
 * shape are checked; samples in a .npy must be finite.
 */
MUST_CHECK enum status dataset_open_tensor(struct dataset *dataset, struct error *error,
                                           const char *path, const struct tensor *tensor);

/* Does the file give tensors by their names? Its own name says so; a folder does. */
bool dataset_is_named(const char *path);

/* Are all numbers finite? Integers are. */
MUST_CHECK enum status dataset_check_finite(const struct dataset *dataset, struct error *error);

/*
 * For a file of elements alone of which not all is there yet. A hidden byte cannot be read: the
 * process would end. first is a multiple of the system's page, size too but at the end.
 */
MUST_CHECK enum status dataset_hide(struct dataset *dataset, uint64_t first, uint64_t size,
                                    struct error *error);
MUST_CHECK enum status dataset_show(struct dataset *dataset, uint64_t first, uint64_t size,
                                    struct error *error);

/* Gives the memory of the file's pages back; who reads on reads them from the file again. */
void dataset_drop(const struct dataset *dataset);

/* Does nothing to a dataset that borrows, or is zeroed. */
void dataset_close(struct dataset *dataset);

/* The same checks on bytes in memory, aligned to 64. Borrows bytes for as long as it is used. */
MUST_CHECK enum status dataset_read_tokens(struct dataset *dataset, struct error *error,
                                           const void *bytes, size_t bytes_size, enum dtype dtype,
                                           uint64_t vocabulary);
MUST_CHECK enum status dataset_read_npy_tokens(struct dataset *dataset, struct error *error,
                                               const void *bytes, size_t bytes_size,
                                               uint64_t vocabulary);
MUST_CHECK enum status dataset_read_samples(struct dataset *dataset, struct error *error,
                                            const void *bytes, size_t bytes_size);
MUST_CHECK enum status dataset_read_labels(struct dataset *dataset, struct error *error,
                                           const void *bytes, size_t bytes_size, uint64_t samples,
                                           uint64_t classes);

#endif /* PROOFS_FORMAT_DATASET_H */
