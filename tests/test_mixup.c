/* test_mixup.c - batches of mixed samples and labels. */
#include "test.h"

static void check_mix(lg_ctx *c, double alpha, lg_dtype dtype)
{
        enum { rows = 5, classes = 7, batches = 600 };
        lg_tensor *x = lg_cast(lg_arange(c, 0, rows * batches, 1, .device = lg_cpu()), dtype);
        int64_t labels[rows * batches];
        for (int64_t i = 0; i < rows * batches; i++)
                labels[i] = i % classes;
        lg_tensor *y = lg_from(c, labels, LG_SHAPE(rows * batches), .device = lg_cpu());
        lg_loader *l = lg_loader_open(c, lg_dataset_tensors(c, x, y), rows, .seed = 3,
                                      .collate = lg_mixup(c, .alpha = alpha, .classes = classes));
        double sum = 0, squares = 0;
        lg_each_batch(b, l)
        {
                double v[rows], p[rows * classes];
                assert_int_equal(lg_dtype_of(b.x), dtype);
                assert_int_equal(lg_dtype_of(b.y), LG_F32);
                read_all(b.x, v, rows);
                read_all(b.y, p, rows * classes);
                const int64_t first = b.index * rows;
                const double part = v[1] - (double)first; /* l (first + 1) + (1 - l) first */
                assert_true(part > -1e-3 && part < 1 + 1e-3);
                sum += part;
                squares += (part - 0.5) * (part - 0.5);
                for (int i = 0; i < rows; i++) {
                        const int64_t a = first + i, z = first + (i ? i - 1 : rows - 1);
                        assert_near(v[i], part * (double)a + (1 - part) * (double)z, 2e-3);
                        for (int k = 0; k < classes; k++) {
                                double want = (a % classes == k ? part : 0) + (z % classes == k ? 1 - part : 0);
                                assert_near(p[i * classes + k], want, 1e-3);
                        }
                }
        }
        assert_ok(c);
        const double variance = 0.25 / (2 * alpha + 1);
        assert_near(sum / batches, 0.5, 5 * sqrt(variance / batches));
        assert_near(squares / batches, variance, 0.2 * variance);
}

TEST_CASE(batches_are_mixed)
{
        lg_ctx *c = open_ctx();
        check_mix(c, 0.2, LG_F32);
        check_mix(c, 1, LG_F64);
        check_mix(c, 4, LG_F32);
        lg_close(c);
}

TEST_CASE(what_cannot_be_mixed_is_refused)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(4, 2), .device = lg_cpu());
        lg_tensor *y = lg_arange(c, 0, 4, 1, .dtype = LG_I64, .device = lg_cpu());
        lg_collate *m = lg_mixup(c, .classes = 3);
        lg_loader *l = lg_loader_open(c, lg_dataset_tensors(c, x, y), 4, .collate = m);
        lg_batch b;
        assert_false(lg_loader_next(l, &b));
        assert_error(c, LG_ERR_ARGUMENT, "lg_mixup: y of sample 3 of the batch is 3, not in 0 to 2");
        assert_null(lg_loader_open(c, lg_dataset_tensors(c, lg_cast(x, LG_U8), y), 4, .collate = m));
        assert_error(c, LG_ERR_DTYPE, "lg_mixup: x is u8");
        assert_null(lg_loader_open(c, lg_dataset_tensors(c, x, x), 4, .collate = m));
        assert_error(c, LG_ERR_ARGUMENT, "lg_mixup: the second field is f32 (2,); it must be class numbers, i64 ()");
        assert_null(lg_loader_open(c, lg_dataset_list(c, LG_LIST(x)), 4, .collate = m));
        assert_error(c, LG_ERR_ARGUMENT, "lg_mixup: the second field is missing; it must be");
        assert_null(lg_mixup(c));
        assert_error(c, LG_ERR_ARGUMENT, "lg_mixup: classes is 0; it must be given");
        assert_null(lg_mixup(c, .classes = LG_ZERO_INT));
        assert_error(c, LG_ERR_ARGUMENT, "lg_mixup: classes is ");
        assert_null(lg_mixup(c, .alpha = NAN, .classes = 3));
        assert_error(c, LG_ERR_ARGUMENT, "lg_mixup: alpha is nan; it must be from 0.001 to 1000");
        assert_null(lg_mixup(NULL, .classes = 3));
        assert_null(lg_mixup(c, .alpha = -1, .classes = 3));
        assert_error(c, LG_ERR_ARGUMENT, "lg_mixup: alpha is -1");
        lg_close(c);
}

