/*
 * Elementary functions with the same bits on every IEEE-754 machine and compiler: only +, -, *, /
 * and sqrt of doubles, no libm (whose exp and log choose code paths by processor), no fused
 * multiply-add (the project is compiled with -ffp-contract=off). Accuracy: below 1 ulp of double
 * over the whole range, tested against libm's long double functions.
 */
#ifndef REFERENCE_DETMATH_H
#define REFERENCE_DETMATH_H

double det_exp(double x); /* overflow to inf, gradual underflow to 0, NaN to NaN */
double det_expm1(double x);
double det_log(double x); /* -inf at 0, NaN below */
double det_log1p(double x);
double det_sigmoid(double x);  /* 1/(1+exp(-x)) without overflow */
double det_softplus(double x); /* log(1+exp(x)) */
double det_silu(double x);     /* x*sigmoid(x) */

#endif
