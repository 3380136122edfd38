/* test_cudasim.cpp - the simulator runs right programs rightly and catches deliberate bugs. */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>
#include <sys/wait.h>
#include <unistd.h>
extern "C" {
#include <cmocka.h>
}
#include "sim.h"
#include "caught.h"

#if defined(__SANITIZE_THREAD__)
#define RACES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACES 1
#endif
#endif

/* A launch, and one whose error is asked for. */
#define LAUNCH(kernel, grid, block, stream, ...) cudasim::start(#kernel, kernel, grid, block, 0, stream, __VA_ARGS__)
#define RUN(...) (LAUNCH(__VA_ARGS__), cudaGetLastError())

/* ---- kernels ---- */

static __global__ void scale(int n, float *x, float by)
{
        for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x))
                x[i] *= by;
}

/* Sums of blocks of 256, by shuffles and shared memory; with a bug: without the barrier. */
template <bool bug> static __global__ void sums(int n, const float *x, float *y)
{
        LG_SHARED(float, part, 8);
        int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), lane = (int)threadIdx.x % 32;
        float s = i < n ? x[i] : 0;
        for (int by = 16; by; by /= 2)
                s += __shfl_down_sync(0xffffffffu, s, (unsigned)by);
        if (lane == 0)
                part[threadIdx.x / 32] = s;
        if (!bug)
                __syncthreads();
        if (threadIdx.x == 0) {
                float all = 0;
                for (unsigned k = 0; k < blockDim.x / 32; k++)
                        all += part[k];
                y[blockIdx.x] = all;
        }
}

static __global__ void beyond(int n, float *x)
{
        if (threadIdx.x == 0)
                x[n] = 1;
}

/* Rows of n elements, written as if they were of n + 2. */
static __global__ void wrong_stride(int rows, int n, float *x)
{
        for (int i = (int)threadIdx.x; i < rows * n; i += (int)blockDim.x)
                x[i / n * (n + 2) + i % n] = 1;
}

static __global__ void divergent(float *x)
{
        if (threadIdx.x < 16)
                __syncthreads();
        x[threadIdx.x] = 1;
}

static __global__ void two_barriers(float *x)
{
        if (threadIdx.x < 16)
                __syncthreads();
        else
                __syncthreads();
        x[threadIdx.x] = 1;
}

static __global__ void absent_lanes(float *x)
{
        if (threadIdx.x < 16)
                x[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1.0f, 1);
}

static __global__ void too_much_shared(float *x)
{
        LG_SHARED(char, big, 300 * 1024);
        x[0] = big[0];
}

static __global__ void votes(unsigned *out)
{
        unsigned b = __ballot_sync(0xffffffffu, threadIdx.x % 3 == 0);
        int any = __any_sync(0xffffffffu, threadIdx.x == 7), all = __all_sync(0xffffffffu, threadIdx.x < 32);
        out[threadIdx.x] = b + (unsigned)(any + all) + (unsigned)__shfl_xor_sync(0xffffffffu, (int)threadIdx.x, 1);
        atomicAdd(&out[32], 1u);
        atomicMax(&out[33], threadIdx.x);
}

/* ---- right programs ---- */

static float *device_floats(int n)
{
        void *p = nullptr;
        assert_int_equal(cudaMalloc(&p, (size_t)n * sizeof(float)), cudaSuccess);
        return (float *)p;
}

