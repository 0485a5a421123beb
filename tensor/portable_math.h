// Elementary functions in f64 that give the same bits on every machine: those of the C library
// differ between its versions, and by the processor that it finds. For what enters the training
// path outside of the kernels' loops (for those: tensor/cpu/vector_math.h). Made of additions,
// products and fused multiply-adds alone, which IEEE 754 defines; within 2 ulp, as long as the
// compiler contracts nothing (cmake/options.cmake). Pure.
#pragma once

namespace redspine::portable {

/// log(x); -inf for 0, NaN below 0 and for NaN.
double log(double x);
/// e^x; 0 and inf beyond the range.
double exp(double x);
/// base^exponent of a positive base, to a relative error of 2^-52 |exponent log(base)|.
double pow(double base, double exponent);
/// Of |x| below 2^30.
double sin(double x);
double cos(double x);

}  // namespace redspine::portable