static bool nothing(lg_sample *s, void *user)
{
        (void)s, (void)user;
        return true;
}

TEST_CASE(ragged_fields_are_refused)
{
        lg_ctx *c = open_ctx();
        lg_collate *m = lg_mixup(c, .classes = 3);
        const lg_field x = LG_FIELD("x", LG_F32, LG_SHAPE(2)), y = LG_FIELD("y", LG_I64, LG_SHAPE_0D);
        const lg_field ragged = LG_RAGGED_FIELD("r", LG_F32, LG_SHAPE(2), 0);
        assert_null(lg_loader_open(c, lg_dataset_new(c, 4, LG_FIELDS(ragged, y), nothing, NULL), 2, .collate = m));
        assert_error(c, LG_ERR_DTYPE, "lg_mixup: r is f32, ragged; samples that are mixed are f32 or f64, of one size");
        assert_null(lg_loader_open(c, lg_dataset_new(c, 4, LG_FIELDS(x, y, ragged), nothing, NULL), 2, .collate = m));
        assert_error(c, LG_ERR_ARGUMENT, "lg_mixup: r is ragged; such fields cannot be mixed");
        lg_close(c);
}

/* A field behind the label stays; one sample alone is mixed with itself; the collation outlives its handle. */
TEST_CASE(other_fields_stay)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_arange(c, 0, 5, 1, .dtype = LG_F32, .device = lg_cpu()), *y = lg_cast(x, LG_I64),
                  *z = lg_cast(x, LG_U8);
        lg_collate *m = lg_mixup(c, .alpha = 2, .classes = 5);
        for (int workers = 0; workers < 3; workers++) {
                lg_loader *l = lg_loader_open(c, lg_dataset_list(c, LG_LIST(x, y, z)), 2, .collate = m, .seed = 1,
                                              .workers = workers);
                if (workers == 2)
                        lg_collate_free(m);
                lg_each_batch(b, l)
                {
                        double v[2], p[10];
                        assert_int_equal(b.fields, 3);
                        assert_int_equal(lg_dtype_of(b.field[2]), LG_U8);
                        int64_t n = read_all(b.field[2], v, 2);
                        assert_int_equal(n, b.index < 2 ? 2 : 1);
                        for (int64_t k = 0; k < n; k++)
                                assert_near(v[k], (double)(2 * b.index + k), 0);
                        read_all(b.x, v, 2);
                        assert_int_equal(read_all(b.y, p, 10), 5 * n);
                        if (n == 1) {
                                assert_near(v[0], 4, 1e-6);
                                assert_near(p[4], 1, 1e-6);
                        }
                }
                assert_ok(c);
                lg_loader_close(l);
        }
        lg_close(c);
}

/* Soft labels train: their cross-entropy is the mixed one of the classes. */
TEST_CASE(mixed_labels_have_a_loss)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_arange(c, 0, 6, 1, .dtype = LG_F32, .device = lg_cpu()),
                  *y = lg_arange(c, 0, 2, 1, .dtype = LG_I64, .device = lg_cpu());
        lg_loader *l = lg_loader_open(c, lg_dataset_tensors(c, lg_reshape(x, LG_SHAPE(2, 3)), y), 2, .seed = 5,
                                      .collate = lg_mixup(c, .alpha = 1, .classes = 3));
        lg_batch b;
        double v[6], p[6], loss = 0;
        assert_true(lg_loader_next(l, &b));
        read_all(b.x, v, 6);
        read_all(b.y, p, 6);
        for (int i = 0; i < 6; i++) {
                const double *row = v + i / 3 * 3;
                loss -= p[i] * (v[i] - log(exp(row[0]) + exp(row[1]) + exp(row[2]))) / 2;
        }
        assert_near(lg_item(lg_cross_entropy(b.x, b.y)), loss, 1e-5);
        assert_ok(c);
        lg_close(c);
}