static void copies_and_launches(void **)
{
        const int n = 1000;
        std::vector<float> host(n), back(n);
        for (int i = 0; i < n; i++)
                host[i] = (float)i;
        float *x = device_floats(n), *y = device_floats(4);
        cudaStream_t s;
        assert_int_equal(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
        int64_t waits = cudasim_waits();
        cudaMemcpyAsync(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice, s);
        std::fill(host.begin(), host.end(), -1.0f); /* pageable: it was read already */
        assert_int_equal(RUN(scale, 3, 64, s, n, x, 2.0f), cudaSuccess);
        assert_int_equal(RUN(sums<false>, 4, 256, s, n, x, y), cudaSuccess);
        assert_int_equal(cudasim_waits(), waits);
        cudaMemcpyAsync(back.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost, s);
        assert_int_equal(cudasim_waits(), waits + 1);
        float parts[4];
        cudaMemcpyAsync(parts, y, sizeof parts, cudaMemcpyDeviceToHost, s);
        assert_true(back[999] == 1998.0f);
        assert_true(parts[0] + parts[1] + parts[2] + parts[3] == 999000.0f);
        cudaFree(x);
        cudaFree(y);
        cudaStreamDestroy(s);
        assert_int_equal(cudasim_bytes(), 0);
        assert_int_equal(cudasim_handles(), 0);
}

static void warps_vote(void **)
{
        unsigned host[34], *p;
        assert_int_equal(cudaMalloc((void **)&p, sizeof host), cudaSuccess);
        cudaMemsetAsync(p, 0, sizeof host, nullptr);
        RUN(votes, 1, 32, nullptr, p);
        assert_int_equal(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
        for (unsigned i = 0; i < 32; i++)
                assert_int_equal(host[i], 0x49249249u + 2 + (i ^ 1));
        assert_int_equal(host[32], 32);
        assert_int_equal(host[33], 31);
        cudaFree(p);
}

static void events_order_streams(void **)
{
        float *x = device_floats(4), *pinned;
        cudaStream_t a, b;
        cudaEvent_t e;
        cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
        assert_int_equal(cudaHostAlloc((void **)&pinned, 16, 0), cudaSuccess);
        for (int i = 0; i < 4; i++)
                pinned[i] = (float)i + 1;
        cudaMemcpyAsync(x, pinned, 16, cudaMemcpyHostToDevice, a);
        cudaEventRecord(e, a);
        assert_int_equal(cudaEventQuery(e), cudaErrorNotReady);
        cudaStreamWaitEvent(b, e, 0);
        RUN(scale, 1, 32, b, 4, x, 10.0f);
        cudaMemcpyAsync(pinned, x, 16, cudaMemcpyDeviceToHost, b);
        assert_true(pinned[3] == 4.0f); /* nothing ran yet */
        cudaStreamSynchronize(b);
        assert_true(pinned[3] == 40.0f);
        cudaEventDestroy(e);
        cudaStreamDestroy(a);
        cudaStreamDestroy(b);
        cudaFree(x);
        cudaFreeHost(pinned);
        assert_int_equal(cudasim_handles(), 0);
}

static void failures_on_purpose(void **)
{
        void *p = nullptr;
        cudasim_fail_at(2, false, true);
        assert_int_equal(cudaMalloc(&p, 100), cudaSuccess);
        void *q = nullptr;
        assert_int_equal(cudaMalloc(&q, 100), cudaErrorMemoryAllocation);
        assert_string_equal(cudasim_failed(), "cudaMalloc");
        assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
        assert_int_equal(cudaGetLastError(), cudaSuccess);
        cudasim_fail_at(0, false, true);
        cudasim_fail_at(1, false, false);
        assert_int_equal(cudaMemsetAsync(p, 0, 100, nullptr), cudaErrorInvalidValue);
        assert_int_equal(cudaMemsetAsync(p, 0, 100, nullptr), cudaSuccess);
        assert_int_equal(cudaMalloc(&q, (size_t)1 << 40), cudaErrorMemoryAllocation);
        assert_int_equal(RUN(scale, 1, 2048, nullptr, 1, (float *)p, 1.0f), cudaErrorInvalidConfiguration);
        assert_int_equal(cudaSetDevice(7), cudaErrorInvalidDevice);
        assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
        cudaFree(p);
}

/* As on a GPU: the error of a launch or a call stays until it is asked for; what goes well leaves it. */
static void the_last_error_stays(void **)
{
        float *x = device_floats(4);
        LAUNCH(scale, 1, 2048, nullptr, 1, x, 1.0f);
        assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
        assert_int_equal(cudaMemsetAsync(x, 0, 16, nullptr), cudaSuccess);
        assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
        cudasim_fail_at(1, false, cudasim::CALL);
        LAUNCH(scale, 1, 32, nullptr, 1, x, 1.0f);
        assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
        assert_int_equal(cudaGetLastError(), cudaSuccess);
        assert_int_equal(cudaSetDevice(7), cudaErrorInvalidDevice); /* and nobody asks */
        LAUNCH(scale, 1, 32, nullptr, 1, x, 1.0f);
        assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
        assert_int_equal(RUN(scale, 1, 32, nullptr, 1, x, 1.0f), cudaSuccess);
        cudaFree(x);
}

static void streams_belong_to_devices(void **)
{
        float *x = device_floats(4);
        cudaStream_t s;
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        cudaSetDevice(1);
        assert_int_equal(RUN(scale, 1, 32, s, 1, x, 1.0f), cudaErrorInvalidResourceHandle);
        cudaSetDevice(0);
        assert_int_equal(RUN(scale, 1, 32, s, 1, x, 1.0f), cudaSuccess);
        cudaStreamDestroy(s);
        cudaFree(x);
}

static void peers(void **)
{
        int can;
        assert_int_equal(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
        assert_int_equal(can, 1);
        assert_int_equal(cudaDeviceCanAccessPeer(&can, 0, 0), cudaSuccess);
        assert_int_equal(can, 0);
        assert_int_equal(cudaDeviceCanAccessPeer(&can, 0, 2), cudaErrorInvalidDevice);
        assert_int_equal(cudaDeviceCanAccessPeer(&can, -1, 0), cudaErrorInvalidDevice);
        assert_int_equal(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
        assert_int_equal(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
        assert_int_equal(cudaDeviceEnablePeerAccess(2, 0), cudaErrorInvalidDevice);
        assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
        assert_int_equal(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
        assert_int_equal(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
        assert_int_equal(cudaGetLastError(), cudaErrorPeerAccessAlreadyEnabled);
        setenv("CUDASIM_PEER", "0", 1);
        assert_int_equal(cudaDeviceCanAccessPeer(&can, 1, 0), cudaSuccess);
        assert_int_equal(can, 0);
        cudaSetDevice(1);
        assert_int_equal(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported);
        assert_int_equal(cudaGetLastError(), cudaErrorPeerAccessUnsupported);
        unsetenv("CUDASIM_PEER");
        cudaSetDevice(0);
}

/* Pageable memory that the device reads by itself is read when the copy runs. */
static void pageable_memory(void **)
{
        float *x = device_floats(1), host = 1, back;
        for (const char *late : {"0", "1"}) {
                int access = -1;
                setenv("CUDASIM_PAGEABLE", late, 1);
                assert_int_equal(cudaDeviceGetAttribute(&access, cudaDevAttrPageableMemoryAccess, 0), cudaSuccess);
                assert_int_equal(access, atoi(late));
                host = 1;
                cudaMemcpyAsync(x, &host, 4, cudaMemcpyHostToDevice, nullptr);
                host = 2;
                cudaMemcpy(&back, x, 4, cudaMemcpyDeviceToHost);
                assert_true(back == (access ? 2.0f : 1.0f));
        }
        unsetenv("CUDASIM_PAGEABLE");
        cudaFree(x);
}

/* ---- deliberate bugs: each in a process of its own ---- */

#if defined(__SANITIZE_ADDRESS__)
#define OR_ASAN(words) "AddressSanitizer"
#else
#define OR_ASAN(words) words
#endif

static void bugs_are_caught(void **)
{
        setenv("CUDASIM_CHECK", "1", 1);
        cudasim_read_settings();
        caught(
                [] {
                        RUN(beyond, 1, 32, nullptr, 4, device_floats(4));
                        cudaDeviceSynchronize();
                },
                OR_ASAN("beyond wrote at"));
        caught(
                [] {
                        RUN(wrong_stride, 1, 32, nullptr, 8, 16, device_floats(8 * 16));
                        cudaDeviceSynchronize();
                },
                OR_ASAN("wrong_stride wrote at"));
        caught(
                [] {
                        RUN(divergent, 1, 32, nullptr, device_floats(32));
                        cudaDeviceSynchronize();
                },
                "before the barrier");
        caught(
                [] {
                        RUN(two_barriers, 1, 32, nullptr, device_floats(32));
                        cudaDeviceSynchronize();
                },
                "two barriers");
        caught(
                [] {
                        RUN(absent_lanes, 1, 32, nullptr, device_floats(32));
                        cudaDeviceSynchronize();
                },
                "lanes that do not come");
        caught(
                [] {
                        RUN(too_much_shared, 1, 32, nullptr, device_floats(1));
                        cudaDeviceSynchronize();
                },
                "shared memory");
        caught(
                [] {
                        float host[4] = {};
                        RUN(scale, 1, 32, nullptr, 4, host, 1.0f);
                },
                "not device memory");
        caught(
                [] {
                        float *x = device_floats(4);
                        cudaFree(x);
                        RUN(scale, 1, 32, nullptr, 4, x, 1.0f);
                },
                "was freed");
        caught(
                [] {
                        float *x = device_floats(4);
                        cudaFree(x);
                        cudaFree(x);
                },
                "or twice");
        caught(
                [] {
                        float *x = device_floats(4), h[8] = {};
                        cudaMemcpyAsync(x, h, 32, cudaMemcpyHostToDevice, nullptr);
                },
                "beyond their allocation");
        caught(
                [] {
                        float *x = device_floats(4), h[4] = {};
                        cudaMemcpyAsync(h, x, 16, cudaMemcpyHostToDevice, nullptr);
                },
                "do not go with the direction");
        caught(
                [] {
                        void *p = malloc(8);
                        cudaFreeHost(p);
                },
                "not pinned");
        caught(
                [] {
                        float *x = device_floats(4);
                        LAUNCH(scale, 1, 32, nullptr, 4, x, 1.0f);
                        LAUNCH(scale, 1, 32, nullptr, 4, x, 1.0f);
                },
                "a launch: no cudaGetLastError follows the launch of scale");
        caught(
                [] {
                        LAUNCH(scale, 1, 32, nullptr, 4, device_floats(4), 1.0f);
                        cudaStreamSynchronize(nullptr);
                },
                "a wait: no cudaGetLastError follows the launch of scale");
        caught(
                [] {
                        LAUNCH(scale, 1, 32, nullptr, 4, device_floats(4), 1.0f);
                        std::exit(0);
                },
                "the end of the thread: no cudaGetLastError follows the launch of scale");
        caught(
                [] {
                        fprintf(stderr, "touching");
                        volatile float *x = device_floats(4);
                        x[0] = 1;
                },
                "touching");
}

#if RACES
/* Blocks that meet in one element without an atomic. */
static __global__ void racing_blocks(float *x)
{
        if (threadIdx.x == blockIdx.x)
                x[0] += 1;
}

/* Lanes of a warp that read what others wrote, without __syncwarp. */
template <bool bug> static __global__ void racing_lanes(float *x)
{
        LG_SHARED(float, part, 32);
        part[threadIdx.x] = 1;
        if (!bug)
                __syncwarp();
        x[threadIdx.x] = part[31 - threadIdx.x];
}

static void races_are_caught(void **)
{
        caught(
                [] {
                        RUN(sums<true>, 1, 256, nullptr, 256, device_floats(256), device_floats(1));
                        cudaDeviceSynchronize();
                },
                "data race");
        caught(
                [] {
                        RUN(racing_blocks, 2, 32, nullptr, device_floats(1));
                        cudaDeviceSynchronize();
                },
                "data race");
        caught(
                [] {
                        RUN(racing_lanes<true>, 1, 32, nullptr, device_floats(32));
                        cudaDeviceSynchronize();
                },
                "data race");
        RUN(racing_lanes<false>, 1, 32, nullptr, device_floats(32));
        RUN(sums<false>, 3, 256, nullptr, 256, device_floats(256), device_floats(3));
        cudaDeviceSynchronize();
}
#endif

/* ---- captures ---- */

/* What a test of captures works with: a stream and another one, events, memory of the device, pinned and pageable. */
struct parts {
        cudaStream_t s, other;
        cudaEvent_t e, before; /* before: was recorded outside the capture */
        float *x, *pinned, pageable[64];
};

/* Begins a capture, lets `call` be made, and returns whether a graph comes out. *error: that of the call. */
static bool captures(parts &p, cudaError_t (*call)(parts &p), cudaError_t *error)
{
        cudaGraph_t graph;
        assert_int_equal(cudaStreamBeginCapture(p.s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
        assert_int_equal(RUN(scale, 1, 64, p.s, 64, p.x, 2.0f), cudaSuccess);
        *error = call(p);
        if (*error != cudaSuccess)
                assert_int_equal(RUN(scale, 1, 64, p.s, 64, p.x, 2.0f), cudaErrorStreamCaptureInvalidated);
        const bool whole = cudaStreamEndCapture(p.s, &graph) == cudaSuccess;
        cudaGetLastError();
        if (whole)
                assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
        else
                assert_null(graph);
        return whole;
}

/* CUDA's guide, "Prohibited and Unhandled Operations", and the descriptions of the functions. */
static void what_cannot_be_captured(void **)
{
        typedef cudaError_t call(parts & p);
        static call *const refused[] = {
                [](parts &) {
                        void *m;
                        return cudaMalloc(&m, 64);
                },
                [](parts &p) { return cudaFree(p.x); },
                [](parts &) {
                        void *m;
                        return cudaHostAlloc(&m, 64, 0);
                },
                [](parts &p) { return cudaFreeHost(p.pinned); },
                [](parts &) { return cudaDeviceSynchronize(); },
                [](parts &p) { return cudaStreamSynchronize(p.s); },
                [](parts &p) { return cudaStreamQuery(p.s); },
                [](parts &p) { return cudaMemcpy(p.pinned, p.x, 4, cudaMemcpyDeviceToHost); },
                [](parts &p) { return cudaMemcpyAsync(p.pageable, p.x, 4, cudaMemcpyDeviceToHost, p.s); },
                [](parts &p) { return cudaMemcpyAsync(p.x, p.pageable, 4, cudaMemcpyHostToDevice, p.s); },
                [](parts &p) { return cudaEventRecord(p.e, p.s) == cudaSuccess ? cudaEventQuery(p.e) : cudaSuccess; },
                [](parts &p) {
                        return cudaEventRecord(p.e, p.s) == cudaSuccess ? cudaEventSynchronize(p.e) : cudaSuccess;
                },
                [](parts &p) { return cudaStreamWaitEvent(p.s, p.before, 0); },
                [](parts &p) {
                        return cudaEventRecord(p.e, p.s) == cudaSuccess ? cudaStreamWaitEvent(p.other, p.e, 0)
                                                                        : cudaSuccess;
                },
        };
        static call *const allowed[] = {
                [](parts &p) { return cudaMemsetAsync(p.x, 0, 4, p.s); },
                [](parts &p) { return cudaMemcpyAsync(p.x, p.x + 8, 4, cudaMemcpyDeviceToDevice, p.s); },
                [](parts &p) { return cudaMemcpyAsync(p.pinned, p.x, 4, cudaMemcpyDeviceToHost, p.s); },
                [](parts &p) { return cudaStreamSynchronize(p.other); },
                [](parts &p) { return cudaEventQuery(p.before); },
                [](parts &p) {
                        return cudaEventRecord(p.e, p.s) == cudaSuccess ? cudaStreamWaitEvent(p.s, p.e, 0)
                                                                        : cudaErrorUnknown;
                },
        };
        parts p = {};
        cudaError_t e;
        assert_int_equal(cudaStreamCreateWithFlags(&p.s, cudaStreamNonBlocking), cudaSuccess);
        assert_int_equal(cudaStreamCreateWithFlags(&p.other, cudaStreamNonBlocking), cudaSuccess);
        assert_int_equal(cudaEventCreateWithFlags(&p.e, cudaEventDisableTiming), cudaSuccess);
        assert_int_equal(cudaEventCreateWithFlags(&p.before, cudaEventDisableTiming), cudaSuccess);
        assert_int_equal(cudaMalloc((void **)&p.x, 64 * sizeof(float)), cudaSuccess);
        assert_int_equal(cudaHostAlloc((void **)&p.pinned, 64 * sizeof(float), 0), cudaSuccess);
        assert_int_equal(cudaMemsetAsync(p.x, 0, 64 * sizeof(float), p.s), cudaSuccess);
        assert_int_equal(cudaEventRecord(p.before, p.s), cudaSuccess);
        assert_int_equal(cudaStreamSynchronize(p.s), cudaSuccess);
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
                if (captures(p, refused[i], &e) || e == cudaSuccess)
                        fail_msg("call %zu was captured", i);
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
                if (!captures(p, allowed[i], &e) || e != cudaSuccess)
                        fail_msg("call %zu, which can be captured, gave error %d", i, (int)e);
        assert_int_equal(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal),
                         cudaErrorStreamCaptureUnsupported);
        cudaGetLastError();
        /* another thread may wait and allocate meanwhile, but not end the capture */
        assert_int_equal(cudaStreamBeginCapture(p.s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
        cudaGraph_t graph;
        std::thread([&] {
                void *m = nullptr;
                assert_int_equal(cudaMalloc(&m, 64), cudaSuccess);
                assert_int_equal(cudaFree(m), cudaSuccess);
                assert_int_equal(cudaStreamEndCapture(p.s, &graph), cudaErrorStreamCaptureWrongThread);
                cudaGetLastError();
        }).join();
        assert_int_equal(cudaStreamEndCapture(p.s, &graph), cudaSuccess);
        assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
        cudaFree(p.x);
        cudaFreeHost(p.pinned);
        cudaEventDestroy(p.e);
        cudaEventDestroy(p.before);
        cudaStreamDestroy(p.other);
        cudaStreamDestroy(p.s);
}

/* What is not given back shows in the counts that test_step looks at. */
static void leaks_are_counted(void **)
{
        int64_t handles = cudasim_handles(), bytes = cudasim_bytes();
        cudaStream_t stream;
        cudaEvent_t event;
        void *pinned, *p;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        cudaHostAlloc(&pinned, 10, 0);
        cudaMalloc(&p, 100);
        assert_int_equal(cudasim_handles(), handles + 3);
        assert_int_equal(cudasim_bytes(), bytes + 100);
        cudaStreamDestroy(stream);
        cudaEventDestroy(event);
        cudaFreeHost(pinned);
        cudaFree(p);
        assert_int_equal(cudasim_handles(), handles);
        assert_int_equal(cudasim_bytes(), bytes);
}

/* What only shows in the numbers: a missing barrier, a missing wait, a pinned buffer that is used again too early. */
static void bugs_show_in_the_numbers(void **)
{
        float *x = device_floats(256), *y = device_floats(1), *pinned, one[256], sum;
        for (int i = 0; i < 256; i++)
                one[i] = 1;
        cudaMemcpy(x, one, sizeof one, cudaMemcpyHostToDevice);
        int wrong = 0;
        for (const char *order : {"0", "1", "2"}) {
#if RACES
                wrong = 1;
                break; /* ThreadSanitizer tells it */
#endif
                /* shared memory that nobody wrote is NaN */
                setenv("CUDASIM_ORDER", order, 1);
                cudasim_read_settings();
                RUN(sums<true>, 1, 256, nullptr, 256, x, y);
                cudaMemcpy(&sum, y, 4, cudaMemcpyDeviceToHost);
                wrong += sum != 256.0f;
        }
        assert_true(wrong > 0);
        RUN(sums<false>, 1, 256, nullptr, 256, x, y);
        cudaMemcpy(&sum, y, 4, cudaMemcpyDeviceToHost);
        assert_true(sum == 256.0f);
        cudaHostAlloc((void **)&pinned, 4, 0);
        *pinned = 5;
        cudaMemcpyAsync(y, pinned, 4, cudaMemcpyHostToDevice, nullptr);
        *pinned = 6; /* too early */
        cudaMemcpyAsync(pinned, y, 4, cudaMemcpyDeviceToHost, nullptr);
        *pinned = 7;
        assert_true(*pinned == 7.0f); /* nobody waited */
        cudaDeviceSynchronize();
        assert_true(*pinned == 7.0f); /* the copy read it as late as it may, not when it was 5 */
        cudaFree(x);
        cudaFree(y);
        cudaFreeHost(pinned);
}

int main()
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(copies_and_launches),
                cmocka_unit_test(warps_vote),
                cmocka_unit_test(events_order_streams),
                cmocka_unit_test(failures_on_purpose),
                cmocka_unit_test(the_last_error_stays),
                cmocka_unit_test(streams_belong_to_devices),
                cmocka_unit_test(peers),
                cmocka_unit_test(pageable_memory),
#if RACES
                cmocka_unit_test(races_are_caught),
#endif
                cmocka_unit_test(bugs_are_caught),
                cmocka_unit_test(what_cannot_be_captured),
                cmocka_unit_test(leaks_are_counted),
                cmocka_unit_test(bugs_show_in_the_numbers),
        };
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
