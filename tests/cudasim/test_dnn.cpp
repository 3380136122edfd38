/* test_dnn.cpp - every way to convolve against the plain sums of kernels/conv.h in f64, and what a queue keeps. */
#include <atomic>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>
#include "cudnn_graph.h"
#include "kernel_queue.h"
#include "../../kernels/cuda/dnn.h"

/* A queue whose plans are freed behind it, unless they stay behind. */
struct plans {
        bool stay;
        ~plans()
        {
                if (!stay)
                        lg_cuda_dnn_forget();
        }
};
struct device : plans, kernel_queue {
        explicit device(bool leaves_plans = false) : plans{leaves_plans}
        {
        }
        bool run(const lg_conv_args *a)
        {
                return kernel_queue::run(lg_cuda_conv, a);
        }
};

static double rounded(lg_dtype t, double v)
{
        return t == LG_F64   ? v
               : t == LG_F32 ? (float)v
               : t == LG_F16 ? __half2float(__float2half((float)v))
                             : __bfloat162float(__float2bfloat16((float)v));
}

/* n drawn values as they are in dtype t, and a copy on the device, `off` elements behind an aligned place. */
static std::vector<double> drawn(device *d, lg_dtype t, int64_t n, int off, void **ret)
{
        static uint64_t state = 1;
        std::vector<double> v((size_t)n);
        std::vector<char> bytes((size_t)n * lg_bytes_of(t) + 1);
        for (int64_t i = 0; i < n; i++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                v[(size_t)i] = rounded(t, (double)(state >> 33) / 1073741824.0 - 1);
                if (t == LG_F64)
                        ((double *)bytes.data())[i] = v[(size_t)i];
                else if (t == LG_F32)
                        ((float *)bytes.data())[i] = (float)v[(size_t)i];
                else if (t == LG_F16)
                        ((__half *)bytes.data())[i] = __float2half((float)v[(size_t)i]);
                else
                        ((__nv_bfloat16 *)bytes.data())[i] = __float2bfloat16((float)v[(size_t)i]);
        }
        *ret = d->room(bytes.size() + 64) + off * (int)lg_bytes_of(t);
        assert_true(d->q->api->upload(d->q, *ret, bytes.data(), bytes.size() - 1));
        return v;
}

static std::vector<double> fetched(device *d, lg_dtype t, const void *p, int64_t n)
{
        std::vector<char> bytes((size_t)n * lg_bytes_of(t) + 1);
        std::vector<double> v((size_t)n);
        assert_true(d->q->api->download(d->q, bytes.data(), p, bytes.size() - 1));
        for (int64_t i = 0; i < n; i++)
                v[(size_t)i] = t == LG_F64   ? ((double *)bytes.data())[i]
                               : t == LG_F32 ? ((float *)bytes.data())[i]
                               : t == LG_F16 ? __half2float(((__half *)bytes.data())[i])
                                             : __bfloat162float(((__nv_bfloat16 *)bytes.data())[i]);
        return v;
}

/* ---- a convolution and what it must give ---- */

struct row {
        int64_t n, channels, outputs;
        lg_conv_geometry at; /* out is computed, unless it is given */
};
#define AT(h, w, kh, kw, sh, sw, ph, pw, dh, dw, g)                                                                    \
        {                                                                                                              \
                {h, w}, {kh, kw}, {0, 0}, {sh, sw}, {ph, pw}, {dh, dw}, g                                              \
        }
