/* A lambda that captures by copy must not copy shared memory. */
extern "C" __global__ void lambda(int *p)
{
    __shared__ int s[32];
    extern __shared__ int d[];
    auto set = [=](int i) { s[i] = i; d[i] = 10 * i; };

    set((int)threadIdx.x);
    __syncthreads();
    p[threadIdx.x] = s[31 - threadIdx.x] + d[31 - threadIdx.x];
}
