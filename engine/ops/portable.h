/*
 * portable.h - lets one source be C17 for processors and device code for CUDA.
 *
 * nvcc compiles the rules a second time, as the GPU's fallback for every operation. RULE marks a
 * function for the device there and is empty here. Such code keeps to what C17 and CUDA C++ share:
 * no designated array elements, no type punning by unions, no static variables that change.
 *
 * nvcc gets -fmad=false -ftz=false -prec-div=true -prec-sqrt=true, so +, -, *, /, sqrtf and fmaf
 * round once each, to nearest even, and keep subnormals, as they do here.
 */
#ifndef ENGINE_OPS_PORTABLE_H
#define ENGINE_OPS_PORTABLE_H

#ifdef __CUDACC__
#define RULE __device__
#else
#define RULE
#endif

#endif /* ENGINE_OPS_PORTABLE_H */
