/* Functions with a rounding direction in their name; `op` and `way` (0 towards zero, 1 down, 2 up)
   in the order of test_cpu_rounding.c. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define BY_WAY(f, ...)                                                                             \
    (way == 0 ? f##_rz(__VA_ARGS__) : way == 1 ? f##_rd(__VA_ARGS__) : f##_ru(__VA_ARGS__))

__device__ float apply(unsigned op, unsigned way, float a, float b, float c)
{
    switch (op) {
    case 0:
        return BY_WAY(__fadd, a, b);
    case 1:
        return BY_WAY(__fsub, a, b);
    case 2:
        return BY_WAY(__fmul, a, b);
    case 3:
        return BY_WAY(__fmaf, a, b, c);
    case 4:
        return BY_WAY(__fdiv, a, b);
    case 5:
        return BY_WAY(__frcp, a);
    case 6:
        return BY_WAY(__fsqrt, a);
    case 7:
        return BY_WAY(__int2float, __float_as_int(a));
    case 8:
        return BY_WAY(__uint2float, __float_as_uint(a));
    case 9:
        return BY_WAY(__ll2float, (long long)__float_as_uint(a) << 32 | __float_as_uint(b));
    case 10:
        return BY_WAY(__ull2float,
                      (unsigned long long)__float_as_uint(a) << 32 | __float_as_uint(b));
    default:
        return BY_WAY(__double2float, __longlong_as_double((long long)__float_as_uint(a) << 32 |
                                                           __float_as_uint(b)));
    }
}

extern "C" __global__ void directed(unsigned op, unsigned way, const float *a, const float *b,
                                    const float *c, float *y, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        y[i] = apply(op, way, a[i], b[i], c[i]);
}

/* way 3: to nearest. From: 0 float, 1 int, 2 64 bits, 3 the same without sign. */
template <unsigned From>
__device__ void narrowed(unsigned way, unsigned hi, unsigned lo, unsigned short *b,
                         unsigned short *h)
{
    unsigned long long u = (unsigned long long)hi << 32 | lo;
    __nv_bfloat16 x;
    __half y;

    if (From == 0) {
        float f = __uint_as_float(hi);
        x = way == 3 ? __float2bfloat16_rn(f) : BY_WAY(__float2bfloat16, f);
        y = way == 3 ? __float2half_rn(f) : BY_WAY(__float2half, f);
    } else if (From == 1) {
        x = way == 3 ? __int2bfloat16_rn((int)hi) : BY_WAY(__int2bfloat16, (int)hi);
        y = way == 3 ? __int2half_rn((int)hi) : BY_WAY(__int2half, (int)hi);
    } else if (From == 2) {
        x = way == 3 ? __ll2bfloat16_rn((long long)u) : BY_WAY(__ll2bfloat16, (long long)u);
        y = way == 3 ? __ll2half_rn((long long)u) : BY_WAY(__ll2half, (long long)u);
    } else {
        x = way == 3 ? __ull2bfloat16_rn(u) : BY_WAY(__ull2bfloat16, u);
        y = way == 3 ? __ull2half_rn(u) : BY_WAY(__ull2half, u);
    }
    *b = __bfloat16_as_ushort(x);
    *h = __half_as_ushort(y);
}

extern "C" __global__ void narrow(unsigned from, unsigned way, const unsigned *hi,
                                  const unsigned *lo, unsigned short *b, unsigned short *h,
                                  unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    from == 0   ? narrowed<0>(way, hi[i], lo[i], b + i, h + i)
    : from == 1 ? narrowed<1>(way, hi[i], lo[i], b + i, h + i)
    : from == 2 ? narrowed<2>(way, hi[i], lo[i], b + i, h + i)
                : narrowed<3>(way, hi[i], lo[i], b + i, h + i);
}

/* What does not fit the tables: one thread, `out` in the order of test_cpu_rounding.c. */
extern "C" __global__ void one_by_one(float *f, long long *i)
{
    const float nan = __uint_as_float(0x7fc00000u);
    const __nv_bfloat16 half = __float2bfloat16(0.5f), no = __float2bfloat16(nan),
                        three = __float2bfloat16(3.0f);
    const __nv_bfloat162 p = __halves2bfloat162(half, no), q = __halves2bfloat162(three, three);
    __shared__ float2 pair;

    *f++ = __bfloat162float(__hadd_sat(three, three));
    *f++ = __bfloat162float(__hadd_sat(no, three));
    *f++ = __bfloat162float(__hsub_sat(half, three));
    *f++ = __bfloat162float(__hfma_relu(half, -three, half));
    *f++ = __bfloat162float(__hfma_relu(no, three, half));
    *f++ = __bfloat162float(__hfma_sat(half, half, half));
    *f++ = __bfloat162float(hfloor(-half));
    *f++ = __bfloat162float(hceil(half));
    *f++ = __bfloat162float(hrint(__float2bfloat16(2.5f)));
    *f++ = __low2float(__hlt2(p, q));
    *f++ = __high2float(__hltu2(p, q));
    *f++ = __low2float(__hcmadd(q, __halves2bfloat162(half, half), q));
    *f++ = __high2float(__hcmadd(q, __halves2bfloat162(half, half), q));
    pair = make_float2(1.0f, 2.0f);
    *f++ = atomicAdd(&pair, make_float2(3.0f, 4.0f)).y;
    *f++ = pair.x;
    *i++ = __hlt2_mask(p, q);
    *i++ = __hbltu2(p, q);
    *i++ = __hblt2(p, q);
    *i++ = __float2ll_rn(2.5f);
    *i++ = __float2ll_rz(-2.5f);
    *i++ = __float2ll_rd(-2.5f);
    *i++ = __float2ll_ru(1e30f);
    *i++ = __float2ll_rn(nan);
    *i++ = (long long)__float2ull_rn(-1.0f);
    *i++ = (long long)__float2ull_rz(1e30f);
    *i++ = __double2int_rn((double)nan);
    *i++ = __double2int_ru(2147483646.5);
    *i++ = __double2uint_rd(-0.5);
    *i++ = __float2uint_ru(0.25f);
    *i++ = __bfloat162short_rz(__float2bfloat16(-70000.0f));
    *i++ = __bfloat162ushort_ru(half);
    *i++ = __half2ll_rd(__float2half(-0.5f));
    *i++ = __funnelshift_lc(1u, 2u, 40u);
    *i++ = __funnelshift_rc(1u, 2u, 40u);
    *i++ = (long long)(__brevll(1ull) >> 63);
    *i++ = __rhadd(2147483647, 2147483647);
    *i++ = __double2hiint(__hiloint2double(7, -1));
}
