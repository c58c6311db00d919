/* One kernel for each thing a kernel can do wrong. */

extern "C" __global__ void store_at(float *p, long long element) { p[element] = 1.0f; }
extern "C" __global__ void load_at(float *p, long long element) { p[0] = p[element]; }
extern "C" __global__ void null_store(float *p) { *(volatile float *)nullptr = p[0]; }
extern "C" __global__ void wild_store(float *p) { *(float *)0x0000424242424240ull = p[0]; }
extern "C" __global__ void beyond_store(float *p) { *(float *)0x4242424242424240ull = p[0]; }
extern "C" __global__ void dynamic_store(int element)
{
    extern __shared__ int s[];
    s[element] = 1;
}
extern "C" __global__ void misaligned(float *p)
{
    float4 v = *reinterpret_cast<float4 *>(p + threadIdx.x);
    p[0] = v.x + v.w;
}
extern "C" __global__ void divergent(int *p)
{
    if (threadIdx.x % 2)
        __syncthreads();
    else
        __syncthreads();
    p[0] = 0;
}
// clang-format off
extern "C" __global__ void divergent_line(int *p)
{
    if (threadIdx.x % 2) __syncthreads(); else __syncthreads();
    p[0] = 0;
}
// clang-format on
extern "C" __global__ void stuck(int *p)
{
    if (threadIdx.x < 40)
        __syncthreads();
    else
        p[0] = __shfl_sync(0xffffffffu, 1, 0);
}
extern "C" __global__ void not_in_mask(int *p) { p[0] = __shfl_sync(0xfffffffeu, 1, 1); }
extern "C" __global__ void traps(int *p)
{
    if (p[0] == 0)
        __trap();
}
extern "C" __global__ void asserts(int *p) { assert(p[0] != 0); }
extern "C" __global__ void spins(volatile int *p)
{
    while (*p == 0)
        ;
}
extern "C" __global__ void barrier_loop(volatile int *p)
{
    while (*p == 0)
        __syncthreads();
}
extern "C" __global__ void divides(int *p) { p[1] = 7 / p[0]; }
extern "C" __global__ void remainder_of(unsigned long long *p) { p[1] = 7 % p[0]; }
extern "C" __global__ void compilers_trap(int *p)
{
    if (p[0] == 0)
        __builtin_trap();
}
__device__ __noinline__ int deeper(volatile int *p, int n)
{
    volatile int frame[256];
    frame[n & 255] = n;
    return n < 0 ? 0 : deeper(p, n + 1) + frame[n & 255] + *p;
}
extern "C" __global__ void overflows(int *p) { p[0] = deeper(p, 0); }
