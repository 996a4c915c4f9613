/*
 * device.cu - the plugin's table: CUDA's runtime behind the calls of device.h. Nothing is decided
 * here, and nothing ends the process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

#include "engine/cuda/kernels/args.h"
#include "engine/cuda/device/device.h"

extern "C" const void *const cuda_kernel_table[KERNEL_COUNT];

struct device {
    int ordinal;
    cudaStream_t stream; /* the lane that is meant: one of lanes */
    cudaStream_t lanes[DEVICE_LANES];
    cudaEvent_t marks[DEVICE_MARKS_MAX];
    cudaEvent_t signals[DEVICE_SIGNALS];
};

struct device_graph {
    cudaGraphExec_t exec;
};

/* The runtime keeps its last error by thread; a copy of its words outlives later calls. */
static thread_local char words[256];

static enum device_result result_of(cudaError_t error)
{
    if (error == cudaSuccess) {
        return DEVICE_OK;
    }
    (void)snprintf(words, sizeof(words), "%s (%s)", cudaGetErrorString(error),
                   cudaGetErrorName(error));
    (void)cudaGetLastError();
    switch (error) {
    case cudaErrorMemoryAllocation:
        return DEVICE_NO_MEMORY;
    case cudaErrorInsufficientDriver:
        return DEVICE_OLD_DRIVER;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
        return DEVICE_NONE;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
        return DEVICE_NO_CODE;
    default:
        return DEVICE_FAILED;
    }
}

static enum device_result use_device(const struct device *device)
{
    return result_of(cudaSetDevice(device->ordinal));
}

#define TRY_CUDA(call) DEVICE_TRY(result_of(call))

static void device_close(struct device *device)
{
    if (device == NULL) {
        return;
    }
    (void)cudaSetDevice(device->ordinal);
    for (int i = 0; i < DEVICE_LANES; i++) {
        if (device->lanes[i] != NULL) {
            (void)cudaStreamSynchronize(device->lanes[i]);
        }
    }
    for (int i = 0; i < DEVICE_SIGNALS; i++) {
        if (device->signals[i] != NULL) {
            (void)cudaEventDestroy(device->signals[i]);
        }
    }
    for (int i = 0; i < DEVICE_MARKS_MAX; i++) {
        if (device->marks[i] != NULL) {
            (void)cudaEventDestroy(device->marks[i]);
        }
    }
    for (int i = 0; i < DEVICE_LANES; i++) {
        if (device->lanes[i] != NULL) {
            (void)cudaStreamDestroy(device->lanes[i]);
        }
    }
    (void)cudaGetLastError();
    free(device);
}

static enum device_result look_at_facts(struct device_facts *facts, int ordinal)
{
    cudaDeviceProp properties;
    size_t free_memory = 0;
    size_t memory = 0;

    TRY_CUDA(cudaGetDeviceProperties(&properties, ordinal));
    TRY_CUDA(cudaMemGetInfo(&free_memory, &memory));
    (void)snprintf(facts->name, sizeof(facts->name), "%s", properties.name);
    facts->capability = properties.major * 10 + properties.minor;
    facts->multiprocessors = properties.multiProcessorCount;
    facts->memory = memory;
    facts->memory_free = free_memory;
    facts->shared_max = (uint32_t)properties.sharedMemPerBlockOptin;
    return DEVICE_OK;
}

static enum device_result start_device(struct device *device, struct device_facts *facts)
{
    DEVICE_TRY(use_device(device));
    DEVICE_TRY(look_at_facts(facts, device->ordinal));
    for (int i = 0; i < DEVICE_LANES; i++) {
        TRY_CUDA(cudaStreamCreateWithFlags(&device->lanes[i], cudaStreamNonBlocking));
    }
    device->stream = device->lanes[0];
    for (int i = 0; i < DEVICE_SIGNALS; i++) {
        TRY_CUDA(cudaEventCreateWithFlags(&device->signals[i], cudaEventDisableTiming));
    }
    for (int i = 0; i < DEVICE_MARKS_MAX; i++) {
        TRY_CUDA(cudaEventCreate(&device->marks[i]));
    }
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        const uint32_t most = kernel_shared_most(kernel, facts->shared_max, facts->capability);

        if (most > SHARED_USUAL) {
            TRY_CUDA(cudaFuncSetAttribute(cuda_kernel_table[kernel],
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most));
        }
    }
    return DEVICE_OK;
}

static enum device_result device_open(struct device **device, struct device_facts *facts,
                                      int ordinal)
{
    int count = 0;

    memset(facts, 0, sizeof(*facts));
    (void)cudaDriverGetVersion(&facts->driver);
    (void)cudaRuntimeGetVersion(&facts->runtime);
    if (facts->driver == 0) {
        (void)cudaGetLastError();
        return DEVICE_NO_DRIVER;
    }
    TRY_CUDA(cudaGetDeviceCount(&count));
    if (ordinal < 0 || ordinal >= count) {
        return DEVICE_NONE;
    }

    struct device *made = (struct device *)calloc(1, sizeof(*made));

    if (made == NULL) {
        return DEVICE_FAILED;
    }
    made->ordinal = ordinal;
    const enum device_result result = start_device(made, facts);

    if (result != DEVICE_OK) {
        device_close(made);
        return result;
    }
    *device = made;
    return DEVICE_OK;
}

static enum device_result device_allocate(struct device *device, void **memory, uint64_t size)
{
    DEVICE_TRY(use_device(device));
    return result_of(cudaMalloc(memory, size));
}

static void device_release(struct device *device, void *memory)
{
    if (memory != NULL && use_device(device) == DEVICE_OK) {
        (void)cudaFree(memory);
        (void)cudaGetLastError();
    }
}

