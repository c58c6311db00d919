/* What foreign sources do to the language: macros, namespaces, several declarators, lambdas. */
#define KERNEL(name, op)                                                                           \
    extern "C" __global__ void __launch_bounds__(64, 2) name(int *p) { p[threadIdx.x] op 3; }
KERNEL(by_macro_add, +=)
KERNEL(by_macro_set, =)

extern "C" __global__ void forward(int *p);

namespace inner
{
extern "C" __global__ void in_namespace(unsigned *p)
{
    __shared__ unsigned a[64], b, *q;

    a[threadIdx.x] = threadIdx.x;
    if (threadIdx.x == 0) {
        b = 5;
        q = a;
    }
    __syncthreads();
    p[threadIdx.x] = q[63 - threadIdx.x] + b + (unsigned)(sizeof a / sizeof a[0]);
}
} // namespace inner

struct pair {
    float x, y;
};
extern "C" __global__ void signature(const float *a, float *__restrict__ b, unsigned n, int m,
                                     float f, unsigned long long big, double d, struct pair by)
{
    b[0] = a[0] + (float)n + (float)m + f + (float)big + (float)d + by.y;
}

/* Static shared memory: 16 + 400 bytes here, none in the others. */
extern "C" __global__ void fixed_shared(float *p)
{
    __shared__ float4 one;
    __shared__ float hundred[100];

    one.x = 1;
    hundred[3] = one.x;
    p[0] = hundred[3];
}

template <int N> __global__ void not_an_entry(int *p) { p[0] = N; }

extern "C" __global__ void forward(int *p)
{
    const char *text = "__global__ void in_a_string() {"; // __shared__ in a comment
    p[0] = text[0] == '_' ? 1 : 0;
}

void cpp_linkage_helper();
__global__ void cpp_linkage(float *p) { p[0] = 1; }
