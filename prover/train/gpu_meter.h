/*
 * gpu_meter.h - how busy the GPU of a run is. Its energy goes into the journal with every step
 * (energy.h); its use and memory go into the log and the note gpu.SEGMENT with every segment.
 *
 * Without a GPU or without NVML it reports nothing.
 */
#ifndef PROVER_TRAIN_GPU_METER_H
#define PROVER_TRAIN_GPU_METER_H

#include "base/io/log.h"
#include "engine/plan/backend.h"
#include "proofs/bundle/bundle.h"
#include "prover/train/energy.h"

struct gpu_meter {
    struct energy_gpu gpu; /* nvml NULL: none */
    struct bundle *bundle; /* borrowed, for the notes; NULL: no notes */
    uint64_t segment_length;
    uint64_t steps; /* of the segment, with a known use */
    uint64_t use;   /* sum of percents */
    uint64_t memory_most;
};

/* Returns the GPU whose energy can be read; it lives as long as the meter. NULL: none. */
const struct energy_gpu *gpu_meter_open(struct gpu_meter *meter,
                                        const struct machine_options *machine,
                                        uint64_t segment_length, struct bundle *bundle,
                                        const struct log *log);
void gpu_meter_step(struct gpu_meter *meter, const struct bundle_step *step, const struct log *log);
void gpu_meter_close(struct gpu_meter *meter);

#endif /* PROVER_TRAIN_GPU_METER_H */
