/* test_nccl.cpp - work of streams that is not done at once, the simulated NCCL between the devices of one process, and
 * deliberate bugs, each of which must be caught. */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>
extern "C" {
#include <cmocka.h>
}
#include "sim.h"

static void nap(void)
{
        const struct timespec t = {0, 2000000};
        nanosleep(&t, nullptr);
}

/* ---- streams ---- */

static void work_may_take_time(void **)
{
        cudaStream_t first, second;
        cudaEvent_t behind;
        std::atomic<bool> may{false};
        std::atomic<int> ran{0};
        cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&behind, cudaEventDisableTiming);
        cudasim::enqueue_step(first, [&] { return may.load(); });
        cudasim::enqueue(first, [&] { ran++; });
        cudaEventRecord(behind, first);
        cudaStreamWaitEvent(second, behind, 0);
        cudasim::enqueue(second, [&] { ran += 10; });
        for (int i = 0; i < 3; i++)
                assert_int_equal(cudaEventQuery(behind), cudaErrorNotReady);
        assert_int_equal(cudaGetLastError(), cudaErrorNotReady);
        assert_int_equal(ran, 0);
        std::thread other([&] {
                nap();
                may = true;
        });
        assert_int_equal(cudaStreamSynchronize(second), cudaSuccess); /* through the event */
        assert_int_equal(ran, 11);
        assert_int_equal(cudaEventQuery(behind), cudaSuccess);
        other.join();
        cudaEventDestroy(behind);
        cudaStreamDestroy(first);
        cudaStreamDestroy(second);
}

/* Who waits lets others in. */
static void two_threads_wait_for_each_other(void **)
{
        cudaStream_t streams[2];
        std::atomic<int> here{0};
        for (cudaStream_t &s : streams) {
                cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
                std::atomic<bool> *begun = new std::atomic<bool>(false);
                cudasim::enqueue_step(s, [&here, begun] {
                        here += !begun->exchange(true);
                        if (here < 2)
                                return false;
                        delete begun;
                        return true;
                });
        }
        std::thread other([&] { cudaStreamSynchronize(streams[1]); });
        cudaStreamSynchronize(streams[0]);
        other.join();
        for (cudaStream_t s : streams)
                cudaStreamDestroy(s);
}

/* ---- ranks on the devices of this process ---- */

constexpr int ranks = 2;
static struct rank {
        ncclComm_t comm;
        cudaStream_t stream;
        float *x, *y;
} all[ranks];

static ncclResult_t state_of(ncclComm_t c)
{
        ncclResult_t s = ncclInProgress;
        assert_int_equal(ncclCommGetAsyncError(c, &s), ncclSuccess);
        return s;
}

static void finish(ncclComm_t c)
{
        while (state_of(c) == ncclInProgress)
                nap();
}

constexpr int elements = 40000; /* several pieces */

static void begin(void)
{
        ncclUniqueId id;
        assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
        for (int r = 0; r < ranks; r++) {
                ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
                config.blocking = 0;
                cudaSetDevice(r);
                float host[elements];
                for (int i = 0; i < elements; i++)
                        host[i] = (float)(i % 7 + r);
                cudaMalloc((void **)&all[r].x, sizeof host);
                cudaMalloc((void **)&all[r].y, ranks * sizeof host);
                cudaStreamCreateWithFlags(&all[r].stream, cudaStreamNonBlocking);
                cudaMemcpyAsync(all[r].x, host, sizeof host, cudaMemcpyHostToDevice, all[r].stream);
                assert_int_equal(ncclCommInitRankConfig(&all[r].comm, ranks, id, r, &config), ncclInProgress);
                assert_int_equal(state_of(all[r].comm), r + 1 < ranks ? ncclInProgress : ncclSuccess);
        }
        for (rank &r : all)
                finish(r.comm);
}

