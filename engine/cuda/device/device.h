/*
 * device.h - what the CUDA plugin gives to the program: a table of calls on one device.
 *
 * The plugin (lockstep_cuda.so) is the only code that knows CUDA's runtime. It holds the kernels
 * and these calls and decides nothing: what is launched, with which grid and where memory lies is
 * decided in C, here in the engine. So tests put a table of their own in its place, one that runs
 * the kernels' own source on the processor and fails the call that the test names.
 *
 * Both sides are built from one tree: a plugin whose numbers differ is refused, never adapted to.
 */
#ifndef ENGINE_CUDA_DEVICE_DEVICE_H
#define ENGINE_CUDA_DEVICE_DEVICE_H

#include <stdint.h>

/* Changes with the calls, and by itself with their number. */
#define DEVICE_ABI       (UINT32_C(4) << 16 | (uint32_t)sizeof(struct device_calls))
#define DEVICE_NAME_MAX  256
#define DEVICE_MARKS_MAX 16
#define DEVICE_LANES     2
#define DEVICE_SIGNALS   4
/* The one symbol that the plugin exports: a function of type device_plugin. */
#define DEVICE_SYMBOL    "lockstep_cuda_device"

enum device_result {
    DEVICE_OK = 0,
    DEVICE_NO_DRIVER,
    DEVICE_OLD_DRIVER,
    DEVICE_NONE,      /* a driver, but no device (or not that many) */
    DEVICE_NO_CODE,   /* the device is older than any that the plugin was built for */
    DEVICE_NO_MEMORY, /* of the device */
    DEVICE_FAILED,    /* anything else: trouble() has the runtime's words */
};

/* Leaves the function with the result of a call that failed. */
#define DEVICE_TRY(call)                                                                           \
    do {                                                                                           \
        enum device_result tried_ = (call);                                                        \
        if (tried_ != DEVICE_OK) {                                                                 \
            return tried_;                                                                         \
        }                                                                                          \
    } while (0)

struct device_facts {
    char name[DEVICE_NAME_MAX];
    int32_t capability; /* 90 for 9.0 */
    int32_t multiprocessors;
    uint32_t shared_max; /* bytes of shared memory that a block may have */
    int32_t driver;      /* as CUDA numbers it: 12040 for 12.4 */
    int32_t runtime;     /* likewise: what the plugin was built with */
    uint64_t memory;     /* bytes */
    uint64_t memory_free;
};

/* A grid of blocks over one kernel; arguments are copied before the call returns. */
struct device_launch {
    uint32_t kernel; /* enum cuda_kernel */
    uint32_t grid[3];
    uint32_t block;       /* threads */
    uint32_t shared_size; /* bytes of dynamic shared memory */
    uint32_t arguments_size;
    const void *arguments;
};

struct device;
struct device_graph;

/* What a process wants to remember of a device; first zeros. */
struct device_note {
    uint32_t words[16];
};

/*
 * Work is queued on the lane that was chosen last, at first 0, and runs in order there; lanes know
 * nothing of each other but signals. Only upload(), download() and seconds() wait, for
 * their lane, and wait(), for all. An error of queued work may come out of any later call.
 * upload() has read its source on return.
 * copy() may be from another device's memory, when nothing there is queued that writes it.
 */
struct device_calls {
    uint32_t abi;
    uint32_t rules_version;
    uint32_t kernel_count;
    uint32_t arguments_check; /* sizes of all argument structs, folded: args.h */
    uint32_t can_trap; /* not 0: a kernel's fault may take its process with it, or never end */

    enum device_result (*open)(struct device **device, struct device_facts *facts, int ordinal);
    void (*close)(struct device *device);
    enum device_result (*allocate)(struct device *device, void **memory, uint64_t size);
    void (*release)(struct device *device, void *memory);
    enum device_result (*upload)(struct device *device, void *to, const void *from, uint64_t size);
    enum device_result (*download)(struct device *device, void *to, const void *from,
                                   uint64_t size);
    enum device_result (*copy)(struct device *device, void *to, const void *from, uint64_t size);
    enum device_result (*fill)(struct device *device, void *to, int byte, uint64_t size);
    enum device_result (*launch)(struct device *device, const struct device_launch *launch);
    enum device_result (*wait)(struct device *device);

    /* Which lane is meant from now on. */
    void (*lane)(struct device *device, uint32_t lane);

    /* A point in the lane; what is queued behind await() runs after what was before the point. */
    enum device_result (*signal)(struct device *device, uint32_t signal);
    enum device_result (*await)(struct device *device, uint32_t signal);

    /* What is queued between the two, on lane 0, is not run but kept, to be replayed as one. */
    enum device_result (*record)(struct device *device);
    enum device_result (*recorded)(struct device *device, struct device_graph **graph);
    enum device_result (*replay)(struct device *device, struct device_graph *graph);
    void (*forget)(struct device *device, struct device_graph *graph);

    /* A point in the stream, and the device's time between two of them. */
    enum device_result (*mark)(struct device *device, uint32_t mark);
    enum device_result (*seconds)(struct device *device, double *seconds, uint32_t from,
                                  uint32_t to);

    /* The stream, as the runtime has it: for libraries that gpu-check measures against. */
    void *(*stream)(struct device *device);

    /* A note for each device that lives as long as the process; NULL for too many. */
    struct device_note *(*note)(int ordinal);

    /* The runtime's words for the last failure on this thread. */
    const char *(*trouble)(void);
};

typedef const struct device_calls *device_plugin(void);

#endif /* ENGINE_CUDA_DEVICE_DEVICE_H */
