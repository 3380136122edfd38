/* test_kernels_structural.c - CPU copy, fill, arange, random, reduce and gemm against plain loops in f64. */
#include "kernels.h"

TEST_CASE(test_copy)
{
        for (lg_dtype from = LG_F32; from < LG_DTYPE_COUNT; from++) {
                for (lg_dtype to = LG_F32; to < LG_DTYPE_COUNT; to++) {
                        for (int which = 0; which < SHAPES; which++) {
                                lg_copy_args a = {.out_dtype = to, .in_dtype = from};
                                a.ndim = make_shape(which, a.shape);
                                bool positive = to == LG_U8;
                                operand in = make_operand(from, a.ndim, a.shape, 1, true, positive ? 0 : -9, 9);
                                operand out = make_operand(to, a.ndim, a.shape, which % 2, false, 0, 1);
                                memcpy(a.in_strides, in.strides, sizeof in.strides);
                                memcpy(a.out_strides, out.strides, sizeof out.strides);
                                a.in = operand_at(&in);
                                a.out = operand_at(&out);
                                int64_t n = count_of(a.ndim, a.shape);
                                EVERY(out.memory, out.bytes, CALL(k->copy, &q, &a), {
                                        for (int64_t i = 0; i < n; i++) {
                                                double one[1], v = operand_get(&in, a.ndim, a.shape, i);
                                                put(to, one, 0, v);
                                                assert_true(operand_get(&out, a.ndim, a.shape, i) == get(to, one, 0));
                                        }
                                });
                                free(in.memory);
                                free(out.memory);
                        }
                }
        }
}

/* More than the caches are expected to keep, which is stored in another way; at `start` no line of `out` begins. */
static void check_large_transposition(int start)
{
        enum { SIDE = 2944 };
        const size_t bytes = (size_t)SIDE * SIDE * sizeof(uint32_t);
        uint32_t *in = malloc(bytes), *want = malloc(bytes), *memory = aligned_alloc(64, bytes + 64),
                 *out = memory + start;
        assert_true(in && want && memory);
        for (int64_t r = 0; r < SIDE; r++)
                for (int64_t c = 0; c < SIDE; c++)
                        in[r * SIDE + c] = want[c * SIDE + r] = (uint32_t)(r * SIDE + c) * 2654435761u;
        lg_copy_args a = {.ndim = 2,
                          .out_dtype = LG_F32,
                          .in_dtype = LG_F32,
                          .in = in,
                          .out = out,
                          .shape = {SIDE, SIDE},
                          .out_strides = {SIDE, 1},
                          .in_strides = {1, SIDE}};
        EVERY(out, bytes, CALL(k->copy, &q, &a), assert_memory_equal(out, want, bytes));
        free(in);
        free(want);
        free(memory);
}

TEST_CASE(test_copy_large_transposed)
{
        check_large_transposition(0);
        check_large_transposition(1);
}

