/*
 * emulator.h - the execution model of the CUDA kernels, on a processor: a block's threads as
 * fibers, and warps, barriers, asynchronous copies and tensor cores as the PTX ISA documents them.
 *
 * The kernels of engine/cuda/NAME_body.h are included behind this file by fake_device.c. It is
 * stricter than a device: threads that wait for each other for ever, a warp that is not whole at a
 * shuffle, a 32-bit sum that overflows and shared memory that is read before it was written (it
 * holds 0xa5) all fail. Copies to shared memory happen at the wait that finishes them, no sooner.
 */
#ifndef TESTS_SUPPORT_EMULATOR_H
#define TESTS_SUPPORT_EMULATOR_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef void emulated_kernel(const void *arguments);

/* Runs a grid, block after block. Not from two threads at once. */
void emulator_run(emulated_kernel *kernel, const void *arguments, const uint32_t grid[3],
                  uint32_t block, uint32_t shared_size);

#define KERNEL(name, type)                                                                         \
    static void name##_of(const type args);                                                        \
    static void name(const void *arguments)                                                        \
    {                                                                                              \
        name##_of(*(const type *)arguments);                                                       \
    }                                                                                              \
    static void name##_of(const type args)
#define KERNEL_LIMITED(name, type, threads) KERNEL(name, type)
#define SHARED(type, name, count)           type *name = emulated_shared(sizeof(type) * (count))
#define CONSTANT                            const
#define UNROLL

void *emulated_shared(size_t size);
uint8_t *dynamic_shared(void);

uint32_t thread_index(void);
uint32_t block_index(void);
uint32_t block_index_y(void);
uint32_t block_size(void);
uint32_t grid_size(void);

void barrier(void);
void warp_barrier(void);
uint32_t shuffle_xor(uint32_t value, uint32_t distance);
float shuffle_xor_real(float value, uint32_t distance);
float shuffle_down_real(float value, uint32_t distance);
float shuffle_real(float value, uint32_t lane);
uint32_t atomic_swap(uint32_t *at, uint32_t value);
int32_t round_to_int(float x);

void copy_async(void *to, const void *from, bool there);
void copy_commit(void);
void copy_wait_all_but_last(void);

void load_matrices(uint32_t words[4], const void *row);
void multiply_ss(int32_t *sums, const uint32_t *a, const uint32_t *b);
void multiply_su(int32_t *sums, const uint32_t *a, const uint32_t *b);
void multiply_us(int32_t *sums, const uint32_t *a, const uint32_t *b);
void multiply_uu(int32_t *sums, const uint32_t *a, const uint32_t *b);

#endif /* TESTS_SUPPORT_EMULATOR_H */