static enum device_result wait_lane(struct device *device)
{
    return result_of(cudaStreamSynchronize(device->stream));
}

static enum device_result device_wait(struct device *device)
{
    DEVICE_TRY(use_device(device));
    for (int i = 0; i < DEVICE_LANES; i++) {
        TRY_CUDA(cudaStreamSynchronize(device->lanes[i]));
    }
    return DEVICE_OK;
}

static void device_lane(struct device *device, uint32_t lane)
{
    device->stream = device->lanes[lane % DEVICE_LANES];
}

static enum device_result device_signal(struct device *device, uint32_t signal)
{
    DEVICE_TRY(use_device(device));
    return result_of(cudaEventRecord(device->signals[signal % DEVICE_SIGNALS], device->stream));
}

static enum device_result device_await(struct device *device, uint32_t signal)
{
    DEVICE_TRY(use_device(device));
    return result_of(
        cudaStreamWaitEvent(device->stream, device->signals[signal % DEVICE_SIGNALS], 0));
}

static enum device_result device_upload(struct device *device, void *to, const void *from,
                                        uint64_t size)
{
    DEVICE_TRY(use_device(device));
    TRY_CUDA(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, device->stream));
    return wait_lane(device);
}

static enum device_result device_download(struct device *device, void *to, const void *from,
                                          uint64_t size)
{
    DEVICE_TRY(use_device(device));
    TRY_CUDA(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, device->stream));
    return wait_lane(device);
}

static enum device_result device_copy(struct device *device, void *to, const void *from,
                                      uint64_t size)
{
    DEVICE_TRY(use_device(device));
    /* Either may be another device's memory: the runtime knows by the address. */
    return result_of(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, device->stream));
}

static enum device_result device_fill(struct device *device, void *to, int byte, uint64_t size)
{
    DEVICE_TRY(use_device(device));
    return result_of(cudaMemsetAsync(to, byte, size, device->stream));
}

static enum device_result device_launch(struct device *device, const struct device_launch *launch)
{
    const dim3 grid(launch->grid[0], launch->grid[1], launch->grid[2]);
    void *arguments[1] = {const_cast<void *>(launch->arguments)};

    DEVICE_TRY(use_device(device));
    TRY_CUDA(cudaLaunchKernel(cuda_kernel_table[launch->kernel], grid, dim3(launch->block),
                              arguments, launch->shared_size, device->stream));
    return result_of(cudaGetLastError());
}

static enum device_result device_record(struct device *device)
{
    DEVICE_TRY(use_device(device));
    return result_of(cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal));
}

static enum device_result device_recorded(struct device *device, struct device_graph **graph)
{
    cudaGraph_t captured = NULL;
    cudaGraphExec_t exec = NULL;

    *graph = NULL;
    DEVICE_TRY(use_device(device));
    TRY_CUDA(cudaStreamEndCapture(device->stream, &captured));
    const enum device_result result = result_of(cudaGraphInstantiate(&exec, captured, 0));

    (void)cudaGraphDestroy(captured);
    if (result != DEVICE_OK) {
        return result;
    }
    *graph = (struct device_graph *)calloc(1, sizeof(**graph));
    if (*graph == NULL) {
        (void)cudaGraphExecDestroy(exec);
        return DEVICE_FAILED;
    }
    (*graph)->exec = exec;
    return DEVICE_OK;
}

static enum device_result device_replay(struct device *device, struct device_graph *graph)
{
    DEVICE_TRY(use_device(device));
    return result_of(cudaGraphLaunch(graph->exec, device->stream));
}

static void device_forget(struct device *device, struct device_graph *graph)
{
    if (graph != NULL) {
        (void)cudaSetDevice(device->ordinal);
        (void)cudaGraphExecDestroy(graph->exec);
        (void)cudaGetLastError();
        free(graph);
    }
}

static enum device_result device_mark(struct device *device, uint32_t mark)
{
    DEVICE_TRY(use_device(device));
    return result_of(cudaEventRecord(device->marks[mark % DEVICE_MARKS_MAX], device->stream));
}

static enum device_result device_seconds(struct device *device, double *seconds, uint32_t from,
                                         uint32_t to)
{
    float milliseconds = 0.0f;

    DEVICE_TRY(use_device(device));
    TRY_CUDA(cudaEventSynchronize(device->marks[to % DEVICE_MARKS_MAX]));
    TRY_CUDA(cudaEventElapsedTime(&milliseconds, device->marks[from % DEVICE_MARKS_MAX],
                                  device->marks[to % DEVICE_MARKS_MAX]));
    *seconds = 1e-3 * milliseconds;
    return DEVICE_OK;
}

static void *device_stream(struct device *device)
{
    return device->stream;
}

static struct device_note *device_note(int ordinal)
{
    static struct device_note notes[64];

    return ordinal >= 0 && ordinal < 64 ? &notes[ordinal] : NULL;
}

static const char *device_trouble(void)
{
    return words;
}

static const struct device_calls calls = {
    DEVICE_ABI,      RULES_VERSION,   KERNEL_COUNT,   KERNEL_ARGUMENTS_CHECK, 1,
    device_open,     device_close,    device_allocate, device_release,
    device_upload,   device_download, device_copy,    device_fill,
    device_launch,   device_wait,     device_lane,    device_signal,
    device_await,    device_record,   device_recorded, device_replay,
    device_forget,   device_mark,     device_seconds,
    device_stream,   device_note,     device_trouble,
};

extern "C" __attribute__((visibility("default"))) const struct device_calls *
lockstep_cuda_device(void)
{
    return &calls;
}
