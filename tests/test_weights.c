/* test_weights.c - files of weights without a module: what is in them, single tensors. */
#include "temporary.h"

TEST_CASE_WITH(tensors_by_name, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 2, 3), lg_nn_batch_norm2d(c, 2), lg_nn_relu(c),
                                          lg_nn_flatten(c), lg_nn_linear(c, 8, 3));
        lg_weight t;
        int64_t n = 0;
        double expected[24], got[24];
        assert_true(lg_save(net, path));
        lg_weights *w = lg_weights_open(c, path);
        assert_ok(c);
        for (; lg_weights_at(w, n, &t); n++)
                if (!strcmp(t.name, "4.weight")) {
                        assert_string_equal(t.dtype_name, "F32");
                        assert_int_equal(t.dtype, LG_F32);
                        assert_int_equal(t.bytes, 96);
                        assert_true(t.shape.ndim == 2 && t.shape.size[0] == 3 && t.shape.size[1] == 8);
                }
        assert_int_equal(n, 9); /* four parameters of two layers, four of batch norm and its count */
        assert_false(lg_weights_at(w, -1, &t) || lg_weights_at(NULL, 0, &t));
        read_all(lg_parameter(net, "4.weight"), expected, 24);
        lg_tensor *values = lg_weights_read(w, "4.weight");
        assert_int_equal(read_all(values, got, 24), 24);
        assert_memory_equal(expected, got, sizeof got);
        assert_true(lg_device_equal(lg_device_of(values), lg_default_device(c)));
        assert_null(lg_weights_read(w, "4.weights"));
        assert_error(c, LG_ERR_ARGUMENT, "has no tensor \"4.weights\"; the nearest are \"4.weight\", \"");
        assert_null(lg_weights_read(w, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_weights_read: the name is NULL");
        assert_null(lg_weights_read(NULL, "4.weight"));
        assert_false(lg_weights_at(w, 0, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_weights_at: ret is NULL");
        lg_weights_close(w);
        lg_weights_close(NULL);
        assert_null(lg_weights_open(c, "no-such-folder/x"));
        assert_error(c, LG_ERR_IO, "lg_weights_open: no-such-folder/x cannot be opened");
        drop(lg_weights_open(c, path)); /* the context closes it */
        lg_close(c);
}

/* Another library's file: a dtype that is not here, and texts. */
TEST_CASE_WITH(what_another_library_wrote, begin, end)
{
        static const char header[] = "{\"__metadata__\":{\"format\":\"pt\",\"by\":\"hand\"},"
                                     "\"a\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[0,4]}}  ";
        const uint64_t bytes = sizeof header - 1;
        const char *key, *value;
        lg_weight t;
        FILE *f = fopen(path, "wb");
        assert_true(fwrite(&bytes, 8, 1, f) == 1 && fwrite(header, bytes, 1, f) == 1 &&
                    fwrite("\1\0\2\0", 4, 1, f) == 1);
        fclose(f);
        lg_ctx *c = open_ctx();
        lg_weights *w = lg_weights_open(c, path);
        assert_true(lg_weights_at(w, 0, &t) && !lg_weights_at(w, 1, &t));
        assert_string_equal(t.dtype_name, "I16");
        assert_int_equal(t.dtype, LG_DTYPE_NONE);
        assert_null(lg_weights_read(w, "a"));
        assert_error(c, LG_ERR_DTYPE, "is I16, which libgrad has no dtype for");
        assert_true(lg_weights_metadata(w, 0, &key, &value));
        assert_string_equal(key, "by");
        assert_string_equal(value, "hand");
        assert_true(lg_weights_metadata(w, 1, &key, &value));
        assert_string_equal(value, "pt");
        assert_false(lg_weights_metadata(w, 2, &key, &value) || lg_weights_metadata(NULL, 0, &key, &value));
        assert_ok(c);
        assert_false(lg_weights_metadata(w, 0, NULL, &value));
        assert_error(c, LG_ERR_ARGUMENT, "lg_weights_metadata: ret_key is NULL");
        lg_close(c);
}
