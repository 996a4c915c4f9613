/*
 * moving_image.h - the kernels of windows over pictures, for moving_kernels() only.
 */
#ifndef ENGINE_CPU_MOVING_IMAGE_H
#define ENGINE_CPU_MOVING_IMAGE_H

#include "engine/ops/kernel.h"

/* Adds IM2COL, COL2IM and the four pools to table. */
void moving_image_kernels(struct kernel_table *table);

#endif /* ENGINE_CPU_MOVING_IMAGE_H */
