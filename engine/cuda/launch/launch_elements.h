/* launch_elements.h - operations element by element: by a kernel, or by their rules. */
#ifndef ENGINE_CUDA_LAUNCH_LAUNCH_ELEMENTS_H
#define ENGINE_CUDA_LAUNCH_LAUNCH_ELEMENTS_H

#include "engine/cuda/launch/launcher.h"

/* A kind of LAUNCH_ELEMENTS: four numbers a lane where the tensors allow it, else one; by the rules
 * where a word is short. */
enum device_result launch_elements(const struct launcher *launcher, uint32_t at);

/* Any operation, output after output. */
enum device_result launch_rules(const struct launcher *launcher, uint32_t at);

#endif /* ENGINE_CUDA_LAUNCH_LAUNCH_ELEMENTS_H */
