/*
 * backend.h - a machine that runs a tape.
 *
 * A backend is a small table of functions. The CPU's is always there (machine/machine_cpu.c); the
 * CUDA one is a shared object found at run time. All backends give the same bits; they differ in
 * speed and in where their memory is. A backend never ends the process: missing memory, a missing
 * device and a wrong driver are errors with advice.
 */
#ifndef ENGINE_PLAN_BACKEND_H
#define ENGINE_PLAN_BACKEND_H

#include "base/digest.h"
#include "engine/cpu/cpu.h"
#include "engine/plan/chain.h"
#include "engine/tape/tape.h"

#define MACHINE_THREADS_MAX 1024 /* of one machine */
#define MACHINE_DEVICES_MAX 12   /* that a step is split over */

struct backend;

struct machine_options {
    const struct backend *backend; /* NULL: the CPU's */
    const void *backend_plan;      /* what its open() takes beside these; most take nothing */
    uint32_t device;               /* CUDA: which one, from 0 */
    uint32_t device_count;         /* more than 1: split the step over devices[] */
    uint32_t devices[MACHINE_DEVICES_MAX];
    enum isa isa;        /* CPU only: one that isa_available() */
    int thread_count;    /* 0: as many as the system offers */
    bool trace;          /* make every output of every operation, and show it to the observer */
    bool recompute;      /* forget activations and make them again, where that takes less memory */
    bool hoist;          /* make what is the same once: in a step, and on the CPU in all steps */
    bool in_legs;        /* the caller writes inputs and reads outputs between calls of run() */
    uint64_t memory_max; /* bytes; 0: no limit */
    /* Bytes of the device to use; 0: all. A step that needs more runs in machine_sliced.h. */
    uint64_t device_memory;
    /* Called with data that was read for what is kept from step to step: its memory may be given
     * back where a later read finds it again. NULL: nobody asks. */
    void (*spare)(void *context, const void *bytes);
    void *spare_context;
    /* Called after each operation with the time it took; NULL: no timing. */
    void (*timed)(void *context, uint32_t op, double seconds);
    void *timed_context;
};

/*
 * In trace mode, made() is called for each output that is wanted, in the order in which they are
 * made. bytes are the canonical little-endian elements, borrowed for the call. Any status but
 * STATUS_OK stops the step.
 */
struct observer {
    enum status (*made)(void *context, struct op_turn maker, uint32_t output, const void *bytes,
                        uint64_t size, struct error *error);
    void *context;
    /* Is the output wanted? What nobody wants or reads need not be made. NULL: all are. */
    bool (*wants)(const void *context, struct op_turn maker, uint32_t output);
};

static inline bool observer_wants(const struct observer *observer, struct op_turn maker,
                                  uint32_t output)
{
    return observer->wants == NULL || observer->wants(observer->context, maker, output);
}

/* The root of a state that no step changes, which proofs/commit/state_root.c notes of the CPU's. */
struct machine_note {
    bool known;
    struct digest root;
};

/* Who must know before a step of the CPU's machine, or a write to it, changes what state_root.h
 * reads meanwhile. */
struct machine_guard {
    void (*before_write)(void *context); /* before the first such write; NULL: nobody asks */
    void *context;
};

struct machine {
    const struct backend *backend;
    const struct tape *tape;    /* borrowed, and must outlive the machine; or the rewrite below */
    struct tape *rewrite;       /* recompute.h, hoist.h; freed by close(). NULL: none */
    int thread_count;           /* as in the options, for the caller's work on the tensors */
    struct machine_note *notes; /* per state; write() forgets them, close() frees. NULL: none */
    struct machine_guard guard;
};

/* A file that is there, as long as it will be, and where tensors go in it. */
struct machine_save {
    const char *path;
    uint64_t size;
    const uint32_t *tensors;
    const uint64_t *places; /* the first byte of each */
    uint32_t count;
};

struct backend {
    const char *name;

    /* The attention that it wants in slices, and losses, where memory counts more than time. Rows
     * that it keeps on chip want none, unless memory does (machine_rewrite.h). */
    struct chain_limits slices;

