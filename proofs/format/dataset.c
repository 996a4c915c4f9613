/* dataset.c - see dataset.h. */
#include "proofs/format/dataset.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/whole_file.h"
#include "proofs/format/npy.h"
#include "proofs/format/weights.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are used as they lie on disk");

#define FLOAT_EXPONENT_MASK UINT32_C(0x7f800000)
#define F16_EXPONENT_MASK   0x7c00
#define BF16_EXPONENT_MASK  0x7f80
/* The root of the data binds the tokens, so any value of the type may stand here. */
#define ANY_TOKEN           (UINT64_C(1) << 32)

/* ---- the checks of elements: the place of the first that is wrong, or count ---- */

static uint64_t first_u8_from(const uint8_t *data, uint64_t count, uint64_t limit)
{
    uint64_t i = 0;

    while (i < count && data[i] < limit) {
        i++;
    }
    return i;
}

static uint64_t first_u16_from(const uint16_t *data, uint64_t count, uint64_t limit)
{
    uint64_t i = 0;

    while (i < count && data[i] < limit) {
        i++;
    }
    return i;
}

static uint64_t first_u32_from(const uint32_t *data, uint64_t count, uint64_t limit)
{
    uint64_t i = 0;

    while (i < count && data[i] < limit) {
        i++;
    }
    return i;
}

static uint64_t first_not_finite(const uint32_t *data, uint64_t count)
{
    uint64_t i = 0;

    while (i < count && (data[i] & FLOAT_EXPONENT_MASK) != FLOAT_EXPONENT_MASK) {
        i++;
    }
    return i;
}

/* All bits of the mask are set in a number that is not finite. */
static uint64_t first_half_not_finite(const uint16_t *data, uint64_t count, uint16_t mask)
{
    uint64_t i = 0;

    while (i < count && (data[i] & mask) != mask) {
        i++;
    }
    return i;
}

static bool is_unsigned(enum dtype dtype)
{
    return dtype == DTYPE_U8 || dtype == DTYPE_U16 || dtype == DTYPE_U32;
}

/* what and limit_name are for the message: "token", "vocabulary". */
static enum status check_below(const struct dataset *dataset, struct error *error, uint64_t limit,
                               const char *what, const char *limit_name)
{
    uint64_t at;
    uint64_t value = 0;

    assert(dataset->data != NULL);
    if (limit >> (8 * dtype_size(dataset->dtype)) != 0) {
        return STATUS_OK; /* no element can reach the limit: do not read them all */
    }
    if (dataset->dtype == DTYPE_U8) {
        at = first_u8_from(dataset->data, dataset->count, limit);
    } else if (dataset->dtype == DTYPE_U16) {
        at = first_u16_from(dataset->data, dataset->count, limit);
    } else {
        at = first_u32_from(dataset->data, dataset->count, limit);
    }
    if (at == dataset->count) {
        return STATUS_OK;
    }
    memcpy(&value, (const uint8_t *)dataset->data + at * dtype_size(dataset->dtype),
           dtype_size(dataset->dtype));
    return error_set(error, STATUS_BAD_FORMAT, "%s %llu at offset %llu is not below the %s of %llu",
                     what, (unsigned long long)value, (unsigned long long)at, limit_name,
                     (unsigned long long)limit);
}

enum status dataset_check_finite(const struct dataset *dataset, struct error *error)
{
    uint64_t at = dataset->count;

    assert(dataset->width > 0);
    if (dataset->dtype == DTYPE_F32) {
        at = first_not_finite(dataset->data, dataset->count);
    } else if (dataset->dtype == DTYPE_F16) {
        at = first_half_not_finite(dataset->data, dataset->count, F16_EXPONENT_MASK);
    } else if (dataset->dtype == DTYPE_BF16) {
        at = first_half_not_finite(dataset->data, dataset->count, BF16_EXPONENT_MASK);
    }
    if (at == dataset->count) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_FORMAT,
                     "the number at offset %llu (sample %llu) is not finite",
                     (unsigned long long)at, (unsigned long long)(at / dataset->width));
}

