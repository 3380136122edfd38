/* test_models.c - the networks of models/ train as PyTorch's do: losses from weights and batches given by a formula.
 *
 * The formulas are those of data/models.py, which made data/models.txt.
 */
#include "test.h"
#include "../models/models.h"

/* A hash of two numbers in [0, 1). */
static double u(uint64_t k, uint64_t i)
{
        uint64_t x = (i * 2654435761u + k * 40503u + 12345u) & 0xffffffffu;
        x ^= x >> 16;
        x = (x * 0x7feb352du) & 0xffffffffu;
        x ^= x >> 15;
        x = (x * 0x846ca68bu) & 0xffffffffu;
        x ^= x >> 16;
        return (double)x / 4294967296.0;
}

typedef struct filling {
        uint64_t k;
} filling;

static void fill_one(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        filling *f = user;
        size_t length = strlen(path);
        int64_t n = lg_numel(t);
        if (is_buffer)
                return;
        bool norm_weight = lg_ndim_of(t) == 1 && length > 6 && !strcmp(path + length - 6, "weight");
        double bound = lg_ndim_of(t) > 1 ? sqrt(3.0 / (double)(n / lg_size_of(t, 0))) : 0.1;
        double *v = malloc((size_t)n * sizeof *v);
        for (int64_t i = 0; i < n; i++)
                v[i] = (2 * u(f->k, (uint64_t)i) - 1) * bound + (norm_weight ? 1 : 0);
        lg_write(t, v, LG_F64, (size_t)n * sizeof *v);
        free(v);
        f->k++;
}

static lg_batch make_batch(lg_ctx *c, int t, int count, int side)
{
        int64_t labels[64], pixels = (int64_t)side * side;
        float *x = malloc((size_t)(count * pixels) * sizeof *x);
        for (int n = 0; n < count; n++) {
                labels[n] = (3 * n + t) % 10;
                for (int64_t p = 0; p < pixels; p++) {
                        double wave = sin(0.1 * (double)(labels[n] + 1) * (double)(p / side + 2 * (p % side)));
                        x[n * pixels + p] =
                                (float)(0.3 * u(1000 + (uint64_t)t, (uint64_t)(n * pixels + p)) + 0.7 * wave);
                }
        }
        lg_batch b = {.x = lg_from(c, x, LG_SHAPE(count, 1, side, side))};
        b.y = lg_from(c, labels, LG_SHAPE(count), .dtype = LG_I64);
        free(x);
        return b;
}

static void losses_of(const char *name, lg_dtype amp, int count, int side, double lr, int steps, double *ret)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_model(c, name);
        lg_no_grad(c)
        {
                lg_each_tensor(net, fill_one, &(filling){0});
        }
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), lr, .momentum = 0.9);
        lg_scaler *s = lg_scaler_new(c);
        for (int t = 0; t < steps; t++) {
                lg_scope scope = lg_scope_begin(c);
                lg_batch b = make_batch(c, t, count, side);
                lg_tensor *loss = NULL;
                lg_autocast(c, amp) loss = lg_cross_entropy(lg_forward(net, b.x), b.y);
                lg_zero_grad(opt);
                if (amp == LG_F16)
                        assert_true(lg_scaler_backward(s, loss) && lg_scaler_step(s, opt) && lg_scaler_update(s));
                else
                        assert_true(lg_backward(loss) && lg_step(opt));
                ret[t] = lg_item(loss);
                lg_scope_end(c, scope);
        }
        assert_ok(c);
        lg_close(c);
}

static void check(const char *name, int count, int side, double lr)
{
        enum { most = 30, known = 5 };
        const bool all = !is_slow() || (!SANITIZED && !strcmp(name, "lenet"));
        const int steps = all ? most : SANITIZED ? 2 : known;
        double got[most], wanted[known];
        char path[4096], line[64];
        const char *folder = getenv("LG_TEST_DATA");
        snprintf(path, sizeof path, "%s/models.txt", folder ? folder : "tests/data");
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        int found = 0;
        while (found < known && fscanf(f, "%63s", line) == 1)
                for (int i = 0; !strcmp(line, name) && i < known; i++)
                        found += fscanf(f, "%lf", &wanted[i]);
        fclose(f);
        assert_int_equal(found, known);
        losses_of(name, LG_F32, count, side, lr, steps, got);
        /* Batch norms over few images multiply a difference of rounding by about six in each step. */
        for (int i = 0; i < known && i < steps; i++)
                assert_near(got[i], wanted[i], strcmp(name, "resnet18") ? 1e-5 : 1e-5 * pow(6, i));
        if (!all)
                return;
        double first = 0, last = 0;
        for (int i = 0; i < 10; i++) {
                first += got[i];
                last += got[steps - 10 + i];
        }
        assert_true(last < 0.7 * first);
}

TEST_CASE(lenet_as_pytorch)
{
        check("lenet", 32, 28, 0.01);
}

TEST_CASE(cnn_as_pytorch)
{
        check("cnn", 32, 28, 0.01);
}

TEST_CASE(resnet18_as_pytorch)
{
        check("resnet18", 24, 16, 0.0003);
}

static void halves_follow_f32(const char *name, int count, int side, double lr, int steps)
{
        double wide[10], got[10];
        losses_of(name, LG_F32, count, side, lr, steps, wide);
        for (int i = 0; i < 2; i++) {
                losses_of(name, i ? LG_F16 : LG_BF16, count, side, lr, steps, got);
                for (int t = 0; t < steps; t++)
                        assert_near(got[t] / wide[t], 1, 0.02);
        }
}

TEST_CASE(mixed_precision_follows_f32)
{
        const int steps = is_slow() ? 3 : 10;
        halves_follow_f32("lenet", 32, 28, 0.01, steps);
        halves_follow_f32("cnn", 32, 28, 0.003, SANITIZED ? 1 : steps);
        halves_follow_f32("resnet18", 24, 16, 0.0003, is_slow() ? 1 : 3);
}

TEST_CASE(names)
{
        lg_ctx *c = open_ctx();
        assert_non_null(lg_model(c, "vgg"));
        assert_null(lg_model(c, "alexnet"));
        assert_error(c, LG_ERR_ARGUMENT, "alexnet");
        assert_non_null(strstr(lg_model_names(), "resnet18"));
        lg_scope scope = lg_scope_begin(c);
        lg_module *net = lg_model(c, "vgg");
        assert_non_null(lg_forward(net, lg_zeros(c, LG_SHAPE(2, 1, 28, 28))));
        lg_scope_end(c, scope);
        assert_int_equal(lg_parameter_numel(lg_model_resnet18(c, 3, 10)), 11173962); /* as kuangliu's for CIFAR-10 */
        assert_ok(c);
        lg_close(c);
}
