/* test_dlpack.c - tensors to other frameworks by DLPack: what a consumer in C gets. */
#if LG_DLPACK
#include "dlpack.h"

/* ---- out ---- */

static const struct {
        lg_dtype dtype;
        uint8_t code, bits;
        unsigned char two[8]; /* the number 2 in memory */
} types[] = {
        {LG_F32, kDLFloat, 32, {0, 0, 0, 0x40}},
        {LG_F64, kDLFloat, 64, {0, 0, 0, 0, 0, 0, 0, 0x40}},
        {LG_F16, kDLFloat, 16, {0, 0x40}},
        {LG_BF16, kDLBfloat, 16, {0, 0x40}},
        {LG_I64, kDLInt, 64, {2}},
        {LG_I32, kDLInt, 32, {2}},
        {LG_U8, kDLUInt, 8, {2}},
};
#define TYPES ((int)(sizeof types / sizeof *types))

TEST_CASE(every_dtype_goes_out)
{
        lg_ctx *c = open_ctx();
        for (int i = 0; i < TYPES; i++) {
                DLManagedTensor *m = lg_to_dlpack(counting(c, LG_SHAPE(2, 3), types[i].dtype));
                assert_ok(c);
                const DLTensor *d = &m->dl_tensor;
                assert_int_equal(d->dtype.code, types[i].code);
                assert_int_equal(d->dtype.bits, types[i].bits);
                assert_int_equal(d->dtype.lanes, 1);
                assert_int_equal(d->device.device_type, kDLCPU);
                assert_int_equal(d->device.device_id, 0);
                assert_int_equal(d->byte_offset, 0);
                assert_int_equal(d->ndim, 2);
                assert_true(d->shape[0] == 2 && d->shape[1] == 3 && d->strides[0] == 3 && d->strides[1] == 1);
                assert_memory_equal((char *)d->data + 2 * types[i].bits / 8, types[i].two, types[i].bits / 8);
                end(m);
        }
        assert_null(lg_to_dlpack(counting(c, LG_SHAPE(2), LG_BOOL)));
        assert_error(c, LG_ERR_DTYPE, "lg_to_dlpack: t is bool (2,) on cpu, and DLPack 0.6 has no bool");
        lg_close(c);
}

TEST_CASE(every_layout_goes_out)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = counting(c, LG_SHAPE(4, 3), LG_F32);
        DLManagedTensor *whole = lg_to_dlpack(x), *turned = lg_to_dlpack(lg_transpose(x, 0, 1));
        DLManagedTensor *part = lg_to_dlpack(lg_slice(x, 0, 1, LG_MAX, .step = 2));
        DLManagedTensor *wide = lg_to_dlpack(lg_expand(lg_select(x, 0, 1), LG_SHAPE(5, 3)));
        assert_ok(c);
        assert_true(whole->dl_tensor.data == turned->dl_tensor.data);
        assert_true(element(whole, 3, 1) == 10 && element(turned, 1, 3) == 10);
        assert_true((float *)part->dl_tensor.data == (float *)whole->dl_tensor.data + 3);
        assert_true(part->dl_tensor.shape[0] == 2 && part->dl_tensor.strides[0] == 6 && element(part, 1, 2) == 11);
        assert_true(wide->dl_tensor.shape[0] == 5 && wide->dl_tensor.strides[0] == 0 && element(wide, 4, 2) == 5);
        lg_fill_(x, 7); /* one memory */
        assert_true(element(part, 1, 2) == 7 && element(wide, 4, 2) == 7);
        DLManagedTensor *one = lg_to_dlpack(lg_scalar(c, 3, .device = lg_cpu()));
        DLManagedTensor *none = lg_to_dlpack(lg_zeros(c, LG_SHAPE(2, 0), .device = lg_cpu()));
        assert_true(one->dl_tensor.ndim == 0 && *(float *)one->dl_tensor.data == 3);
        assert_true(none->dl_tensor.ndim == 2 && none->dl_tensor.shape[0] == 2 && none->dl_tensor.shape[1] == 0);
        DLManagedTensor *all[] = {whole, turned, part, wide, one, none};
        for (int i = 0; i < 6; i++)
                end(all[i]);
        lg_close(c);
}

