/* macros.c - every macro of the public header once; compiled as C11 and as C++20, and run. */
#include <grad.h>

static lg_tensor *square(lg_ctx *c, lg_list in, void *user)
{
        (void)c;
        (void)user;
        return lg_sum(lg_square(in.items[0]));
}

static lg_tensor *forward(lg_module *m, lg_list in, void *user)
{
        (void)m;
        (void)user;
        return lg_add(in.items[0], in.items[1]);
}

static int creations(lg_ctx *c)
{
        float data[2] = {1, 2};
        int n = 2;
        lg_tensor *a = lg_zeros(c, LG_SHAPE(n, 3)), *b = lg_ones(c, LG_SHAPE(2, 3), .dtype = LG_F64);
        lg_tensor *d = lg_full(c, 2, LG_SHAPE_0D), *e = lg_empty(c, LG_SHAPE(2));
        lg_tensor *s = lg_scalar(c, 1.5, .requires_grad = true), *r = lg_arange(c, 0, n, 1, .dtype = LG_F32);
        lg_tensor *f = lg_from(c, data, LG_SHAPE(2)), *g = lg_borrow(c, data, NULL, NULL, LG_SHAPE(n));
        lg_tensor *u = lg_uniform(c, -1, 1, LG_SHAPE(2)), *w = lg_normal(c, 0, 1, LG_SHAPE(2));
        lg_tensor *p = lg_permutation(c, n, .device = lg_cpu()), *t = lg_slice(r, 0, 0, LG_MAX, .step = 1);
        return a && b && d && e && s && r && f && g && u && w && p && t;
}

static int operations(lg_ctx *c)
{
        lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(2, 3), .requires_grad = true);
        int64_t labels[2] = {0, 2};
        lg_tensor *y = lg_from(c, labels, LG_SHAPE(2), .dtype = LG_I64);
        lg_tensor *a = lg_sum(x), *b = lg_mean(x, .dims = LG_DIMS(0), .keep_dim = true), *d = lg_amax(x, .dims = LG_DIMS(-1));
        lg_tensor *e = lg_amin(x), *f = lg_argmax(x), *g = lg_var(x, .correction = LG_ZERO);
        lg_tensor *h = lg_cross_entropy(x, y, .reduction = LG_SUM), *m = lg_mse(x, lg_detach(x)), *k = lg_cat(LG_LIST(x, x), 0);
        lg_tensor *dx = lg_grad(LG_LIST(h), LG_LIST(x), .retain_graph = true);
        bool ok = lg_backward(h);
        lg_no_grad(c)
        {
                ok = ok && lg_fill_(x, 0);
        }
        return ok && a && b && d && e && f && g && m && k && dx;
}

static int upper_floors(lg_ctx *c)
{
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 3, 4, .no_bias = true), lg_nn_relu(c));
        lg_module *own = lg_nn_module(c, "Add", forward);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)), *y = lg_forward(net, x), *z = lg_forward(own, x, x);
        lg_optimizer *sgd = lg_sgd(c, lg_parameters(net), 0.1, .momentum = 0.9);
        lg_optimizer *adam = lg_adam(c, lg_parameters(net), 1e-3, .weight_decay = 0.01);
        lg_dataset *data = lg_dataset_tensors(c, x, x, .scale = 2);
        lg_loader *l = lg_loader_open(c, data, 2, .shuffle = true);
        lg_batch batch;
        return net && own && y && z && sgd && adam && data && l && lg_loader_next(l, &batch);
}

static int checks(lg_ctx *c)
{
        lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(3), .dtype = LG_F64, .requires_grad = true);
        return lg_gradcheck(c, square, LG_LIST(x)) && lg_gradgradcheck(c, square, LG_LIST(x), .tolerance = 1e-6);
}

int main(void)
{
        lg_ctx *c = lg_open(), *other = lg_open_with(.threads = 1, .seed = 3);
        int ok = c && other && creations(c) && operations(c) && upper_floors(c) && checks(c) && !lg_error(c);
        lg_dataset *none = lg_fashion_mnist(c, "train", .folder = "/nowhere");
        ok = ok && !none && lg_error_code_of(c) != LG_ERR_NONE && LG_VERSION_MAJOR == 0 && LG_VERSION_MINOR == 1 &&
             LG_VERSION_PATCH == 0 && sizeof LG_VERSION > 5;
        lg_close(other);
        lg_close(c);
        return ok ? 0 : 1;
}
