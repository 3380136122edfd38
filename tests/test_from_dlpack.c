/* test_from_dlpack.c - tensors from other frameworks by DLPack: a producer in C, which counts, errs and lies. */
#include "dlpack.h"

/* A producer's tensor over `data`, row-major f32; the deleter counts. */
typedef struct made {
        DLManagedTensor m;
        int64_t shape[9], strides[9];
        int deleted;
        lg_ctx *closes; /* by the deleter */
} made;

static void deleter(DLManagedTensor *m)
{
        made *k = m->manager_ctx;
        assert_ptr_equal(m, &k->m);
        k->deleted++;
        if (k->closes)
                lg_close(k->closes);
}

static void make(made *k, void *data, lg_shape shape)
{
        *k = (made){.m = {.dl_tensor = {.data = data,
                                        .device = {kDLCPU, 0},
                                        .ndim = shape.ndim,
                                        .dtype = {kDLFloat, 32, 1},
                                        .shape = k->shape},
                          .manager_ctx = k,
                          .deleter = deleter}};
        memcpy(k->shape, shape.size, sizeof shape.size);
}

/* With strides. */
static void make_strided(made *k, void *data, lg_shape shape, lg_shape strides)
{
        make(k, data, shape);
        memcpy(k->strides, strides.size, sizeof strides.size);
        k->m.dl_tensor.strides = k->strides;
}

static void numbers(float *data, int n)
{
        for (int i = 0; i < n; i++)
                data[i] = (float)i;
}

/* ---- what comes in ---- */

TEST_CASE(every_dtype_comes_in)
{
        static const float f32[2] = {1.5f, -2};
        static const double f64[2] = {1.5, -2};
        static const uint16_t f16[2] = {0x3e00, 0xc000}, bf16[2] = {0x3fc0, 0xc000};
        static const int64_t i64[2] = {INT64_C(1) << 40, -2};
        static const int32_t i32[2] = {1 << 20, -2};
        static const uint8_t u8[2] = {1, 254};
        static const struct {
                const void *data;
                DLDataType type;
                lg_dtype dtype;
                double first, second;
        } rows[] = {
                {f32, {kDLFloat, 32, 1}, LG_F32, 1.5, -2},  {f64, {kDLFloat, 64, 1}, LG_F64, 1.5, -2},
                {f16, {kDLFloat, 16, 1}, LG_F16, 1.5, -2},  {bf16, {kDLBfloat, 16, 1}, LG_BF16, 1.5, -2},
                {i64, {kDLInt, 64, 1}, LG_I64, 0x1p40, -2}, {i32, {kDLInt, 32, 1}, LG_I32, 0x1p20, -2},
                {u8, {kDLUInt, 8, 1}, LG_U8, 1, 254},
        };
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                made k;
                make(&k, (void *)(uintptr_t)rows[i].data, LG_SHAPE(2));
                k.m.dl_tensor.dtype = rows[i].type;
                lg_tensor *t = lg_from_dlpack(c, &k.m);
                assert_ok(c);
                assert_int_equal(lg_dtype_of(t), rows[i].dtype);
                assert_true(lg_device_equal(lg_device_of(t), lg_cpu()));
                assert_list(t, 0, rows[i].first, rows[i].second);
                lg_free(t);
                assert_int_equal(k.deleted, 1);
        }
        lg_close(c);
}