/* ---- bytes in memory ---- */

static enum status check_count(const struct dataset *dataset, struct error *error)
{
    if (dataset->count == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "there is no data");
    }
    if (dataset->count > TENSOR_COUNT_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "%llu elements are over the limit of %llu",
                         (unsigned long long)dataset->count, (unsigned long long)TENSOR_COUNT_MAX);
    }
    return STATUS_OK;
}

enum status dataset_read_tokens(struct dataset *dataset, struct error *error, const void *bytes,
                                size_t bytes_size, enum dtype dtype, uint64_t vocabulary)
{
    struct dataset read = {.dtype = dtype, .width = 1, .data = bytes};

    if (!is_unsigned(dtype)) {
        return error_set(error, STATUS_USAGE, "tokens are u8, u16 or u32, not %s",
                         dtype_name(dtype));
    }
    if (bytes_size % dtype_size(dtype) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%zu bytes are no whole number of %s tokens: cut short, or another type",
                         bytes_size, dtype_name(dtype));
    }
    read.count = bytes_size / dtype_size(dtype);
    read.rows = read.count;
    TRY(check_count(&read, error));
    TRY(check_below(&read, error, vocabulary, "token", "vocabulary"));
    *dataset = read;
    return STATUS_OK;
}

/* width is the product of all dims but the first; npy_header_read() checked that it fits. */
static void take_shape(struct dataset *dataset, const struct npy *npy)
{
    dataset->rows = npy->dims[0];
    dataset->width = 1;
    dataset->rank = npy->rank - 1;
    memcpy(dataset->dims, npy->dims + 1, dataset->rank * sizeof(dataset->dims[0]));
    for (uint32_t i = 1; i < npy->rank; i++) {
        dataset->width *= npy->dims[i];
    }
    dataset->count = dataset->rows * dataset->width;
}

/* NumPy's own defaults are int64 and float64. We do not round: the line that converts does, and who
 * types it sees that it does. */
static enum status refuse_element(enum element element, const char *wanted, struct error *error)
{
    (void)error_set(error, STATUS_BAD_FORMAT, "elements of type %s are not trained on",
                    element_npy_name(element));
    error_advise(error,
                 "python3 -c 'import numpy as n; a = n.load(\"FILE.npy\"); b = a.astype(\"%s\"); "
                 "assert (a == b).all(); n.save(\"FILE.npy\", b)'",
                 wanted);
    return STATUS_BAD_FORMAT;
}

/* All checks of a .npy but the range of its elements. It must have rank_min to rank_max dims. */
static enum status read_npy(struct dataset *dataset, struct error *error, const uint8_t *bytes,
                            size_t bytes_size, uint32_t rank_min, uint32_t rank_max)
{
    struct npy npy;

    TRY(npy_header_read(&npy, error, bytes, bytes_size));
    if (npy.rank < rank_min || npy.rank > rank_max) {
        return error_set(error, STATUS_BAD_FORMAT, "the array has %u dimensions, must have %s%u",
                         npy.rank, rank_min == rank_max ? "" : "at least ", rank_min);
    }
    if (!element_dtype(&dataset->dtype, npy.element)) {
        return refuse_element(npy.element, rank_max == 1 ? "uint32" : "float32", error);
    }
    if (npy.data_offset % dtype_size(dataset->dtype) != 0) {
        error_set(error, STATUS_BAD_FORMAT, "the data begins at byte %llu, off its alignment",
                  (unsigned long long)npy.data_offset);
        error_advise(error, "save it again with numpy.save");
        return STATUS_BAD_FORMAT;
    }
    take_shape(dataset, &npy);
    dataset->data = bytes + npy.data_offset;
    return check_count(dataset, error);
}

static enum status read_npy_integers(struct dataset *dataset, struct error *error,
                                     const void *bytes, size_t bytes_size)
{
    TRY(read_npy(dataset, error, bytes, bytes_size, 1, 1));
    if (!is_unsigned(dataset->dtype)) {
        return error_set(error, STATUS_BAD_FORMAT, "the elements are %s, must be u8, u16 or u32",
                         dtype_name(dataset->dtype));
    }
    return STATUS_OK;
}

