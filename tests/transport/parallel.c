/* parallel.c - training on all ranks of a group beside training of one process with the whole batch:
 * parallel MODEL sgd|adam f32|f64 STEPS TOLERANCE [PART]..., run by mpirun with LIBGRAD_MPI, or alone. Parts: clip,
 * accumulate (two backwards a step), uneven (other batches on each rank), small (buckets of 64 KiB), scaler (a scaled
 * loss), few (12 samples, not 48). On the device that LG_TEST_DEVICE names. Prints "held" if all did, else what did
 * not.
 *
 * Rank 0 trains a copy on the whole batch by itself: losses and weights must agree with it, and weights must be the
 * same bits on all ranks.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "models.h"
#include "rank.h"

enum { BATCH = 48, FEW = 12 };

typedef struct way {
        const char *model;
        bool adam, clip, uneven, norms, scaler;
        int parts; /* of a step */
        lg_dtype dtype;
        int steps, batch;
        double tolerance;
        int64_t bucket_bytes;
} way;

static lg_optimizer *optimizer(const way *w, lg_module *net)
{
        /* A step of resnet18 that is greater makes more of rounding errors in f32 than it is compared by. */
        const double less = w->norms && w->dtype == LG_F32 ? 0.1 : 1;
        return w->adam ? lg_adam(c, lg_parameters(net), 1e-3 * less * less)
                       : lg_sgd(c, lg_parameters(net), 0.02 * less);
}

/* The loss of samples [from, to) of the batch of a step, by the weight that it has among the ranks. */
static lg_tensor *loss_of(lg_module *net, const way *w, lg_tensor *x, lg_tensor *y, int64_t from, int64_t to)
{
        lg_tensor *loss = lg_cross_entropy(lg_forward(net, lg_slice(x, 0, from, to)), lg_slice(y, 0, from, to));
        const int64_t part = (to - from) * w->parts;
        return w->uneven && w->norms && part < w->batch ? lg_mul_scalar(loss, (double)(part * size) / w->batch) : loss;
}

static bool backward(lg_scaler *s, lg_tensor *loss)
{
        return s ? lg_scaler_backward(s, loss) : lg_backward(loss);
}

/* One step of one module on its samples [from, to); accumulated in two halves of the batch, of each its part. s: NULL,
 * or what scales its loss. */
static double step(lg_module *net, lg_optimizer *opt, lg_scaler *s, const way *w, lg_tensor *x, lg_tensor *y,
                   int64_t from, int64_t to)
{
        const bool together = lg_sync_mode(net);
        double loss = 0;
        lg_zero_grad(opt);
        for (int i = 0; i < w->parts; i++) {
                const int64_t first = i * w->batch / w->parts;
                lg_tensor *l = loss_of(net, w, x, y, first + from / w->parts, first + to / w->parts);
                l = lg_mul_scalar(l, 1.0 / w->parts);
                if (together && i < w->parts - 1)
                        lg_no_sync(net) CHECK(backward(s, l));
                else
                        CHECK(backward(s, l));
                loss += lg_item(l);
        }
        CHECK(!s || lg_scaler_unscale(s, opt));
        if (w->clip)
                CHECK(lg_clip_grad_norm(lg_parameters(net), 0.5));
        CHECK(s ? lg_scaler_step(s, opt) && lg_scaler_update(s) : lg_step(opt));
        return loss;
}

/* Where the samples of a rank begin. */
static int64_t begin_of(const way *w, int r)
{
        if (w->uneven && r > 0 && r < size)
                return (int64_t)w->batch * r / size + (r % 2 ? 5 : -3);
        return (int64_t)w->batch * r / size;
}

static bool is_same_everywhere(lg_tensor *t)
{
        lg_tensor *first = lg_copy(lg_detach(t), lg_device_of(t));
        return lg_broadcast_(first, g, 0) && lg_item(lg_sum(lg_cast(lg_ne(first, lg_detach(t)), LG_F32))) == 0;
}