TEST_CASE(every_layout_comes_in)
{
        float data[24];
        numbers(data, 24);
        made k[8];
        lg_ctx *c = open_ctx();
        make(&k[0], data, LG_SHAPE(2, 3));
        assert_list(lg_from_dlpack(c, &k[0].m), 0, 0, 1, 2, 3, 4, 5);
        make_strided(&k[1], data, LG_SHAPE(3, 2), LG_SHAPE(1, 3));
        assert_list(lg_from_dlpack(c, &k[1].m), 0, 0, 3, 1, 4, 2, 5);
        make_strided(&k[2], data, LG_SHAPE(2, 2), LG_SHAPE(12, 5));
        k[2].m.dl_tensor.byte_offset = 8;
        assert_list(lg_from_dlpack(c, &k[2].m), 0, 2, 7, 14, 19);
        make_strided(&k[3], data + 4, LG_SHAPE(2, 3), LG_SHAPE(0, 1));
        lg_tensor *same = lg_from_dlpack(c, &k[3].m);
        assert_list(same, 0, 4, 5, 6, 4, 5, 6);
        assert_false(lg_fill_(same, 1));
        assert_error(c, LG_ERR_ARGUMENT, "its elements share memory");
        /* strides of dimensions of one element say nothing */
        make_strided(&k[4], data, LG_SHAPE(1, 3, 1, 2), LG_SHAPE(-5, 2, INT64_MAX, 1));
        lg_tensor *t = lg_from_dlpack(c, &k[4].m);
        assert_true(lg_is_contiguous(t) && lg_stride_of(t, 0) == 6 && lg_stride_of(t, 2) == 2);
        assert_list(t, 0, 0, 1, 2, 3, 4, 5);
        make(&k[5], data + 9, LG_SHAPE_0D);
        k[5].m.dl_tensor.shape = NULL;
        assert_list(lg_from_dlpack(c, &k[5].m), 0, 9);
        make_strided(&k[6], NULL, LG_SHAPE(3, 0, 2), LG_SHAPE(-1, INT64_MIN, INT64_MAX));
        t = lg_from_dlpack(c, &k[6].m);
        assert_int_equal(lg_numel(t), 0);
        assert_int_equal(lg_size_of(t, 0), 3);
        make(&k[7], data, LG_SHAPE(2, 1, 3, 1, 2, 1, 2, 1));
        k[7].m.dl_tensor.device.device_type = kDLCUDAHost;
        assert_near(lg_item(lg_sum(lg_from_dlpack(c, &k[7].m))), 276, 0);
        assert_ok(c);
        lg_close(c);
        for (int i = 0; i < 8; i++)
                assert_int_equal(k[i].deleted, 1);
}

/* Products and gradients of what came in turned are those of a copy. */
TEST_CASE(ops_take_it)
{
        float data[6];
        made k, row;
        numbers(data, 6);
        lg_ctx *c = open_ctx();
        lg_set_default_device(c, lg_cpu());
        make_strided(&k, data, LG_SHAPE(3, 2), LG_SHAPE(1, 3));
        lg_tensor *x = lg_from_dlpack(c, &k.m), *w = lg_ones(c, LG_SHAPE(2, 1), .requires_grad = true);
        lg_tensor *y = lg_matmul(x, w);
        assert_list(y, 0, 3, 5, 7);
        make_strided(&row, data, LG_SHAPE(1, 3), LG_SHAPE(1, 2));
        assert_list(lg_matmul(lg_from_dlpack(c, &row.m), lg_ones(c, LG_SHAPE(3, 1))), 0, 6);
        lg_free(x);
        assert_int_equal(k.deleted, 0); /* the graph has it */
        lg_backward(lg_sum(y));
        assert_list(lg_grad_of(w), 0, 3, 12);
        assert_int_equal(k.deleted, 1);
        lg_close(c);
        assert_int_equal(row.deleted, 1);
}

/* ---- whose the memory is ---- */

TEST_CASE(memory_that_came_in_is_shared)
{
        float data[6];
        made k, bare;
        numbers(data, 6);
        lg_ctx *c = open_ctx();
        make(&k, data, LG_SHAPE(2, 3));
        lg_tensor *t = lg_from_dlpack(c, &k.m), *view = lg_transpose(t, 0, 1);
        lg_fill_(lg_select(t, 0, 1), 8);
        assert_true(data[2] == 2 && data[3] == 8 && data[5] == 8);
        data[0] = -1;
        assert_list(view, 0, -1, 8, 1, 8, 2, 8);
        lg_free(t);
        assert_int_equal(k.deleted, 0);
        DLManagedTensor *out = lg_to_dlpack(view);
        assert_true(out->dl_tensor.data == data);
        lg_free(view);
        assert_int_equal(k.deleted, 0);
        make(&bare, data, LG_SHAPE(6));
        bare.m.deleter = NULL;
        assert_non_null(lg_from_dlpack(c, &bare.m));
        lg_close(c);
        assert_int_equal(k.deleted, 0);
        out->deleter(out);
        assert_int_equal(k.deleted, 1);
}