enum status dataset_read_npy_tokens(struct dataset *dataset, struct error *error, const void *bytes,
                                    size_t bytes_size, uint64_t vocabulary)
{
    struct dataset read = {0};

    TRY(read_npy_integers(&read, error, bytes, bytes_size));
    TRY(check_below(&read, error, vocabulary, "token", "vocabulary"));
    *dataset = read;
    return STATUS_OK;
}

enum status dataset_read_samples(struct dataset *dataset, struct error *error, const void *bytes,
                                 size_t bytes_size)
{
    struct dataset read = {0};

    TRY(read_npy(&read, error, bytes, bytes_size, 2, ELEMENT_DIMS_MAX));
    if (read.dtype != DTYPE_U8 && read.dtype != DTYPE_F32) {
        return error_set(error, STATUS_BAD_FORMAT, "samples are %s, must be u8 or f32",
                         dtype_name(read.dtype));
    }
    TRY(dataset_check_finite(&read, error));
    *dataset = read;
    return STATUS_OK;
}

enum status dataset_read_labels(struct dataset *dataset, struct error *error, const void *bytes,
                                size_t bytes_size, uint64_t samples, uint64_t classes)
{
    struct dataset read = {0};

    TRY(read_npy_integers(&read, error, bytes, bytes_size));
    if (read.rows != samples) {
        return error_set(error, STATUS_BAD_FORMAT, "%llu labels for %llu samples",
                         (unsigned long long)read.rows, (unsigned long long)samples);
    }
    TRY(check_below(&read, error, classes, "label", "number of classes"));
    *dataset = read;
    return STATUS_OK;
}

/* ---- files ---- */

struct mapping {
    void *bytes;
    size_t size;
};

static bool has_suffix(const char *path, const char *suffix)
{
    size_t length = strlen(path);
    size_t suffix_length = strlen(suffix);

    return length >= suffix_length && strcmp(path + length - suffix_length, suffix) == 0;
}

static enum status map_file(struct mapping *mapping, struct error *error, const char *path)
{
    int descriptor;
    uint64_t size;
    enum status status = STATUS_OK;

    TRY(whole_file_read_open(&descriptor, &size, error, path));
    if (size == 0) {
        status = error_set(error, STATUS_BAD_FORMAT, "'%s': the file is empty", path);
    } else if (size > SIZE_MAX / 2) {
        status = error_set(error, STATUS_OVER_LIMIT, "'%s': %llu bytes cannot be mapped", path,
                           (unsigned long long)size);
    } else {
        mapping->size = (size_t)size;
        mapping->bytes = mmap(NULL, mapping->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (mapping->bytes == MAP_FAILED) {
            status = error_set_errno(error, "cannot map '%s'", path);
        }
    }
    (void)close(descriptor);
    return status;
}

/* Gives the mapping to the dataset. On failure unmaps it and puts the path before the error. */
static enum status settle_mapping(struct dataset *dataset, struct error *error, const char *path,
                                  const struct mapping *mapping, enum status status)
{
    if (status != STATUS_OK) {
        (void)munmap(mapping->bytes, mapping->size);
        (void)error_wrap(error, "'%s'", path);
        return status;
    }
    dataset->mapping = mapping->bytes;
    dataset->mapping_size = mapping->size;
    return STATUS_OK;
}

enum status dataset_open_tokens(struct dataset *dataset, struct error *error, const char *path,
                                enum dtype dtype, uint64_t vocabulary)
{
    struct mapping mapping = {0};
    enum status status;

    TRY(map_file(&mapping, error, path));
    if (has_suffix(path, ".npy")) {
        status = dataset_read_npy_tokens(dataset, error, mapping.bytes, mapping.size, vocabulary);
    } else {
        status =
            dataset_read_tokens(dataset, error, mapping.bytes, mapping.size, dtype, vocabulary);
    }
    return settle_mapping(dataset, error, path, &mapping, status);
}

enum status dataset_open_samples(struct dataset *dataset, struct error *error, const char *path)
{
    struct mapping mapping = {0};
    enum status status;

