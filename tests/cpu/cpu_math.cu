/* One function of the shim over an array; `which` in the order of the table in test_cpu_math.c. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ float apply(unsigned which, float x)
{
    switch (which) {
    case 0: return expf(x);
    case 1: return exp2f(x);
    case 2: return exp10f(x);
    case 3: return expm1f(x);
    case 4: return logf(x);
    case 5: return log2f(x);
    case 6: return log10f(x);
    case 7: return log1pf(x);
    case 8: return tanhf(x);
    case 9: return sinf(x);
    case 10: return cosf(x);
    case 11: return sinhf(x);
    case 12: return coshf(x);
    case 13: return erff(x);
    case 14: return erfcf(x);
    case 15: return rsqrtf(x);
    case 16: return sqrtf(x);
    case 17: return tanf(x);
    case 18: return powf(x, 1.7f);
    case 19: return __expf(x);
    default: return std::exp(x);
    }
}

extern "C" __global__ void math(unsigned which, const float *x, float *y, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        y[i] = apply(which, x[i]);
}

/* Floats [first, first + n) by their bits, to bf16 and fp16 and back. */
extern "C" __global__ void narrow(unsigned first, unsigned stride, unsigned short *b,
                                  unsigned short *h, float *from_h, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    float f = __uint_as_float(first + i * stride);
    b[i] = __bfloat16_as_ushort(__float2bfloat16(f));
    h[i] = __half_as_ushort(__float2half(f));
    from_h[i] = __half2float(__ushort_as_half((unsigned short)(i & 0xffffu)));
}

/* op 0..3: + - * /, 4: fma, on bf16 operands given by their bits. */
extern "C" __global__ void bf16_op(unsigned op, const unsigned short *a, const unsigned short *b,
                                   const unsigned short *c, unsigned short *y, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    __nv_bfloat16 u = __ushort_as_bfloat16(a[i]), v = __ushort_as_bfloat16(b[i]);
    __nv_bfloat162 p = __halves2bfloat162(u, v);
    __nv_bfloat16 r = op == 0   ? u + v
                      : op == 1 ? __hsub(u, v)
                      : op == 2 ? __low2bfloat16(__hmul2(p, __bfloat162bfloat162(v)))
                      : op == 3 ? u / v
                                : __hfma(u, v, __ushort_as_bfloat16(c[i]));
    y[i] = __bfloat16_as_ushort(r);
}

extern "C" __global__ void min_max(const float *a, const float *b, float *lo, float *hi)
{
    lo[threadIdx.x] = fminf(a[threadIdx.x], b[threadIdx.x]);
    hi[threadIdx.x] = max(a[threadIdx.x], b[threadIdx.x]);
}
