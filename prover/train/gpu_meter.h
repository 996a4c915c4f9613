/*
 * gpu_meter.h - how busy the GPU of a run is: its energy goes into the journal with every step
 * (energy.h), its use and memory with every segment, as the note gpu.SEGMENT, and into the log.
 *
 * Runs on a processor have none, and neither have machines without NVML: then nothing is told.
 */
#ifndef PROVER_TRAIN_GPU_METER_H
#define PROVER_TRAIN_GPU_METER_H

#include "base/io/log.h"
#include "engine/plan/backend.h"
#include "proofs/bundle/bundle.h"
#include "prover/train/energy.h"

struct gpu_meter {
    struct energy_gpu gpu; /* nvml NULL: nothing is metered */
    struct bundle *bundle; /* borrowed, for the notes; NULL: there are none */
    uint64_t segment_length;
    uint64_t steps; /* of the segment, that told their use */
    uint64_t use;   /* sum of percents */
    uint64_t memory_most;
};

/* Returns the GPU to ask for its energy, which lives as long as the meter; NULL: none. */
const struct energy_gpu *gpu_meter_open(struct gpu_meter *meter,
                                        const struct machine_options *machine,
                                        uint64_t segment_length, struct bundle *bundle,
                                        const struct log *log);
void gpu_meter_step(struct gpu_meter *meter, const struct bundle_step *step, const struct log *log);
void gpu_meter_close(struct gpu_meter *meter);

#endif /* PROVER_TRAIN_GPU_METER_H */