    TRY(map_file(&mapping, error, path));
    status = dataset_read_samples(dataset, error, mapping.bytes, mapping.size);
    return settle_mapping(dataset, error, path, &mapping, status);
}

enum status dataset_open_labels(struct dataset *dataset, struct error *error, const char *path,
                                uint64_t samples, uint64_t classes)
{
    struct mapping mapping = {0};
    enum status status;

    TRY(map_file(&mapping, error, path));
    status = dataset_read_labels(dataset, error, mapping.bytes, mapping.size, samples, classes);
    return settle_mapping(dataset, error, path, &mapping, status);
}

/* ---- what a job names --------------------------------------------------- */

bool dataset_is_named(const char *path)
{
    struct stat info;

    return has_suffix(path, ".safetensors") || (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

static void take_elements(struct dataset *dataset, const struct tensor *tensor)
{
    *dataset = (struct dataset){
        .dtype = tensor->dtype, .rows = tensor->count, .width = 1, .count = tensor->count};
    if (tensor->rank >= 2) {
        dataset->rows = tensor->dims[0];
        dataset->width = tensor->count / tensor->dims[0];
    }
}

/* A tensor that does not begin where its elements may. */
static enum status copy_part(struct dataset *dataset, struct error *error,
                             const struct safetensors *file, const struct safetensors_entry *entry)
{
    enum status status;

    dataset->copied = true;
    dataset->mapping_size = (size_t)entry->size;
    dataset->mapping = mmap(NULL, dataset->mapping_size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (dataset->mapping == MAP_FAILED) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s' of '%s'", entry->name,
                         file->path);
    }
    dataset->data = dataset->mapping;
    status = safetensors_read(file, error, dataset->mapping, entry, dataset->mapping_size, 0);
    if (status != STATUS_OK) {
        (void)munmap(dataset->mapping, dataset->mapping_size);
    }
    return status;
}

/* Maps the pages of the tensor's part of the file. */
static enum status map_part(struct dataset *dataset, struct error *error,
                            const struct safetensors *file, const struct safetensors_entry *entry)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t from = file->data_offset + entry->offset;
    const uint64_t first = from - from % page;
    const uint64_t size = from + entry->size - first;

    dataset->offset = from;
    if (from % dtype_size(dataset->dtype) != 0) {
        return copy_part(dataset, error, file, entry);
    }
    dataset->mapping_size = (size_t)size;
    dataset->mapping =
        mmap(NULL, dataset->mapping_size, PROT_READ, MAP_PRIVATE, file->descriptor, (off_t)first);
    if (dataset->mapping == MAP_FAILED) {
        return error_set_errno(error, "cannot map '%s'", file->path);
    }
    dataset->data = (const uint8_t *)dataset->mapping + (from - first);
    return STATUS_OK;
}

static enum status open_named(struct dataset *dataset, struct error *error, const char *path,
                              const struct tensor *tensor)
{
    const struct safetensors_entry *entry;
    struct dataset read;
    struct safetensors file;
    enum status status;

    take_elements(&read, tensor);
    TRY(safetensors_open(&file, error, path));
    entry = weights_find_in(&file, tensor->name);
    status = entry != NULL && safetensors_entry_fits(entry, tensor)
                 ? STATUS_OK
                 : safetensors_find_tensor(&entry, &file, tensor, error); /* names what is wrong */
    if (status == STATUS_OK) {
        status = map_part(&read, error, &file, entry);
    }
    safetensors_close(&file);
    if (status == STATUS_OK) {
        *dataset = read;
    }
    return status;
}

/* Any .npy that is mapped: the caller compares type, number and shape. */
static enum status read_array(struct dataset *dataset, struct error *error,
                              const struct mapping *mapping)
{
    struct dataset read = {0};

    TRY(read_npy(&read, error, mapping->bytes, mapping->size, 1, ELEMENT_DIMS_MAX));
    *dataset = read;
    return STATUS_OK;
}

/* A file of another size is a .npy, or of tokens by their number. */
static enum status read_tensor(struct dataset *dataset, struct error *error, const char *path,
                               const struct mapping *mapping, const struct tensor *tensor)
{
    if (!has_suffix(path, ".npy") && mapping->size == tensor_size(tensor)) {
        take_elements(dataset, tensor);
        dataset->data = mapping->bytes;
        return STATUS_OK;
    }
    if (tensor->rank < 2 && is_unsigned(tensor->dtype)) {
        return has_suffix(path, ".npy")
                   ? dataset_read_npy_tokens(dataset, error, mapping->bytes, mapping->size,
                                             ANY_TOKEN)
                   : dataset_read_tokens(dataset, error, mapping->bytes, mapping->size,
                                         tensor->dtype, ANY_TOKEN);
    }
    return (tensor->dtype == DTYPE_F32 || tensor->dtype == DTYPE_U8) && tensor->rank >= 2
               ? dataset_read_samples(dataset, error, mapping->bytes, mapping->size)
               : read_array(dataset, error, mapping);
}

/* Rows that a batch can be drawn of. */
static enum status read_rows(struct dataset *dataset, struct error *error,
                             const struct mapping *mapping)
{
    struct dataset read = {0};

    TRY(read_array(&read, error, mapping));
    if (read.dtype != DTYPE_F32 && !is_unsigned(read.dtype)) {
        return error_set(error, STATUS_BAD_FORMAT, "rows are %s, must be u8, u16, u32 or f32",
                         dtype_name(read.dtype));
    }
    TRY(dataset_check_finite(&read, error));
    *dataset = read;
    return STATUS_OK;
}

enum status dataset_open_rows(struct dataset *dataset, struct error *error, const char *path)
{
    struct mapping mapping = {0};