TEST_CASE(test_copy_transposed_and_saturating)
{
        static const lg_dtype types[] = {LG_F64, LG_F32, LG_F16, LG_U8};
        for (int i = 0; i < 8; i++) {
                const int t = i / 2;
                int64_t rows = 101 + i % 2, shape[3] = {3, rows, 77}, n = 3 * rows * 77;
                void *in = make_array(types[t], n, 0, 99), *out = make_array(types[t], n, 0, 1);
                lg_copy_args a = {.ndim = 3,
                                  .out_dtype = types[t],
                                  .in_dtype = types[t],
                                  .in = in,
                                  .out = out,
                                  .shape = {3, rows, 77},
                                  .out_strides = {rows * 77, 77, 1},
                                  .in_strides = {rows * 77, 1, rows}};
                EVERY(out, (size_t)n * size_of[types[t]], CALL(k->copy, &q, &a), {
                        for (int64_t i = 0; i < n; i++)
                                assert_true(get(types[t], out, i) ==
                                            get(types[t], in, offset_of(3, shape, a.in_strides, i)));
                });
                free(in);
                free(out);
        }
        const double special[] = {NAN, INFINITY, -INFINITY, 1e30, -1e30, 300, -7.9, 255.9, 3e9, -3e9};
        const int64_t as_i64[] = {0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 300, -7, 255, 3000000000, -3000000000};
        const int32_t as_i32[] = {0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 300, -7, 255, INT32_MAX, INT32_MIN};
        const uint8_t as_u8[] = {0, 255, 0, 255, 0, 255, 0, 255, 255, 0};
        int64_t r64[10];
        int32_t r32[10];
        uint8_t r8[10];
        lg_copy_args a = {
                .ndim = 1, .shape = {10}, .in_dtype = LG_F64, .in = special, .out_strides = {1}, .in_strides = {1}};
        a.out = r64, a.out_dtype = LG_I64;
        EVERY(r64, sizeof r64, CALL(k->copy, &q, &a), assert_memory_equal(r64, as_i64, sizeof r64));
        a.out = r32, a.out_dtype = LG_I32;
        EVERY(r32, sizeof r32, CALL(k->copy, &q, &a), assert_memory_equal(r32, as_i32, sizeof r32));
        a.out = r8, a.out_dtype = LG_U8;
        EVERY(r8, sizeof r8, CALL(k->copy, &q, &a), assert_memory_equal(r8, as_u8, sizeof r8));
}

/* Copies n doubles to a half type and compares all bits. */
static void check_narrowed(lg_dtype from, lg_dtype to, const void *in, const uint16_t *want, int64_t n)
{
        uint16_t *out = malloc((size_t)n * sizeof *out);
        lg_copy_args a = {.ndim = 1, .out_dtype = to, .in_dtype = from, .out = out, .in = in};
        a.shape[0] = n;
        a.out_strides[0] = a.in_strides[0] = 1;
        EVERY(out, (size_t)n * sizeof *out, CALL(k->copy, &q, &a), {
                for (int64_t i = 0; i < n; i++)
                        if (out[i] != want[i])
                                fail_msg("%s, value %lld: 0x%04x is not 0x%04x", isas[isa_], (long long)i, out[i],
                                         want[i]);
        });
        free(out);
}

/* Every finite half number, and the middle to the next one with its two neighbours among the doubles: f32 in between
 * would make a tie of all three. */
TEST_CASE(test_doubles_are_rounded_once)
{
        for (int t = 0; t < 2; t++) {
                const int count = t ? 0x7F80 : 0x7C00;
                double *in = malloc((size_t)count * 8 * sizeof *in);
                uint16_t *want = malloc((size_t)count * 8 * sizeof *want);
                for (int h = 0; h < count; h++) {
                        double v = t ? lg_f32_of_bf16((uint16_t)h) : lg_f32_of_f16((uint16_t)h);
                        double below = t ? lg_f32_of_bf16((uint16_t)(h - 1)) : lg_f32_of_f16((uint16_t)(h - 1));
                        double next = t ? lg_f32_of_bf16((uint16_t)(h + 1)) : lg_f32_of_f16((uint16_t)(h + 1));
                        next = h + 1 < count ? next : v + (v - below); /* where infinity is, the next one would be */
                        double mid = (v + next) / 2, row[4] = {v, nextafter(mid, 0), mid, nextafter(mid, INFINITY)};
                        int nearest[4] = {h, h, h % 2 ? h + 1 : h, h + 1};
                        for (int i = 0; i < 8; i++) {
                                in[h * 8 + i] = i % 2 ? -row[i / 2] : row[i / 2];
                                want[h * 8 + i] = (uint16_t)(nearest[i / 2] | (i % 2 ? 0x8000 : 0));
                        }
                }
                check_narrowed(LG_F64, t ? LG_BF16 : LG_F16, in, want, count * 8);
                free(in);
                free(want);
                const double ends[] = {INFINITY, -INFINITY, 1e300, -1e300, 1e-300, -1e-300, 0x1p128, -0.0};
                const uint16_t inf = t ? 0x7F80 : 0x7C00, minus = inf | 0x8000;
                check_narrowed(LG_F64, t ? LG_BF16 : LG_F16, ends,
                               (uint16_t[]){inf, minus, inf, minus, 0, 0x8000, inf, 0x8000}, 8);
                uint16_t nan;
                lg_copy_args a = {.ndim = 1, .shape = {1}, .in_dtype = LG_F64, .in = (double[]){NAN}, .out = &nan};
                a.out_dtype = t ? LG_BF16 : LG_F16;
                EVERY(&nan, sizeof nan, CALL(k->copy, &q, &a), assert_true((nan & 0x7FFF) > inf));
        }
}