TEST_CASE(what_does_not_go_out)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_ones(c, LG_SHAPE(2), .device = lg_cpu(), .requires_grad = true);
        assert_null(lg_to_dlpack(w));
        assert_error(c, LG_ERR_STATE, "lg_to_dlpack: t needs a gradient");
        assert_null(lg_to_dlpack(lg_square(w)));
        assert_error(c, LG_ERR_STATE, "lg_detach(t) first");
        lg_no_grad(c) assert_null(lg_to_dlpack(w));
        assert_error(c, LG_ERR_STATE, "lg_to_dlpack: t needs a gradient");
        end(lg_to_dlpack(lg_detach(w)));
        assert_ok(c);
        assert_null(lg_to_dlpack(NULL));
        assert_ok(c);
        lg_tensor *dead = lg_ones(c, LG_SHAPE(2));
        lg_free(dead);
        assert_null(lg_to_dlpack(dead));
        assert_error(c, LG_ERR_STATE, "lg_to_dlpack: t was freed");
        lg_set_error(c, LG_ERR_IO, "mine");
        assert_null(lg_to_dlpack(lg_detach(w)));
        assert_error(c, LG_ERR_IO, "mine");
        lg_close(c);
}

/* Of the shadow device nothing goes out; of CUDA a device pointer, which comes in again as it is. */
TEST_CASE(the_device_under_test)
{
        lg_ctx *c = open_ctx();
        lg_device here = test_device(c);
        lg_tensor *x = lg_full(c, LG_SHAPE(2, 2), 3);
        DLManagedTensor *m = lg_to_dlpack(x);
        if (here.type == LG_DEVICE_SHADOW) {
                assert_null(m);
                assert_error(c, LG_ERR_DEVICE, "lg_to_dlpack: t is f32 (2, 2) on shadow:0, a device that DLPack");
                lg_close(c);
                return;
        }
        assert_ok(c);
        assert_int_equal(m->dl_tensor.device.device_type, here.type == LG_DEVICE_CUDA ? kDLCUDA : kDLCPU);
        assert_int_equal(m->dl_tensor.device.device_id, here.index);
        lg_tensor *y = lg_from_dlpack(c, m);
        assert_true(y && lg_device_equal(lg_device_of(y), here));
        lg_fill_(y, 5);
        assert_list(x, 0, 5, 5, 5, 5);
        lg_tensor *z = lg_keep(lg_add(x, x));
        m = lg_to_dlpack(z);
        lg_free(z);
        lg_close(c);
        c = open_ctx(); /* over memory of a context that was closed */
        z = lg_from_dlpack(c, m);
        assert_list(lg_add(z, z), 0, 20, 20, 20, 20);
        m = lg_to_dlpack(lg_slice(z, 1, 1, 2));
        m->dl_tensor.device = (DLDevice){kDLCUDA, 99};
        assert_null(lg_from_dlpack(c, m));
        assert_error(c, LG_ERR_DEVICE, "there is no device cuda");
        lg_close(c);
        end(m);
}

TEST_CASE(not_aligned_on_the_device_under_test)
{
        static const float values[3] = {1.5f, -2, 3};
        lg_ctx *c = open_ctx();
        if (test_device(c).type == LG_DEVICE_SHADOW)
                lg_set_default_device(c, lg_cpu());
        unsigned char bytes[16] = {0};
        memcpy(bytes + 3, values, sizeof values);
        DLManagedTensor *m = lg_to_dlpack(lg_from(c, bytes, LG_SHAPE(16)));
        assert_ok(c);
        m->dl_tensor.dtype = (DLDataType){kDLFloat, 32, 1};
        m->dl_tensor.shape[0] = 3;
        m->dl_tensor.byte_offset = 3;
        lg_tensor *t = lg_from_dlpack(c, m);
        assert_true(lg_device_equal(lg_device_of(t), lg_default_device(c)));
        assert_list(t, 0, 1.5, -2, 3);
        lg_close(c);
}
#else
#include "test.h"

TEST_CASE(without_dlpack)
{
        lg_ctx *c = open_ctx();
        int nothing;
        assert_null(lg_to_dlpack(lg_ones(c, LG_SHAPE(2))));
        assert_error(c, LG_ERR_STATE,
                     "lg_to_dlpack: libgrad was built without DLPack; install it (Debian: libdlpack-dev)");
        assert_null(lg_from_dlpack(c, (struct DLManagedTensor *)(void *)&nothing));
        assert_error(c, LG_ERR_STATE, "lg_from_dlpack: libgrad was built without DLPack");
        assert_null(lg_to_dlpack(NULL));
        assert_null(lg_from_dlpack(NULL, NULL));
        lg_close(c);
}
#endif