TEST_CASE(a_deleter_does_not_close_the_context)
{
        float data[9] = {0};
        made k;
        lg_ctx *c = open_ctx();
        for (int misaligned = 0; misaligned < 2; misaligned++) {
                make(&k, (char *)data + misaligned, LG_SHAPE(2));
                k.closes = c;
                lg_tensor *t = lg_from_dlpack(c, &k.m);
                assert_int_equal(k.deleted, misaligned);
                lg_free(t);
                assert_int_equal(k.deleted, 1);
                assert_error(c, LG_ERR_STATE, "lg_close: a call that uses the context has not returned");
        }
        lg_close(c);
}

TEST_CASE(what_is_not_aligned_is_copied)
{
        static const lg_shape shapes[] = {{.ndim = 1, .size = {24}},
                                          {.ndim = 3, .size = {2, 3, 4}},
                                          {.ndim = 8, .size = {2, 1, 3, 1, 2, 1, 2, 1}},
                                          {.ndim = 0}};
        char memory[25 * 4];
        float values[24];
        made k;
        lg_ctx *c = open_ctx();
        numbers(values, 24);
        for (int i = 0; i < 4; i++) {
                for (int off = 1; off < 4; off++) {
                        memcpy(memory + off, values, sizeof values);
                        make(&k, memory, shapes[i]);
                        k.m.dl_tensor.byte_offset = (uint64_t)off;
                        lg_tensor *t = lg_from_dlpack(c, &k.m);
                        assert_ok(c);
                        assert_int_equal(k.deleted, 1);
                        memset(memory, 0, sizeof memory);
                        assert_near(lg_item(lg_sum(t)), i == 3 ? 0 : 276, 0);
                        assert_near(lg_item(lg_select(lg_flatten(t), 0, -1)), i == 3 ? 0 : 23, 0);
                }
        }
        memcpy(memory + 1, values, sizeof values);
        make_strided(&k, memory + 1, LG_SHAPE(1, 2, 1, 3, 1, 2, 1, 1), LG_SHAPE(9, 1, 9, 2, 9, 0, 9, 9));
        assert_list(lg_from_dlpack(c, &k.m), 0, 0, 0, 2, 2, 4, 4, 1, 1, 3, 3, 5, 5);
        lg_close(c);
        assert_int_equal(k.deleted, 1);
}

/* ---- what is refused ---- */

static float some[64];

/* Refused with that error, and still the caller's. */
static void refused(made *k, lg_error_code code, const char *text)
{
        lg_ctx *c = open_ctx();
        assert_null(lg_from_dlpack(c, &k->m));
        assert_error(c, code, text);
        assert_int_equal(lg_live_tensors(c), 0);
        lg_close(c);
        assert_int_equal(k->deleted, 0);
}

TEST_CASE(dtypes_and_devices_that_are_refused)
{
        static const DLDataType types[] = {
                {kDLInt, 8, 1},     {kDLInt, 16, 1}, {kDLUInt, 16, 1},        {kDLUInt, 32, 1},   {kDLFloat, 8, 1},
                {kDLFloat, 128, 1}, {kDLUInt, 1, 1}, {kDLComplex, 64, 1},     {kDLBfloat, 32, 1}, {6, 8, 1},
                {255, 255, 1},      {kDLInt, 0, 1},  {kDLOpaqueHandle, 64, 1}};
        made k;
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
                make(&k, some, LG_SHAPE(2));
                k.m.dl_tensor.dtype = types[i];
                refused(&k, LG_ERR_DTYPE, "lg_from_dlpack: elements of type code");
        }
        for (int lanes = 0; lanes < 65536; lanes += 4369) {
                make(&k, some, LG_SHAPE(2));
                k.m.dl_tensor.dtype.lanes = (uint16_t)lanes;
                refused(&k, LG_ERR_DTYPE, "lanes; only those of 1 can be taken");
        }
        static const int devices[] = {0, 4, 7, 8, 9, 10, 11, 12, 13, 99, -1, INT32_MAX};
        for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
                make(&k, some, LG_SHAPE(2));
                k.m.dl_tensor.device.device_type = (DLDeviceType)devices[i];
                refused(&k, LG_ERR_DEVICE, "lg_from_dlpack: memory of device type");
        }
        static const int indices[] = {-1, 64, INT32_MAX, INT32_MIN};
        for (int i = 0; i < 4; i++) {
                make(&k, some, LG_SHAPE(2));
                k.m.dl_tensor.device = (DLDevice){kDLCUDA, indices[i]};
                refused(&k, LG_ERR_DEVICE, "there is no device cuda");
        }
}

