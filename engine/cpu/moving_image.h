/*
 * moving_image.h - the kernels of windows over pictures, for moving_kernels() only.
 *
 * They are a file of their own because they share a geometry that the others do not have.
 */
#ifndef ENGINE_CPU_MOVING_IMAGE_H
#define ENGINE_CPU_MOVING_IMAGE_H

#include "engine/ops/kernel.h"

/* Fills IM2COL, COL2IM and the four pools into table. */
void moving_image_kernels(struct kernel_table *table);

#endif /* ENGINE_CPU_MOVING_IMAGE_H */
