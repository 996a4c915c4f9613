/*
 * emulator.h - the execution model of the CUDA kernels, on a processor: a block's threads as
 * fibers, and warps, barriers, asynchronous copies and tensor cores as the PTX ISA documents them.
 *
 * The kernels of engine/cuda/NAME_body.h are included behind this file by fake_device.c. It is
 * stricter than a device: threads that wait for each other for ever, a warp that is not whole at a
 * shuffle, a 32-bit sum that overflows and shared memory that is read before it was written (it
 * holds 0xa5) all fail. Copies to shared memory happen at the wait that finishes them, no sooner.
 */
#ifndef TESTS_SUPPORT_DEVICE_EMULATOR_H
#define TESTS_SUPPORT_DEVICE_EMULATOR_H

#include <assert.h>
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
#define KERNEL_ALONE(name, type, threads)   KERNEL(name, type)
#define SHARED(type, name, count)           type *name = emulated_shared(sizeof(type) * (count))
#define CONSTANT                            const
#define UNROLL
#define ROLLED
#define INLINED inline

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
uint32_t atomic_add(uint32_t *at, uint32_t value);
void atomic_add_wide(uint64_t *at, uint64_t value);
void atomic_max(uint32_t *at, uint32_t value);
uint64_t load_fresh(const uint64_t *at);
void device_fence(void);
void load_quad(float *to, const float *from);
void store_quad(uint32_t *to, const uint32_t *from);
void load_pair(uint32_t *to, const void *from);
void load_four(uint32_t to[4], const void *from);
uint32_t load_padded(const uint8_t *at); /* which nobody needs to have written */
void prefetch_line(const void *at);
int32_t round_to_int(float x);

void copy_async(void *to, const void *from, bool there);
void copy_commit(void);
void copy_wait(uint32_t left);

void load_matrices(uint32_t words[4], const void *row);
void multiply_ss(int32_t *sums, const uint32_t *a, const uint32_t *b);
void multiply_su(int32_t *sums, const uint32_t *a, const uint32_t *b);
void multiply_us(int32_t *sums, const uint32_t *a, const uint32_t *b);
void multiply_uu(int32_t *sums, const uint32_t *a, const uint32_t *b);

/* Halves, two in a word; their products have sums in binary32, of which these are the bits. */
uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t selector);
uint32_t halves_add(uint32_t a, uint32_t b);
uint32_t halves_subtract(uint32_t a, uint32_t b);
void multiply_halves(int32_t *sums, const uint32_t *a, const uint32_t *b);

/*
 * How the unit that multiplies halves adds: of numbers that are aligned to the largest it keeps so
 * many bits behind that one's first. What is behind them it cuts off, rounds down, or keeps as an
 * odd last bit. All at once, or in pairs. The usual one keeps what the poorest unit that is sound
 * keeps, and cuts.
 */
#define UNIT_BITS_LEAST 23

enum unit_cut { UNIT_CUTS, UNIT_DOWN, UNIT_ODD };

struct emulated_unit {
    int bits;
    enum unit_cut cut;
    bool pairs;
};

void emulator_unit(const struct emulated_unit *wanted); /* NULL: the usual one */
uint64_t emulator_unit_lost(void); /* how often it dropped a bit that was not 0 */

/*
 * What sm_90a adds: hopper.cuh. Dynamic shared memory begins at an address that is no multiple of
 * more than 16; bulk copies arrive when every thread had its turn; a group's sums hold nonsense
 * until group_end(), and only then is shared memory read, through the bits of the descriptors. The
 * warps of a group must bring the same descriptors.
 */
uint32_t shared_address(const void *at);
void store_pair(uint32_t *at, uint32_t first, uint32_t second);
uint32_t opaque(uint32_t value);

void bring_init(uint64_t *barrier, uint32_t arrivals);
void bring_init_fence(void);
void bring_arrive(uint64_t *barrier);
void bring_expect(uint64_t *barrier, uint32_t size);
void bring_bulk(void *to, const void *from, uint32_t size, uint64_t *barrier);
void bring_wait(uint64_t *barrier, uint32_t parity, uint32_t gives_up);

void group_barrier(uint32_t group);
void registers_lower(void);
void registers_raise(void);
void group_begin(int32_t *sums, uint32_t columns);
void group_multiply(int32_t *sums, uint64_t a, uint64_t b, bool more, uint32_t columns);
void group_end(int32_t *sums, uint32_t columns);

#endif /* TESTS_SUPPORT_DEVICE_EMULATOR_H */