    /* Refuses before allocating when the tape needs more than memory_max, and says how much. */
    enum status (*open)(struct machine **machine, const struct tape *tape,
                        const struct machine_options *options, struct error *error);
    void (*close)(struct machine *machine);

    /* Bytes that open() would allocate in the memory of the tensors. Needs no device. */
    enum status (*size)(uint64_t *size, const struct tape *tape,
                        const struct machine_options *options, struct error *error);

    /* Whole tensors. A caller may write states, constants and inputs, and read those, the outputs
     * and the loss. */
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
     * Runs the operations first .. last-1. Running all of a step in parts, in order, is a step: the
     * last part gives the states their next values. A loop runs as a whole. NULL: whole steps only.
     */
    enum status (*run)(struct machine *machine, uint32_t first, uint32_t last,
                       const struct observer *observer, struct error *error);

    /* Copies a readable tensor of another machine of this backend, before it returns. NULL: the
     * caller copies through the host. */
    enum status (*take)(struct machine *machine, uint32_t tensor, struct machine *from,
                        uint32_t from_tensor, struct error *error);

    /* The memory of a readable tensor; NULL where it is not on the host. */
    const void *(*peek)(struct machine *machine, uint32_t tensor);

    /* Puts tensors, of which several processes hold parts, at their places in a file. NULL: the
     * caller reads and writes. */
    enum status (*save)(struct machine *machine, const struct machine_save *save,
                        struct error *error);

    /* Does a binary32 state hold a NaN or an infinity? Then the job has diverged. A failure is a
     * status and never one of the two answers. */
    enum status (*diverged)(struct machine *machine, bool *diverged, struct error *error);

    /*
     * Hashes readable tensors where they are: roots[i] is the Merkle root over the leaves of
     * tensors[i], as proofs/hash/merkle.h defines it. NULL: the caller reads and hashes.
     */
    enum status (*leaves_roots)(struct machine *machine, struct digest *roots,
                                const uint32_t *tensors, uint32_t count, struct error *error);

    /*
     * The same in two halves, with steps between them. The roots and *diverged describe the tensors
     * at hash_begin(). One hash runs at a time, and leaves_roots() must not be called meanwhile. A
     * failure of either half ends the hash. NULL: not supported.
     */
    enum status (*hash_begin)(struct machine *machine, const uint32_t *tensors, uint32_t count,
                              struct error *error);
    enum status (*hash_end)(struct machine *machine, struct digest *roots, bool *diverged,
                            struct error *error);
};

extern const struct backend backend_cpu;
/* On an NVIDIA GPU, through the plugin that the CUDA loader finds. */
extern const struct backend backend_cuda;

/*
 * Opens a machine of the backend that the options name. A GPU with too little memory runs the step
 * by ranges and slices (machine_sliced.h): where device_memory is set, and in trace mode.
 */
MUST_CHECK enum status machine_open(struct machine **machine, const struct tape *tape,
                                    const struct machine_options *options, struct error *error);

/* Bytes that machine_open() would allocate for tensors on one device. Needs no device. */
MUST_CHECK enum status machine_size(uint64_t *size, const struct tape *tape,
                                    const struct machine_options *options, struct error *error);

/* The best instruction set (or LOCKSTEP_ISA, which must name an available one), all threads, no
 * trace. */
MUST_CHECK enum status machine_options_default(struct machine_options *options,
                                               struct error *error);

/* The instruction set of that name, which must be available. */
MUST_CHECK enum status machine_options_isa(struct machine_options *options, const char *name,
                                           struct error *error);

/*
 * Chooses the device by name: "cpu"; "cuda" or "cuda:N"; several as "cuda:0,cuda:1", which split a
 * step; or "auto", the first GPU if it passes its self-test, else the CPU: a line of the log (which
 * may be NULL) says which, and why it is the CPU. A GPU that is named twice has two machines, and a
 * step is split over them. A named GPU that does not start is refused, with its driver's reason.
 */
struct log;
MUST_CHECK enum status machine_options_device(struct machine_options *options, const char *name,
                                              const struct log *log, struct error *error);

/* Changes the options for a second replay: another backend, or another instruction set. */
void machine_options_other(struct machine_options *options);

#endif /* ENGINE_PLAN_BACKEND_H */