    if (!has_suffix(path, ".npy")) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: rows of any shape are a .npy", path);
    }
    TRY(map_file(&mapping, error, path));
    return settle_mapping(dataset, error, path, &mapping, read_rows(dataset, error, &mapping));
}

enum status dataset_open_tensor(struct dataset *dataset, struct error *error, const char *path,
                                const struct tensor *tensor)
{
    struct mapping mapping = {0};

    if (dataset_is_named(path)) {
        return open_named(dataset, error, path, tensor);
    }
    TRY(map_file(&mapping, error, path));
    return settle_mapping(dataset, error, path, &mapping,
                          read_tensor(dataset, error, path, &mapping, tensor));
}

/* Pages at the wrong place are refused by the system. */
static enum status protect_pages(struct dataset *dataset, uint64_t first, uint64_t size, int how,
                                 struct error *error)
{
    assert(dataset->data == dataset->mapping && first + size <= dataset->mapping_size);
    return mprotect((uint8_t *)dataset->mapping + first, (size_t)size, how) == 0
               ? STATUS_OK
               : error_set_errno(error, "cannot protect bytes %llu to %llu of the data",
                                 (unsigned long long)first, (unsigned long long)(first + size));
}

enum status dataset_hide(struct dataset *dataset, uint64_t first, uint64_t size,
                         struct error *error)
{
    return protect_pages(dataset, first, size, PROT_NONE, error);
}

enum status dataset_show(struct dataset *dataset, uint64_t first, uint64_t size,
                         struct error *error)
{
    return protect_pages(dataset, first, size, PROT_READ, error);
}

void dataset_drop(const struct dataset *dataset)
{
    if (dataset->mapping != NULL && !dataset->copied) {
        (void)madvise(dataset->mapping, dataset->mapping_size, MADV_DONTNEED);
    }
}

void dataset_close(struct dataset *dataset)
{
    if (dataset->mapping != NULL) {
        (void)munmap(dataset->mapping, dataset->mapping_size);
    }
    memset(dataset, 0, sizeof(*dataset));
}
