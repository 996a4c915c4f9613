/*
 * backend.h - a machine that runs a tape, whatever it is made of.
 *
 * A backend is a small table of functions. The CPU's is always there (cpu/machine.c); the CUDA one
 * is a shared object found at run time. All give the same bits: a machine differs from another only
 * in speed and in where its memory is. A backend never ends the process: no memory, no device and a
 * wrong driver are errors with advice.
 */
#ifndef ENGINE_PLAN_BACKEND_H
#define ENGINE_PLAN_BACKEND_H

#include "base/digest.h"
#include "engine/cpu/cpu.h"
#include "engine/tape/tape.h"

/* Threads of one machine, at most. */
#define MACHINE_THREADS_MAX 1024
/* Devices that a step is split over, at most. */
#define MACHINE_DEVICES_MAX 8

struct backend;

struct machine_options {
    const struct backend *backend; /* NULL: the CPU's */
    uint32_t device;               /* CUDA: which one, from 0 */
    uint32_t device_count;         /* more than 1: the step is split over devices[] (split.h) */
    uint32_t devices[MACHINE_DEVICES_MAX];
    enum isa isa;        /* CPU only: one that isa_available() */
    int thread_count;    /* 0: as many as the system offers */
    bool trace;          /* make every output of every operation, and show it to the observer */
    bool in_legs;        /* between calls of run(), inputs are written and outputs are read */
    uint64_t memory_max; /* bytes; 0: no limit of ours */
    /*
     * CPU only. What a machine makes in a step is not needed between steps: one that traces may
     * compute in the memory of a lender, which must rest until it is closed. Where that is too
     * little it has its own; one that is opened with room to trace has enough. Memory that a
     * process never touched before can cost as much as computing.
     */
    bool room_to_trace;
    struct machine *lender;
    /*
     * Bytes of the device; what needs more runs by ranges and slices (sliced.h). 0: all there is.
     */
    uint64_t device_memory;
    /* Told after each operation how long it took; NULL: nothing is timed. */
    void (*timed)(void *context, uint32_t op, double seconds);
    void *timed_context;
};

/*
 * Shown each output as it is made, in tape order; only in trace mode. bytes are the canonical
 * little-endian elements, borrowed for the call. Anything but STATUS_OK stops the step.
 */
struct observer {
    enum status (*made)(void *context, uint32_t op, uint32_t output, const void *bytes,
                        uint64_t size, struct error *error);
    void *context;
};

struct machine {
    const struct backend *backend;
    const struct tape *tape; /* borrowed: must outlive the machine */
    int thread_count;        /* as in the options: for work of the host's on what it holds */
};

struct backend {
    const char *name;

    /* Refuses before allocating when the tape needs more than memory_max, and says how much. */
    enum status (*open)(struct machine **machine, const struct tape *tape,
                        const struct machine_options *options, struct error *error);
    void (*close)(struct machine *machine);

    /* Bytes that open() would allocate, where the tensors live. Needs no device. */
    enum status (*size)(uint64_t *size, const struct tape *tape,
                        const struct machine_options *options, struct error *error);

    /* Whole tensors: states, constants and inputs may be written; these, outputs and loss read. */
    enum status (*write)(struct machine *machine, uint32_t tensor, const void *bytes,
                         struct error *error);
    enum status (*read)(struct machine *machine, uint32_t tensor, void *bytes, struct error *error);

    /* The training data: read-only memory of the caller's that must outlive the machine. */
    enum status (*bind)(struct machine *machine, uint32_t tensor, const void *bytes,
                        struct error *error);

    /* One step: states take their next values. After a failure the states are undefined. */
    enum status (*step)(struct machine *machine, const struct observer *observer,
                        struct error *error);

    /*
     * The operations first .. last-1 of a step. Whoever runs all of a step in parts, in order, has
     * stepped: the last part gives the states their next values. NULL: only whole steps.
     */
    enum status (*run)(struct machine *machine, uint32_t first, uint32_t last,
                       const struct observer *observer, struct error *error);

    /* Writes a tensor of another machine of this backend, which can be read there; done on return.
     * NULL: by way of the host. */
    enum status (*take)(struct machine *machine, uint32_t tensor, struct machine *from,
                        uint32_t from_tensor, struct error *error);

    /* Host memory of a tensor that can be read; NULL where it is not on the host. */
    const void *(*peek)(struct machine *machine, uint32_t tensor);

    /* Does a binary32 state hold a NaN or an infinity? Then the job has diverged. A machine that
     * cannot tell says so: neither answer may come of a failure. */
    enum status (*diverged)(struct machine *machine, bool *diverged, struct error *error);

    /*
     * Where the machine can hash what it holds: roots[i] is the Merkle root over the leaves of
     * tensor tensors[i], which can be read (proofs/hash/merkle.h says what that is; a caller makes
     * commitments of it). NULL: it cannot, and the caller reads and hashes.
     */
    enum status (*leaves_roots)(struct machine *machine, struct digest *roots,
                                const uint32_t *tensors, uint32_t count, struct error *error);

    /*
     * The same in two halves, with steps between them: the tensors are hashed as they were at
     * hash_begin(), and *diverged tells of the states then. One at a time, and nothing else hashes
     * meanwhile; after a failure of either half none is under way. NULL: it cannot.
     */
    enum status (*hash_begin)(struct machine *machine, const uint32_t *tensors, uint32_t count,
                              struct error *error);
    enum status (*hash_end)(struct machine *machine, struct digest *roots, bool *diverged,
                            struct error *error);
};

extern const struct backend backend_cpu;
/* On an NVIDIA GPU, through the plugin that cuda/loader.h finds. */
extern const struct backend backend_cuda;

/*
 * Opens a machine of the backend that the options name. A GPU that has too little memory, or may
 * take too little of it, is given the step by ranges and slices: always where device_memory asks
 * for it, and else in trace mode, where bits matter more than time.
 */
MUST_CHECK enum status machine_open(struct machine **machine, const struct tape *tape,
                                    const struct machine_options *options, struct error *error);

/* Best instruction set (or LOCKSTEP_ISA, which must name an available one), all threads, fast. */
MUST_CHECK enum status machine_options_default(struct machine_options *options,
                                               struct error *error);

/*
 * Chooses the device by name: "cpu", "cuda", "cuda:N", several as "cuda:0,cuda:1", over which a
 * step is split, or "auto", which is the first GPU where one starts and otherwise the CPU. A GPU
 * may be named twice; its memory is then shared by two machines. A GPU that was asked for and does
 * not start is refused here, with what its driver says.
 */
MUST_CHECK enum status machine_options_device(struct machine_options *options, const char *name,
                                              struct error *error);

/* Makes the options of a second opinion: another backend, or another instruction set. */
void machine_options_other(struct machine_options *options);

#endif /* ENGINE_PLAN_BACKEND_H */