static const row rows[] = {
        {2, 3, 4, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {3, 4, 6, AT(7, 6, 2, 3, 1, 2, 2, 3, 2, 1, 2)},
        {2, 16, 8, AT(9, 8, 3, 3, 2, 1, 1, 1, 1, 2, 2)},
        {4, 8, 16, AT(12, 12, 5, 5, 1, 1, 2, 2, 1, 1, 1)},
        {1, 6, 6, AT(6, 9, 3, 3, 1, 1, 1, 2, 1, 3, 6)},
        {2, 5, 7, AT(4, 4, 1, 1, 1, 1, 0, 0, 1, 1, 1)},
        {2, 8, 8, AT(5, 5, 1, 1, 1, 1, 0, 0, 1, 1, 4)},
        {2, 16, 7, AT(5, 5, 1, 1, 2, 2, 0, 0, 1, 1, 1)},
        {2, 1, 3, AT(1, 9, 1, 4, 1, 2, 0, 1, 1, 2, 1)},
        {2, 2, 2, AT(9, 9, 2, 2, 4, 4, 0, 0, 1, 1, 1)},
        {1, 2, 2, AT(24, 24, 8, 8, 1, 1, 4, 4, 1, 1, 1)}, /* the windows of an image do not fit */
        {0, 3, 4, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {2, 0, 4, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {2, 2, 3, {{6, 6}, {2, 2}, {1, 2}, {1, 1}, {0, 0}, {3, 3}, 1}},
};

static lg_conv_args args_of(const row &r, int kind, lg_dtype t)
{
        lg_conv_args a = {};
        a.kind = (lg_conv_kind)kind;
        a.dtype = t;
        a.n = r.n;
        a.channels = r.channels;
        a.outputs = r.outputs;
        a.at = r.at;
        for (int i = 0; i < 2 && !r.at.out[1]; i++)
                a.at.out[i] = (r.at.in[i] + 2 * r.at.padding[i] - r.at.dilation[i] * (r.at.kernel[i] - 1) - 1) /
                                      r.at.stride[i] +
                              1;
        return a;
}

/* The numbers of elements of x, w, y. */
struct sizes {
        int64_t x, w, y;
};
static sizes sizes_of(const lg_conv_args &a)
{
        return {a.n * a.at.in[0] * a.at.in[1] * a.channels,
                a.outputs * (a.channels / a.at.groups) * a.at.kernel[0] * a.at.kernel[1],
                a.n * a.at.out[0] * a.at.out[1] * a.outputs};
}

/* Adds to one of x, w, y the products of the other two. */
static void add_up(const lg_conv_args &a, std::vector<double> &x, std::vector<double> &w, std::vector<double> &y)
{
        const lg_conv_geometry &g = a.at;
        const int64_t in = a.channels / g.groups;
        for (int64_t p = 0; p < a.n * g.out[0] * g.out[1] * a.outputs; p++)
                for (int64_t e = 0; e < g.kernel[0] * g.kernel[1] * in; e++) {
                        int64_t o = p % a.outputs, j = p / a.outputs % g.out[1], n = p / a.outputs / g.out[1];
                        int64_t c = e % in, l = e / in % g.kernel[1], k = e / in / g.kernel[1], i = n % g.out[0];
                        int64_t h = i * g.stride[0] - g.padding[0] + k * g.dilation[0];
                        int64_t v = j * g.stride[1] - g.padding[1] + l * g.dilation[1];
                        if (h < 0 || v < 0 || h >= g.in[0] || v >= g.in[1])
                                continue;
                        size_t at_w = (size_t)(((o * in + c) * g.kernel[0] + k) * g.kernel[1] + l);
                        size_t at_x = (size_t)(((n / g.out[0] * g.in[0] + h) * g.in[1] + v) * a.channels +
                                               o / (a.outputs / g.groups) * in + c);
                        if (a.kind == LG_CONV_FORWARD)
                                y[(size_t)p] += x[at_x] * w[at_w];
                        else if (a.kind == LG_CONV_INPUT_GRAD)
                                x[at_x] += y[(size_t)p] * w[at_w];
                        else
                                w[at_w] += x[at_x] * y[(size_t)p];
                }
}

/* The parts of an end; BROKEN: a NaN in what is added. */
enum { RELU = 1, SCALE = 2, Z = 4, BROKEN = 8 };

/* Draws what an end has, and makes it of `want`; returns the greatest value before the ReLU. */
static double draw_end(device *d, lg_conv_args *a, std::vector<double> &want, int end, int off)
{
        const lg_dtype wide = a->dtype == LG_F64 ? LG_F64 : LG_F32;
        const uint64_t nan = UINT64_MAX; /* its first bytes in every dtype */
        void *scale, *shift, *z;
        const std::vector<double> vscale = drawn(d, wide, a->outputs, off, &scale);
        const std::vector<double> vshift = drawn(d, wide, a->outputs, off, &shift);
        std::vector<double> vz = drawn(d, a->dtype, (int64_t)want.size(), off, &z);
        if (end & BROKEN && !vz.empty()) {
                vz[0] = NAN;
                assert_true(d->q->api->upload(d->q, z, &nan, lg_bytes_of(a->dtype)));
        }
        a->scale = end & SCALE ? scale : nullptr;
        a->shift = end & SCALE ? shift : nullptr;
        a->z = end & Z ? z : nullptr;
        a->relu = end & RELU;
        double most = 1;
        for (size_t i = 0; i < want.size(); i++) {
                const size_t o = i % (size_t)a->outputs;
                most = fmax(most, fabs(want[i]));
                want[i] = (end & SCALE ? want[i] * vscale[o] + vshift[o] : want[i]) + (end & Z ? vz[i] : 0);
                most = fmax(most, fabs(want[i]));
                want[i] = end & RELU && want[i] <= 0 ? 0 : want[i];
        }
        return most;
}

/* Draws operands, runs, compares; returns the greatest error in units of the greatest value. */
static double error_of(device *d, lg_conv_args a, bool bias, int off, int end = 0)
{
        const sizes s = sizes_of(a);
        void *x, *w, *y, *b;
        std::vector<double> vx = drawn(d, a.dtype, s.x, off, &x), vw = drawn(d, a.dtype, s.w, off, &w),
                            vy = drawn(d, a.dtype, s.y, off, &y), vb = drawn(d, a.dtype, a.outputs, off, &b);
        a.x = x;
        a.w = w;
        a.g = y;
        a.b = bias ? b : nullptr;
        a.out = a.kind == LG_CONV_FORWARD ? y : a.kind == LG_CONV_INPUT_GRAD ? x : w;
        std::vector<double> &want = a.kind == LG_CONV_FORWARD ? vy : a.kind == LG_CONV_INPUT_GRAD ? vx : vw;
        for (size_t i = 0; i < want.size(); i++)
                want[i] = bias ? vb[i % (size_t)a.outputs] : 0;
        add_up(a, vx, vw, vy);
        double most = end ? draw_end(d, &a, want, end, off) : 1, error = 0;
        if (!d->run(&a))
                fail_msg("conv: %s", d->q->message);
        const std::vector<double> got = fetched(d, a.dtype, a.out, (int64_t)want.size());
        for (size_t i = 0; i < want.size(); i++) {
                most = fmax(most, fabs(want[i]));
                if (std::isnan(want[i]) != std::isnan(got[i]))
                        error = INFINITY;
                else
                        error = fmax(error, fabs(got[i] - want[i]));
        }
        d->release(&d->memory);
        return error / most;
}

/* ---- tests ---- */

static bool by_dnn(void)
{
        const char *refuse = getenv("CUDASIM_CUDNN_REFUSE");
        return lg_dnn_find()->there && !(refuse && *refuse == '1');
}

static void sums(void **)
{
        const double tolerance[] = {0, 2e-6, 4e-15, 6e-4, 5e-3}; /* for 16 bits: a rounding of the result */
        for (int t = LG_F32; t <= LG_BF16; t++) {
                device d;
                for (const row &r : rows)
                        for (int kind = 0; kind < 3; kind++)
                                for (int way = 0; way < 3; way++) {
                                        lg_conv_args a = args_of(r, kind, (lg_dtype)t);
                                        const bool bias = kind == LG_CONV_FORWARD && way % 2;
                                        double e = error_of(&d, a, bias, way / 2);
                                        /* a bias that is added later is rounded twice */
                                        if (!(e <= tolerance[t] * (bias ? 2 : 1)))
                                                fail_msg("row %d kind %d dtype %d way %d: error %g", (int)(&r - rows),
                                                         kind, t, way, e);
                                }
                lg_dnn_counts c = lg_cuda_dnn_counts(d.q);
                assert_int_equal(c.plans > 0, by_dnn());
                if (t == LG_F32) /* where a bias is never a part of the graph */
                        assert_int_equal(c.refusals > 0, lg_dnn_find()->there);
        }
}

/* The sum of 16 bits is rounded before its end. */
static void ends(void **)
{
        const double tolerance[] = {0, 2e-6, 4e-15, 2e-3, 1.5e-2};
        for (int t = LG_F32; t <= LG_BF16; t++) {
                device d;
                for (const row &r : rows)
                        for (int end = 1; end < 2 * BROKEN; end++) {
                                if (end & BROKEN && !(end & Z))
                                        continue;
                                const lg_conv_args a = args_of(r, LG_CONV_FORWARD, (lg_dtype)t);
                                const double e = error_of(&d, a, end % 3 == 0, end / 2 % 2, end);
                                if (!(e <= tolerance[t]))
                                        fail_msg("row %d end %d dtype %d: error %g", (int)(&r - rows), end, t, e);
                        }
        }
}

static void tf32_and_repetition(void **)
{
        device d;
        const lg_conv_args a = args_of(rows[3], LG_CONV_FORWARD, LG_F32);
        assert_true(error_of(&d, a, true, 0) < 1e-6);
        d.q->conv_tf32 = true;
        if (by_dnn())
                assert_true(error_of(&d, a, true, 0) > 1e-5);
        d.q->conv_tf32 = false;
        d.q->deterministic = true;
        const sizes s = sizes_of(a);
        void *x, *g, *w;
        drawn(&d, LG_F32, s.x, 0, &x);
        drawn(&d, LG_F32, s.y, 0, &g);
        drawn(&d, LG_F32, s.w, 0, &w);
        lg_conv_args dw = args_of(rows[3], LG_CONV_WEIGHT_GRAD, LG_F32);
        dw.x = x;
        dw.g = g;
        dw.out = w;
        assert_true(d.run(&dw));
        const std::vector<double> once = fetched(&d, LG_F32, w, s.w);
        assert_true(d.run(&dw));
        assert_true(once == fetched(&d, LG_F32, w, s.w));
}

/* Of a plan for a weight gradient, by which the simulator says its engine. */
static int64_t workspace_for(device *d, lg_dtype t, bool deterministic, int alignment)
{
        const lg_conv_args a = args_of(rows[3], LG_CONV_WEIGHT_GRAD, t);
        cudnnHandle_t handle;
        assert_int_equal(lg_dnn_find()->open(&handle), CUDNN_STATUS_SUCCESS);
        int64_t workspace = -1;
        {
                lg_dnn_plan p;
                p.key = {a.n, a.channels, a.outputs, a.at, a.kind, t, false, deterministic, false, alignment, {}};
                if (lg_dnn_build(d->q, handle, &p) == LG_DNN_DONE)
                        workspace = p.workspace;
        }
        lg_dnn_find()->close(handle);
        return workspace;
}

/* An engine that compiles its kernels comes after those of its heuristic that have them, though it is said to be
 * faster; and before the next heuristic's. */
static void ready_engines_first(void **)
{
        using namespace cudasim::dnn;
        device d;
        if (!by_dnn())
                return;
        assert_int_equal(workspace_for(&d, LG_F32, false, 16), workspace_of(UNSTEADY));
        assert_int_equal(workspace_for(&d, LG_F16, false, 16), workspace_of(TENSOR));
        assert_int_equal(workspace_for(&d, LG_F32, true, 16), workspace_of(COMPILED));
        assert_int_equal(workspace_for(&d, LG_F32, true, 4), workspace_of(PLAIN));
}

static void plans_are_kept(void **)
{
        const int64_t handles = cudasim_handles();
        {
                device d;
                row r = {1, 2, 2, AT(3, 3, 2, 2, 1, 1, 0, 0, 1, 1, 1)};
                const lg_conv_args a = args_of(r, LG_CONV_FORWARD, LG_F64);
                error_of(&d, a, false, 0);
                lg_dnn_counts c = lg_cuda_dnn_counts(d.q);
                assert_int_equal(c.misses, lg_dnn_find()->there);
                error_of(&d, a, false, 0);
                assert_int_equal(lg_cuda_dnn_counts(d.q).misses, c.misses);
                assert_int_equal(lg_cuda_dnn_counts(d.q).hits, c.misses);
                for (r.n = 2; r.n < 300; r.n++)
                        error_of(&d, args_of(r, LG_CONV_FORWARD, LG_F64), false, 0);
                c = lg_cuda_dnn_counts(d.q);
                assert_int_equal(c.plans + c.refusals, lg_dnn_find()->there ? 256 : 0);
                error_of(&d, a, false, 0); /* the oldest made room */
                assert_int_equal(lg_cuda_dnn_counts(d.q).misses, c.misses + lg_dnn_find()->there);
        }
        assert_int_equal(cudasim_handles(), handles);
}

static lg_dnn_counts counts_after(device *d, const lg_conv_args &a)
{
        assert_true(error_of(d, a, false, 0) < 1e-6);
        return lg_cuda_dnn_counts(d->q);
}

/* Queues of a device have one table, also if they are not open at the same time; another device has its own. */
static void queues_share_plans(void **)
{
        const int64_t handles = cudasim_handles(), there = lg_dnn_find()->there;
        const lg_conv_args a = args_of(rows[0], LG_CONV_FORWARD, LG_F32);
        const lg_conv_args b = args_of(rows[1], LG_CONV_FORWARD, LG_F32);
        {
                device first(true);
                assert_int_equal(counts_after(&first, a).misses, there);
                {
                        device second(true);
                        assert_int_equal(counts_after(&second, a).misses, there);
                        assert_int_equal(counts_after(&second, b).misses, 2 * there);
                        lg_cuda_dnn_forget(); /* both are in use */
                }
                assert_int_equal(counts_after(&first, b).misses, 2 * there);
        }
        {
                device third;
                assert_int_equal(counts_after(&third, a).misses, 2 * there);
                assert_int_equal(lg_cuda_dnn_counts(third.q).hits, 3 * there);
        }
        assert_int_equal(cudasim_handles(), handles);
}

/* Threads, each with a queue, plan and convolve the same at the same time: 1 to 40 images. */
static void threads_share_plans(void **)
{
        const int64_t there = lg_dnn_find()->there;
        device keeper;
        (void)counts_after(&keeper, args_of(rows[5], LG_CONV_FORWARD, LG_F64));
        std::vector<std::thread> threads;
        std::atomic<int> ready{0}, right{0};
        for (int k = 0; k < 4; k++)
                threads.emplace_back([&ready, &right] {
                        device d(true);
                        lg_conv_args a = args_of(rows[0], LG_CONV_FORWARD, LG_F32);
                        a.n = 40;
                        const sizes s = sizes_of(a);
                        const std::vector<float> ones((size_t)(s.x + s.w), 1);
                        lg_conv_args run = a;
                        char *x = d.room((size_t)s.x * 4), *w = d.room((size_t)s.w * 4), *y = d.room((size_t)s.y * 4);
                        bool good = d.q->api->upload(d.q, x, ones.data(), (size_t)s.x * 4) &&
                                    d.q->api->upload(d.q, w, ones.data(), (size_t)s.w * 4);
                        run.x = x;
                        run.w = w;
                        run.out = y;
                        for (ready++; ready < 4;)
                                std::this_thread::yield();
                        for (run.n = 1; run.n <= 40; run.n++)
                                good = good && d.run(&run);
                        float middle = 0;
                        const int64_t at = (2 * a.at.out[1] + 2) * a.outputs;
                        good = good && d.q->api->download(d.q, &middle, y + at * 4, 4);
                        right += good && middle == 27; /* 3 x 3 windows of 3 channels */
                });
        for (std::thread &t : threads)
                t.join();
        assert_int_equal(right, 4);
        const lg_dnn_counts c = lg_cuda_dnn_counts(keeper.q);
        assert_int_equal(c.misses, 41 * there);
        assert_int_equal(c.hits, 3 * 40 * there);
}

/* An engine that fails when it runs is replaced by the next, in the end by own kernels; and not tried again. */
static void failing_engines(void **)
{
        using namespace cudasim::dnn;
        if (!by_dnn())
                return;
        const lg_conv_args a = args_of(rows[3], LG_CONV_WEIGHT_GRAD, LG_F32);
        const struct {
                int broken, failures, plans;
        } cases[] = {{1 << UNSTEADY, 1, 1},
                     {1 << UNSTEADY | 1 << COMPILED, 2, 1},
                     {1 << UNSTEADY | 1 << COMPILED | 1 << PLAIN, 3, 0}};
        const int64_t handles = cudasim_handles();
        for (const auto &k : cases) {
                device d;
                setenv("CUDASIM_CUDNN_FAIL", std::to_string(k.broken).c_str(), 1);
                const lg_dnn_counts once = counts_after(&d, a), twice = counts_after(&d, a);
                unsetenv("CUDASIM_CUDNN_FAIL");
                assert_int_equal(once.failures, k.failures);
                assert_int_equal(once.plans, k.plans);
                assert_int_equal(twice.failures, once.failures);
                assert_int_equal(twice.misses, 1);
        }
        assert_int_equal(cudasim_handles(), handles);
}

/* Where memory is short, an engine that fails is not to blame. */
static void failing_for_memory(void **)
{
        using namespace cudasim::dnn;
        if (!by_dnn())
                return;
        device d;
        lg_conv_args a = args_of(rows[3], LG_CONV_WEIGHT_GRAD, LG_F32);
        const sizes s = sizes_of(a);
        void *x, *g, *w;
        drawn(&d, LG_F32, s.x, 0, &x);
        drawn(&d, LG_F32, s.y, 0, &g);
        drawn(&d, LG_F32, s.w, 0, &w);
        a.x = x;
        a.g = g;
        a.out = w;
        setenv("CUDASIM_CUDNN_FAIL", "255", 1);
        setenv("CUDASIM_FREE", "1000000", 1);
        assert_false(d.run(&a));
        unsetenv("CUDASIM_FREE");
        unsetenv("CUDASIM_CUDNN_FAIL");
        assert_string_equal(d.q->message,
                            "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED; cudnnBackendExecute fails on purpose");
        d.q->status = LG_OK;
        assert_int_equal(counts_after(&d, args_of(rows[3], LG_CONV_WEIGHT_GRAD, LG_F32)).failures, 0);
}

/* Each call in turn fails: it is told, or another engine convolved; nothing leaks, and the next convolution is right.
 * Then all calls fail from one on. */
static void failures(void **)
{
        const int64_t handles = cudasim_handles();
        for (int all = 0; all < 6; all++)
                for (int n = 1;; n++) {
                        device d;
                        lg_conv_args a = args_of(rows[0], LG_CONV_FORWARD, LG_F32);
                        const sizes s = sizes_of(a);
                        void *x, *w, *b, *y;
                        drawn(&d, LG_F32, s.x, 0, &x);
                        drawn(&d, LG_F32, s.w, 0, &w);
                        drawn(&d, LG_F32, a.outputs, 0, &b);
                        drawn(&d, LG_F32, s.y, 0, &y);
                        a.x = x;
                        a.w = w;
                        a.b = b;
                        a.out = y;
                        const int way = all / 2, from = all % 2;
                        int64_t calls = cudasim_calls(way);
                        cudasim_fail_at(n, from, way);
                        bool good = lg_cuda_conv(d.q, &a);
                        calls = cudasim_calls(way) - calls;
                        const char *call = cudasim_failed();
                        const bool library = strncmp(call, "cudnn", 5) == 0;
                        const bool engine =
                                !strcmp(call, "cudnnBackendFinalize") || !strcmp(call, "cudnnBackendExecute");
                        cudasim_fail_at(0, false, way);
                        d.release(&d.scratch);
                        if (calls < n) {
                                assert_true(good);
                                break;
                        }
                        assert_true(!good || (engine && !from));
                        assert_true(good || d.q->status == LG_NO_MEMORY || (d.q->status == LG_BROKEN && way != 1));
                        assert_int_equal(good, d.q->message[0] == '\0');
                        assert_true(good || !library || strstr(d.q->message, " fails on purpose"));
                        d.q->message[0] = '\0';
                        d.q->status = LG_OK;
                        assert_true(error_of(&d, args_of(rows[0], LG_CONV_FORWARD, LG_F32), true, 0) < 1e-6);
                }
        assert_int_equal(cudasim_handles(), handles);
}

static void words(void **)
{
        const bool there = lg_dnn_find()->there;
        assert_int_equal(lg_cuda_dnn_reason()[0] == '\0', there);
        assert_int_equal(lg_cuda_dnn_version() >= 90000, there);
}

int main()
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(words),
                cmocka_unit_test(ends),
                cmocka_unit_test(sums),
                cmocka_unit_test(tf32_and_repetition),
                cmocka_unit_test(failures),
                cmocka_unit_test(plans_are_kept),
                cmocka_unit_test(queues_share_plans),
                cmocka_unit_test(threads_share_plans),
                cmocka_unit_test(failing_engines),
                cmocka_unit_test(failing_for_memory),
                cmocka_unit_test(ready_engines_first),
        };
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