static double distance(lg_module *a, lg_module *b)
{
        double most = 0;
        const lg_list x = lg_parameters(a), y = lg_parameters(b);
        for (int64_t i = 0; i < x.count; i++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *d = lg_abs(lg_sub(lg_detach(x.items[i]), lg_detach(y.items[i])));
                const double far = lg_item(lg_amax(d)) / (lg_item(lg_amax(lg_abs(lg_detach(y.items[i])))) + 1e-3);
                most = far <= most ? most : far;
                lg_scope_end(c, scope);
        }
        return most;
}

static void train(const way *w)
{
        const lg_shape image = LG_SHAPE(w->batch, 1, 28, 28);
        lg_module *net = strcmp(w->model, "resnet18") ? lg_model(c, w->model) : lg_model_resnet18(c, 1, 10);
        CHECK(net && lg_module_cast(net, w->dtype));
        if (rank) /* a beginning of its own, which goes */
                lg_no_grad(c) lg_fill_(lg_parameters(net).items[0], rank);
        CHECK(lg_data_parallel(net, g, .bucket_bytes = w->bucket_bytes));
        lg_module *whole = rank ? NULL : lg_module_clone(net);
        CHECK(lg_sync_batch_norm(net, g));
        lg_optimizer *opt = optimizer(w, net), *whole_opt = rank ? NULL : optimizer(w, whole);
        lg_scaler *scaler = w->scaler ? lg_scaler_new(c) : NULL;
        lg_scaler *whole_scaler = w->scaler && !rank ? lg_scaler_new(c) : NULL;
        const int64_t from = begin_of(w, rank), to = begin_of(w, rank + 1);
        if (w->uneven && !w->norms)
                CHECK(lg_set_data_parallel_weight(net, (double)(to - from)));
        for (int i = 0; i < w->steps && !lg_error(c); i++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *x = lg_arange(c, 0, w->batch * 28 * 28, 1, .dtype = LG_F64);
                x = lg_reshape(lg_sin(lg_mul_scalar(lg_square(x), 1e-3 * (i + 1))), image);
                x = lg_cast(x, w->dtype);
                int64_t labels[BATCH];
                for (int k = 0; k < w->batch; k++)
                        labels[k] = k * 7 % 10;
                lg_tensor *y = lg_from(c, labels, LG_SHAPE(w->batch));
                double mine = step(net, opt, scaler, w, x, y, from, to) / size;
                if (w->uneven && !w->norms)
                        mine *= (double)((to - from) * size) / w->batch;
                const double sum = lg_item(lg_all_reduce(lg_full(c, LG_SHAPE_0D, mine, .dtype = LG_F64), g));
                const double all = rank ? sum : step(whole, whole_opt, whole_scaler, w, x, y, 0, w->batch);
                if (!(fabs(sum - all) <= w->tolerance * fabs(all))) {
                        fprintf(stderr, "step %d: the loss is %.17g, but %.17g alone\n", i, sum, all);
                        failures++;
                }
                const lg_list params = lg_parameters(net);
                for (int64_t k = 0; k < params.count; k++)
                        CHECK(is_same_everywhere(params.items[k]));
                lg_scope_end(c, scope);
        }
        CHECK(rank || w->dtype == LG_F32 || distance(net, whole) <= 100 * w->tolerance);
        lg_optimizer_free(opt);
        lg_module_free(net);
}

int main(int count, char **words)
{
        if (count < 6)
                return 2;
        way w = {.model = words[1],
                 .adam = !strcmp(words[2], "adam"),
                 .steps = atoi(words[4]),
                 .parts = 1,
                 .batch = BATCH};
        w.dtype = strcmp(words[3], "f64") ? LG_F32 : LG_F64;
        w.tolerance = atof(words[5]);
        w.norms = !strcmp(w.model, "resnet18");
        for (int i = 6; i < count; i++) {
                w.clip = w.clip || !strcmp(words[i], "clip");
                w.scaler = w.scaler || !strcmp(words[i], "scaler");
                w.parts = strcmp(words[i], "accumulate") ? w.parts : 2;
                w.batch = strcmp(words[i], "few") ? w.batch : FEW;
                w.uneven = w.uneven || !strcmp(words[i], "uneven");
                w.bucket_bytes = strcmp(words[i], "small") ? w.bucket_bytes : 1 << 16;
        }
        CHECK(join(120));
        if (g)
                train(&w);
        CHECK(!lg_error(c));
        lg_close(c);
        return verdict(0);
}