/* m 2^e of eight bits m, and the middle to the next with its neighbours among the integers. */
TEST_CASE(test_integers_are_rounded_once)
{
        enum { LOW = 20, HIGH = 55, PER = 256 * 8 };
        int64_t *in = malloc((HIGH - LOW) * PER * sizeof *in), n = 0;
        uint16_t *want = malloc((HIGH - LOW) * PER * sizeof *want);
        for (int e = LOW; e < HIGH; e++)
                for (int64_t m = 128; m < 256; m++) {
                        int64_t v = m << e, half = (int64_t)1 << (e - 1),
                                row[4] = {v, v + half - 1, v + half, v + half + 1};
                        int h = (127 + 7 + e) << 7 | (int)(m - 128), nearest[4] = {h, h, h % 2 ? h + 1 : h, h + 1};
                        for (int i = 0; i < 8; i++, n++) {
                                in[n] = i % 2 ? -row[i / 2] : row[i / 2];
                                want[n] = (uint16_t)(nearest[i / 2] | (i % 2 ? 0x8000 : 0));
                        }
                }
        check_narrowed(LG_I64, LG_BF16, in, want, n);
        free(in);
        free(want);
        const int64_t some[] = {INT64_MAX, INT64_MIN, 65519, 65520, -65520, 2049, 2051, 0};
        check_narrowed(LG_I64, LG_F16, some, (uint16_t[]){0x7C00, 0xFC00, 0x7BFF, 0x7C00, 0xFC00, 0x6800, 0x6802, 0},
                       8);
        check_narrowed(LG_I64, LG_BF16, some, (uint16_t[]){0x5F00, 0xDF00, 0x4780, 0x4780, 0xC780, 0x4500, 0x4500, 0},
                       8);
}

