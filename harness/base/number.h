/*
 * NaN and infinity as doubles: those of <math.h> are floats, and this project is compiled with
 * -Wdouble-promotion. NAN64 in a record means "not measured".
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#define NAN64 __builtin_nan("")
#define INF64 __builtin_inf()

#endif