TEST_CASE(layouts_that_are_refused)
{
        const int64_t big = INT64_MAX;
        made k;
        static const int dims[] = {9, -1, INT32_MAX, INT32_MIN};
        for (int i = 0; i < 4; i++) {
                make(&k, some, LG_SHAPE(1, 1));
                k.m.dl_tensor.ndim = dims[i];
                refused(&k, LG_ERR_SHAPE, "dimensions; at most 8 are possible");
        }
        make(&k, some, LG_SHAPE(2));
        k.m.dl_tensor.shape = NULL;
        refused(&k, LG_ERR_ARGUMENT, "lg_from_dlpack: shape is NULL, but there are 1 dimensions");
        make(&k, some, LG_SHAPE(2, -3));
        refused(&k, LG_ERR_SHAPE, "lg_from_dlpack: the shape (2, -3) has a negative size");
        make(&k, some, LG_SHAPE(0, INT64_MIN));
        refused(&k, LG_ERR_SHAPE, "has a negative size");
        make(&k, some, LG_SHAPE(big, 2));
        refused(&k, LG_ERR_SHAPE, "has too many elements");
        make(&k, some, LG_SHAPE(big, big, 0));
        refused(&k, LG_ERR_SHAPE, "has too many elements");
        make_strided(&k, some, LG_SHAPE(2, 2), LG_SHAPE(2, -1));
        refused(&k, LG_ERR_ARGUMENT, "lg_from_dlpack: stride -1 in dimension 1; strides must not be negative");
        make_strided(&k, some, LG_SHAPE(2, 3), LG_SHAPE(1, big));
        refused(&k, LG_ERR_SHAPE, "in dimension 1: elements too far apart");
        make_strided(&k, some, LG_SHAPE(2, 2), LG_SHAPE(big / 16 - 1, big / 16 - 1));
        refused(&k, LG_ERR_SHAPE, "in dimension 0: elements too far apart");
        make(&k, NULL, LG_SHAPE(2));
        refused(&k, LG_ERR_ARGUMENT, "lg_from_dlpack: data is NULL");
        make(&k, some, LG_SHAPE(2));
        k.m.dl_tensor.byte_offset = UINT64_MAX - 3;
        refused(&k, LG_ERR_ARGUMENT, "are beyond the address space");
        make(&k, (void *)(UINTPTR_MAX - 7), LG_SHAPE(4));
        refused(&k, LG_ERR_ARGUMENT, "lg_from_dlpack: 16 bytes from byte_offset 0 on are beyond the address space");
}

TEST_CASE(calls_that_are_refused)
{
        made k;
        lg_ctx *c = open_ctx();
        make(&k, some, LG_SHAPE(2));
        assert_null(lg_from_dlpack(c, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_from_dlpack: m is NULL");
        assert_null(lg_from_dlpack(NULL, &k.m));
        lg_set_error(c, LG_ERR_IO, "mine");
        assert_null(lg_from_dlpack(c, &k.m));
        assert_null(lg_from_dlpack(c, NULL));
        assert_error(c, LG_ERR_IO, "mine");
        lg_close(c);
        assert_int_equal(k.deleted, 0);
}

TEST_CASE(an_import_without_memory)
{
        for (int misaligned = 0; misaligned < 2; misaligned++) {
                bool done = false;
                for (int64_t n = 1; !done; n++) {
                        static made k[1200];
                        failing f = {0};
                        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
                        arm(&f, n, true);
                        int i = 0;
                        lg_tensor *t = NULL;
                        do
                                make(&k[i], (char *)some + misaligned, LG_SHAPE(2, 3));
                        while ((t = lg_from_dlpack(c, &k[i].m)) && ++i < 1200);
                        done = t != NULL;
                        assert_true(done || lg_error_code_of(c) == LG_ERR_MEMORY);
                        lg_close(c);
                        assert_int_equal(f.bytes, 0);
                        for (int j = 0; j < i; j++)
                                assert_int_equal(k[j].deleted, 1);
                        assert_true(done || k[i].deleted == 0);
                }
        }
}