static void end(bool aborted)
{
        for (int i = 0; i < ranks; i++) {
                rank &r = all[i];
                cudaSetDevice(i);
                if (aborted) {
                        ncclCommAbort(r.comm);
                } else {
                        assert_int_equal(ncclCommFinalize(r.comm), ncclInProgress);
                        finish(r.comm);
                        ncclCommDestroy(r.comm);
                }
                cudaStreamDestroy(r.stream);
                cudaFree(r.x);
                cudaFree(r.y);
        }
        cudaSetDevice(0);
}

/* Each rank calls it on its device. */
template <typename F> static void each(F f)
{
        for (int r = 0; r < ranks; r++) {
                cudaSetDevice(r);
                const ncclResult_t s = f(r, all[r]);
                assert_true(s == ncclSuccess || s == ncclInProgress);
                finish(all[r].comm);
        }
        cudaSetDevice(0);
}

static float result(int r, int64_t i)
{
        float host;
        cudaStreamSynchronize(all[r].stream);
        cudaMemcpy(&host, all[r].y + i, sizeof host, cudaMemcpyDeviceToHost);
        return host;
}

static void operations(void **)
{
        const int n = elements;
        begin();
        each([](int, rank &r) { return ncclAllReduce(r.x, r.y, n, ncclFloat32, ncclSum, r.comm, r.stream); });
        for (int r = 0; r < ranks; r++)
                assert_true(result(r, 3) == 7 && result(r, n - 1) == 2 * ((n - 1) % 7) + 1);
        each([](int, rank &r) { return ncclAllReduce(r.x, r.y, n, ncclFloat32, ncclAvg, r.comm, r.stream); });
        assert_true(result(0, 3) == 3.5f && result(1, 3) == 3.5f);
        each([](int, rank &r) { return ncclAllReduce(r.x, r.y, n, ncclFloat32, ncclMax, r.comm, r.stream); });
        assert_true(result(0, 3) == 4);
        each([](int, rank &r) { return ncclBroadcast(r.x, r.y, n, ncclFloat32, 1, r.comm, r.stream); });
        assert_true(result(0, n - 1) == (n - 1) % 7 + 1);
        each([](int, rank &r) { return ncclAllGather(r.x, r.y, n, ncclFloat32, r.comm, r.stream); });
        assert_true(result(0, 5) == 5 && result(0, n + 5) == 6 && result(1, 2 * n - 1) == (n - 1) % 7 + 1);
        each([](int, rank &r) { return ncclReduceScatter(r.x, r.y, n / 2, ncclFloat32, ncclSum, r.comm, r.stream); });
        assert_true(result(1, 1) == 2 * ((n / 2 + 1) % 7) + 1);
        each([](int i, rank &r) {
                return i ? ncclRecv(r.y, n, ncclFloat32, 0, r.comm, r.stream)
                         : ncclSend(r.x, n, ncclFloat32, 1, r.comm, r.stream);
        });
        assert_true(result(1, n - 1) == (n - 1) % 7);
        end(false);
        assert_int_equal(cudasim_bytes(), 0);
        assert_int_equal(cudasim_handles(), 0);
}

/* An operation runs by itself, though the host waits for something else; one whose others do not come ends by abort. */
static void abort_ends_operations(void **)
{
        begin();
        each([](int, rank &r) { return ncclAllReduce(r.x, r.y, 8, ncclFloat32, ncclSum, r.comm, r.stream); });
        cudaEvent_t e;
        cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
        ncclAllReduce(all[0].x, all[0].y, 8, ncclFloat32, ncclSum, all[0].comm, all[0].stream);
        cudaEventRecord(e, all[0].stream);
        for (int i = 0; i < 5; i++, nap())
                assert_int_equal(cudaEventQuery(e), cudaErrorNotReady);
        cudaGetLastError();
        end(true);
        assert_int_equal(cudaEventQuery(e), cudaSuccess);
        cudaEventDestroy(e);
        assert_int_equal(cudasim_handles(), 0);
}

