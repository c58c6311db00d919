/* Barriers, warp operations, schedules and shared memory. */

/* Each thread reads what its mirror wrote; with RACE the barrier is missing. */
template <bool RACE> __device__ void mirror(int *out)
{
    __shared__ int s[256];

    s[threadIdx.x] = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (!RACE)
        __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void mirror_right(int *out) { mirror<false>(out); }
extern "C" __global__ void mirror_racy(int *out) { mirror<true>(out); }

/* Threads from `stay` on leave before the barrier, which the others pass. */
extern "C" __global__ void early_return(int *out, unsigned stay)
{
    __shared__ int sum;

    if (threadIdx.x >= stay)
        return;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, 1);
    __syncthreads();
    out[threadIdx.x] = sum;
}

extern "C" __global__ void votes(int *out)
{
    int odd = threadIdx.x & 1;

    out[0] = __syncthreads_count(odd);
    out[1] = __syncthreads_and(odd);
    out[2] = __syncthreads_or(odd);
    out[3] = __syncthreads_and(1);
    out[4] = __syncthreads_or(0);
}

/* Lane results of each warp operation: out[op * 32 + lane]. */
extern "C" __global__ void warp_ops(unsigned *out)
{
    const unsigned lane = threadIdx.x, all = 0xffffffffu;
    int same;

    out[lane] = __shfl_sync(all, lane * 10, 5);
    out[32 + lane] = __shfl_up_sync(all, lane, 3);
    out[64 + lane] = __shfl_down_sync(all, lane, 3, 8);
    out[96 + lane] = __shfl_xor_sync(all, lane, 9);
    out[128 + lane] = __ballot_sync(all, lane % 3 == 0);
    out[160 + lane] = __reduce_add_sync(all, lane);
    out[192 + lane] = (unsigned)__reduce_min_sync(all, (int)lane - 7);
    out[224 + lane] = __match_any_sync(all, lane / 8);
    out[256 + lane] = __match_all_sync(all, 4, &same);
    out[288 + lane] = __any_sync(all, lane == 31) && !__all_sync(all, lane != 31);
    if (lane < 20)
        out[320 + lane] = __shfl_sync(0x000fffffu, lane + 100, 19);
    else
        out[320 + lane] = __activemask();
}

/* Reads lane 9, which the mask leaves out: undefined on the GPU, a NaN here. */
extern "C" __global__ void outside_mask(float *out)
{
    if (threadIdx.x < 8)
        out[threadIdx.x] = __shfl_sync(0xffu, 1.0f, 9);
}

/* The exited half of the warp counts as arrived. */
extern "C" __global__ void exited_lanes(unsigned *out)
{
    if (threadIdx.x >= 16)
        return;
    out[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
}

extern "C" __global__ void read_fill(unsigned *out)
{
    extern __shared__ unsigned dynamic[];
    __shared__ unsigned fixed[4];

    out[0] = dynamic[0];
    out[1] = fixed[3];
}

/* A sum in shared memory by a loop over barriers: many switches, all sizes. */
extern "C" __global__ void tree_sum(const float *x, float *out)
{
    extern __shared__ float part[];
    const unsigned t = threadIdx.x + blockDim.x * threadIdx.y, n = blockDim.x * blockDim.y;

    part[t] = x[blockIdx.x * n + t];
    for (unsigned step = n / 2; step > 0; step /= 2) {
        __syncthreads();
        if (t < step)
            part[t] += part[t + step];
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}
