/* gpu_meter.c - see gpu_meter.h. */
#include "prover/train/gpu_meter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MIB 1048576.0

const struct energy_gpu *gpu_meter_open(struct gpu_meter *meter,
                                        const struct machine_options *machine,
                                        uint64_t segment_length, struct bundle *bundle,
                                        const struct log *log)
{
    struct error error;

    memset(meter, 0, sizeof(*meter));
    meter->bundle = bundle;
    meter->segment_length = segment_length;
    error_init(&error);
    if (machine->backend != &backend_cuda) {
        return NULL;
    }
    if (nvml_open(&meter->gpu.nvml, &error) != STATUS_OK) {
        log_info(log, "device", "use and energy of the GPU are not known: %s", error.text);
        return NULL;
    }
    if (!nvml_number_of(&meter->gpu.number, meter->gpu.nvml, machine->device)) {
        log_info(log, "device",
                 "use and energy of the GPU are not known: which of NVML's it is "
                 "is sure only with CUDA_DEVICE_ORDER=PCI_BUS_ID");
        gpu_meter_close(meter);
        return NULL;
    }
    return &meter->gpu;
}

static void end_segment(struct gpu_meter *meter, uint64_t segment, const struct log *log)
{
    char text[128];
    char name[32];
    struct error none;

    if (meter->steps > 0) {
        (void)snprintf(text, sizeof(text),
                       "busy %" PRIu64 " %% of the time, with at most %.0f MiB of memory",
                       meter->use / meter->steps, (double)meter->memory_most / MIB);
        log_info(log, "device", "segment %" PRIu64 ": the GPU was %s", segment, text);
        if (meter->bundle != NULL) {
            error_init(&none);
            (void)snprintf(name, sizeof(name), "gpu.%" PRIu64, segment);
            /* The note is not essential: the next step reports a full journal. */
            (void)!bundle_set_note(meter->bundle, name, text, &none);
        }
    }
    meter->steps = 0;
    meter->use = 0;
    meter->memory_most = 0;
}

void gpu_meter_step(struct gpu_meter *meter, const struct bundle_step *step, const struct log *log)
{
    struct nvml_reading reading;

    if (meter->gpu.nvml == NULL) {
        return;
    }
    nvml_read(&reading, meter->gpu.nvml, meter->gpu.number);
    if (reading.has_use) {
        meter->use += reading.use;
        meter->steps++;
    }
    if (reading.has_memory && reading.memory_used > meter->memory_most) {
        meter->memory_most = reading.memory_used;
    }
    if ((step->step + 1) % meter->segment_length == 0) {
        end_segment(meter, step->step / meter->segment_length, log);
    }
}

void gpu_meter_close(struct gpu_meter *meter)
{
    nvml_close(meter->gpu.nvml);
    meter->gpu.nvml = NULL;
}