static void two_on_a_device_are_refused(void **)
{
        ncclUniqueId id;
        ncclComm_t comms[ranks];
        ncclGetUniqueId(&id);
        for (int r = 0; r < ranks; r++) {
                ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
                config.blocking = 0;
                assert_int_equal(ncclCommInitRankConfig(&comms[r], ranks, id, r, &config), ncclInProgress);
        }
        for (ncclComm_t c : comms)
                assert_int_equal(state_of(c), ncclInvalidUsage);
        for (ncclComm_t c : comms)
                ncclCommAbort(c);
}

/* ---- deliberate bugs ---- */

static void caught(void (*bug)(), const char *words)
{
        int pipe_[2], status = 0;
        std::string said;
        char buffer[4096];
        assert_int_equal(pipe(pipe_), 0);
        const pid_t child = fork();
        if (child == 0) {
                dup2(pipe_[1], 2);
                signal(SIGABRT, SIG_DFL);
                bug();
                exit(0);
        }
        close(pipe_[1]);
        for (ssize_t n; (n = read(pipe_[0], buffer, sizeof buffer)) > 0;)
                said.append(buffer, (size_t)n);
        close(pipe_[0]);
        waitpid(child, &status, 0);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || said.find(words) == std::string::npos)
                fail_msg("ended with %d and said \"%s\", not \"%s\"", status, said.c_str(), words);
}

static void bugs_are_caught(void **)
{
        caught(
                [] {
                        begin();
                        each([](int i, rank &r) {
                                return ncclAllReduce(r.x, r.y, (size_t)(8 + i), ncclFloat32, ncclSum, r.comm, r.stream);
                        });
                        cudaStreamSynchronize(all[0].stream);
                },
                "of 9 elements of type 7, reduction 0, root 0 on rank 1");
        caught(
                [] {
                        begin();
                        each([](int i, rank &r) {
                                return i ? ncclRecv(r.y, 9, ncclFloat32, 0, r.comm, r.stream)
                                         : ncclSend(r.x, 8, ncclFloat32, 1, r.comm, r.stream);
                        });
                        cudaStreamSynchronize(all[1].stream);
                },
                "what rank 1 receives as");
        caught(
                [] {
                        begin();
                        float host;
                        ncclAllReduce(&host, all[0].y, 1, ncclFloat32, ncclSum, all[0].comm, all[0].stream);
                },
                "is not device memory");
        caught(
                [] {
                        begin();
                        ncclAllReduce(all[0].x, all[0].y, elements + 1, ncclFloat32, ncclSum, all[0].comm,
                                      all[0].stream);
                },
                "reach beyond their allocation");
        caught(
                [] {
                        begin();
                        ncclBroadcast(all[0].x, all[0].y, 8, ncclFloat32, 0, all[0].comm, all[0].stream);
                        ncclBroadcast(all[0].x, all[0].y, 8, ncclFloat32, 0, all[0].comm, all[0].stream);
                },
                "while another one is in progress");
        caught(
                [] {
                        begin();
                        each([](int, rank &r) {
                                return ncclAllReduce(r.x, r.y, 8, ncclFloat32, ncclSum, r.comm, all[0].stream);
                        });
                },
                "on a stream of another device");
        caught([] { begin(); }, "2 communicators were neither destroyed nor aborted");
        caught(
                [] {
                        ncclGroupStart();
                        begin();
                        end(false);
                },
                "1 groups were not ended");
        caught([] { ncclGroupEnd(); }, "ncclGroupEnd without ncclGroupStart");
}

int main()
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(work_may_take_time),
                cmocka_unit_test(two_threads_wait_for_each_other),
                cmocka_unit_test(bugs_are_caught), /* processes are forked before there are threads */
                cmocka_unit_test(operations),
                cmocka_unit_test(abort_ends_operations),
                cmocka_unit_test(two_on_a_device_are_refused),
        };
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