TEST_CASE(test_philox)
{
        const uint32_t zeros[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
        const uint32_t ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
        lg_philox_words all = {{~0u, ~0u, ~0u, ~0u}};
        lg_philox_words b = lg_philox_block(0, 0);
        assert_memory_equal(b.w, zeros, sizeof zeros);
        b = lg_philox(all, ~0u, ~0u);
        assert_memory_equal(b.w, ones, sizeof ones);
}

static void check_random(const lg_random_args *a)
{
        double sum = 0, squares = 0, mean = a->kind == LG_RANDOM_UNIFORM ? (a->a + a->b) / 2 : a->a;
        double deviation = a->kind == LG_RANDOM_UNIFORM ? (a->b - a->a) / sqrt(12) : a->b;
        for (int64_t i = 0; i < a->n; i++) {
                double x = get(a->dtype, a->out, i);
                assert_true(a->kind == LG_RANDOM_NORMAL || (x >= a->a && x < a->b));
                sum += (x - mean) / deviation;
                squares += (x - mean) * (x - mean) / (deviation * deviation);
        }
        assert_true(fabs(sum / (double)a->n) < 5 / sqrt((double)a->n) + tolerance[a->dtype]);
        assert_true(fabs(squares / (double)a->n - 1) < 8 / sqrt((double)a->n) + 2 * tolerance[a->dtype]);
        lg_philox_words w = lg_philox_block(a->seed, a->offset + 1);
        bool wide = a->dtype == LG_F64;
        double u = wide ? lg_philox_uniform53(w.w[2], w.w[3]) : lg_philox_uniform24(w.w[1]);
        if (a->kind == LG_RANDOM_UNIFORM)
                assert_true(
                        close_to(get(a->dtype, a->out, wide ? 3 : 5), a->a + (a->b - a->a) * u, tolerance[a->dtype]));
}

TEST_CASE(test_random_fill_arange)
{
        for (int t = 0; t < 4; t++) {
                const lg_dtype dtype = float_types[t];
                const int64_t n = 40001;
                void *out = make_array(dtype, n, 0, 1);
                size_t bytes = (size_t)n * size_of[dtype];
                lg_random_args u = {
                        .n = n, .dtype = dtype, .out = out, .a = -1, .b = 2, .seed = 7, .offset = 1ull << 33};
                EVERY(out, bytes, CALL(k->random, &q, &u), check_random(&u));
                lg_random_args z = {
                        .n = n, .dtype = dtype, .out = out, .kind = LG_RANDOM_NORMAL, .a = 1, .b = 2, .seed = 9};
                EVERY(out, bytes, CALL(k->random, &q, &z), check_random(&z));
                free(out);
        }
        for (lg_dtype t = LG_F32; t < LG_DTYPE_COUNT; t++) {
                double out[1000], want[1000];
                lg_arange_args a = {.n = 100, .dtype = t, .out = out, .start = 3, .step = 2};
                EVERY(out, 100 * size_of[t], CALL(k->arange, &q, &a), {
                        for (int64_t i = 0; i < 100; i++)
                                assert_true(get(t, out, i) == (t == LG_BOOL ? 1 : 3 + 2 * (double)i));
                });
                lg_fill_args f = {.ndim = 2,
                                  .shape = {10, 7},
                                  .strides = {50, 2},
                                  .dtype = t,
                                  .out = out,
                                  .real = 1.5,
                                  .integer = 2};
                double value = is_float(t) ? 1.5 : t == LG_BOOL ? 1 : 2;
                EVERY(out, sizeof out, CALL(k->fill, &q, &f), {
                        for (int64_t i = 0; i < 500; i++) {
                                memset(want, 0x77, sizeof want);
                                bool inside = i % 50 % 2 == 0 && i % 50 < 14;
                                assert_true(get(t, out, i) == (inside ? value : get(t, want, 0)));
                        }
                });
        }
}

/* ---- reductions ---- */
static bool gives_index(lg_reduce_kind kind)
{
        return kind == LG_REDUCE_ARGMAX || kind == LG_REDUCE_ARGMIN;
}

PLAIN static double reduce_reference(const lg_reduce_args *a, int64_t k)
{
        int64_t n = count_of(a->reduced_ndim, a->reduced), at = 0;
        int64_t base = offset_of(a->kept_ndim, a->kept, a->kept_strides, k);
        double sum = 0, differences = 0, squares = 0, top = 0;
        for (int64_t i = 0; i < n; i++)
                sum += get(a->dtype, a->in, base + offset_of(a->reduced_ndim, a->reduced, a->reduced_strides, i));
        for (int64_t i = 0; i < n; i++) {
                double x = get(a->dtype, a->in, base + offset_of(a->reduced_ndim, a->reduced, a->reduced_strides, i));
                differences += pow(x - sum / (double)n, 2);
                squares += x * x;
                bool least = a->kind == LG_REDUCE_MIN || a->kind == LG_REDUCE_ARGMIN;
                bool more = least ? x < top : x > top;
                if (i == 0 || more || (isnan(x) && !isnan(top)))
                        top = x, at = i;
        }
        const double var = differences / fmax(0, (double)n - a->correction);
        switch (a->kind) {
        case LG_REDUCE_SUM:
                return sum;
        case LG_REDUCE_MEAN:
                return sum / (double)n;
        case LG_REDUCE_NORM:
                return sqrt(squares);
        case LG_REDUCE_VAR:
                return var;
        case LG_REDUCE_STD:
                return sqrt(var);
        default:
                return gives_index(a->kind) ? (double)at : top;
        }
}

static void check_reduce(lg_reduce_args *a)
{
        int64_t kept = count_of(a->kept_ndim, a->kept);
        bool index = gives_index(a->kind) || (a->kind == LG_REDUCE_SUM && !is_float(a->dtype));
        lg_dtype t = index ? LG_I64 : a->dtype;
        double *want = malloc((size_t)(kept + 1) * sizeof *want);
        for (int64_t i = 0; i < kept; i++)
                want[i] = reduce_reference(a, i);
        a->out = malloc((size_t)(kept + 1) * 8);
        EVERY(a->out, (size_t)kept * size_of[t], CALL(k->reduce, &q, a),
              check_array("reduce", t, a->out, want, kept, tolerance[t]));
        free(want);
        free(a->out);
}

/* Splits a shape into kept and reduced dimensions by the bits of `mask`. */
static void check_reductions(lg_dtype t, int ndim, const int64_t *shape, int layout, unsigned mask)
{
        for (int kind = LG_REDUCE_SUM; kind <= LG_REDUCE_STD; kind++) {
                const bool chooses = kind > LG_REDUCE_SUM && kind < LG_REDUCE_VAR;
                operand in = make_operand(t, ndim, shape, layout, true, is_float(t) ? -1 : 0, is_float(t) ? 2 : 9);
                lg_reduce_args a = {.kind = (lg_reduce_kind)kind, .dtype = t, .in = operand_at(&in), .correction = 1};
                for (int d = 0; d < ndim; d++) {
                        if (mask >> d & 1) {
                                a.reduced[a.reduced_ndim] = shape[d];
                                a.reduced_strides[a.reduced_ndim++] = in.strides[d];
                        } else {
                                a.kept[a.kept_ndim] = shape[d];
                                a.kept_strides[a.kept_ndim++] = in.strides[d];
                        }
                }
                bool empty = count_of(a.reduced_ndim, a.reduced) == 0;
                if (is_float(t) && chooses && layout == 0 && !empty)
                        put(t, in.memory, 1 < in.bytes / size_of[t] ? 1 : 0, NAN);
                if (!(empty && chooses) && (is_float(t) || kind < LG_REDUCE_VAR))
                        check_reduce(&a);
                free(in.memory);
        }
}

TEST_CASE(test_reduce)
{
        for (lg_dtype t = LG_F32; t < LG_DTYPE_COUNT; t++) {
                for (int which = 0; which < SHAPES; which++) {
                        int64_t shape[LG_MAX_DIMS];
                        int ndim = make_shape(which, shape);
                        for (unsigned mask = 0; mask < 1u << ndim; mask++)
                                check_reductions(t, ndim, shape, which % 2, mask);
                }
                if (SANITIZED && t % 3)
                        continue;
                check_reductions(t, 2, (int64_t[]){3000, 20}, 0, 1);
                check_reductions(t, 2, (int64_t[]){2, 150000}, 0, 2);
                check_reductions(t, 3, (int64_t[]){40, 6, 300}, 0, 5);
                check_reductions(t, 3, (int64_t[]){40, 300, 6}, 0, 3);
        }
}

/* ---- products ---- */
static void check_gemm(lg_dtype t, int64_t m, int64_t n, int64_t k_size, bool ta, bool tb, int beta, bool biased,
                       bool relu)
{
        const int64_t batch = 3, ldc = n + 3, lda = (ta ? m : k_size) + 2, ldb = (tb ? k_size : n) + 1;
        int64_t a_n = lda * ((ta ? k_size : m) + 1), b_n = ldb * ((tb ? n : k_size) + 1), c_n = batch * (m * ldc + 5);
        void *a = make_array(t, batch * a_n, -1, 1), *b = make_array(t, b_n, -1, 1), *c = make_array(t, c_n, -1, 1);
        void *start = malloc((size_t)c_n * size_of[t] + 1), *bias = make_array(t, n + 1, -1, 1);
        memcpy(start, c, (size_t)c_n * size_of[t]);
        lg_gemm_args g = {.dtype = t,
                          .m = m,
                          .n = n,
                          .k = k_size,
                          .a = a,
                          .b = b,
                          .c = c,
                          .ldc = ldc,
                          .beta = beta,
                          .bias = biased ? bias : NULL,
                          .relu = relu,
                          .a_row = ta ? 1 : lda,
                          .a_col = ta ? lda : 1,
                          .b_row = tb ? 1 : ldb,
                          .b_col = tb ? ldb : 1,
                          .batch_ndim = 1,
                          .batch = {batch},
                          .a_batch = {a_n},
                          .b_batch = {0},
                          .c_batch = {m * ldc + 5}};
        double *want = malloc((size_t)(c_n + 1) * sizeof *want);
        for (int64_t i = 0; i < c_n; i++)
                want[i] = get(t, start, i);
        for (int64_t i = 0; i < batch * m * n; i++) {
                int64_t s = i / (m * n), r = i / n % m, col = i % n;
                double sum = beta ? get(t, start, s * g.c_batch[0] + r * ldc + col) : 0;
                for (int64_t x = 0; x < k_size; x++)
                        sum += get(t, a, s * a_n + r * g.a_row + x * g.a_col) * get(t, b, x * g.b_row + col * g.b_col);
                sum += biased ? get(t, bias, col) : 0;
                want[s * g.c_batch[0] + r * ldc + col] = relu && sum <= 0 ? 0 : sum;
        }
        EVERY(
                c, (size_t)c_n * size_of[t],
                {
                        memcpy(c, start, (size_t)c_n * size_of[t]);
                        CALL(k->gemm, &q, &g);
                },
                check_array("gemm", t, c, want, c_n, tolerance[t] * 4));
        free(a), free(b), free(c), free(start), free(want), free(bias);
}

TEST_CASE(test_gemm)
{
        static const int64_t sizes[][3] = {{1, 1, 1},  {5, 7, 3},  {0, 3, 2},     {3, 4, 0},
                                           {1, 9, 17}, {33, 1, 8}, {150, 220, 90}};
        for (int t = 0; t < 4; t++) {
                for (int s = 0; s < 7; s++) {
                        for (int flags = 0; flags < 32; flags += SANITIZED ? 5 : 1)
                                check_gemm(float_types[t], sizes[s][0], sizes[s][1], sizes[s][2], flags & 1, flags & 2,
                                           flags >> 2 & 1, flags & 8, flags & 16);
                }
        }
}

/* Around the sizes of blocks, panels and strips. */
TEST_CASE(test_gemm_edges)
{
        static const int64_t large[][3] = {{129, 9, 400}, {31, 1100, 5},   {60, 350, 390}, {2, 40, 1000},
                                           {70, 3, 800},  {75, 520, 1024}, {75, 520, 1024}};
        for (int i = 0; i < SOME(200); i++) {
                const int64_t flags = random_int(0, 31), n = random_int(1, 70), k = random_int(0, 70);
                check_gemm(i % 2 ? LG_F32 : LG_F64, random_int(1, 40), n, k, flags & 1, flags & 2, flags >> 2 & 1,
                           flags & 8, flags & 16);
        }
        for (int i = 0; i < 7; i++)
                for (int flags = i % 2; flags < 4; flags += 2)
                        check_gemm((flags + i) % 2 ? LG_F32 : LG_F64, large[i][0], large[i][1], large[i][2], flags & 1,
                                   flags & 2, flags & 1, flags & 2, false);
}
