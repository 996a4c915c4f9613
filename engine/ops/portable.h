/*
 * portable.h - lets one source be C17 for processors and device code for CUDA.
 *
 * The rules are the definition of the arithmetic, so a GPU's fallback for every operation is the
 * rules' own source, compiled a second time by nvcc. What is marked RULE is compiled for the
 * device there and means nothing here. Such code keeps to what C17 and CUDA C++ share: no
 * designated array elements, no unions read another way, no statics that change.
 *
 * nvcc gets -fmad=false -ftz=false -prec-div=true -prec-sqrt=true: then +, -, *, /, sqrtf and fmaf
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
