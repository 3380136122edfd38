/* padding.c - a program of its time, as program.c, whose structs of options lie in memory full of garbage: only what it
 * sets, and its size, may be looked at. */
#include <grad.h>
#include <string.h>

static int failures;

static void expect(bool ok, const char *what)
{
        if (!ok)
                printf("%s\n", what);
        failures += !ok;
}
#define EXPECT(condition) expect((condition), #condition)

/* o is garbage but for its members, all of which are set one by one, and its size. */
#define GARBAGE(o) (memset(&(o), 0xA5, sizeof(o)), *(size_t *)(void *)&(o) = sizeof(o))

/* Two structs with garbage behind each. */
typedef struct reduce_room {
        lg_reduce_options o;
        unsigned char behind[64];
} reduce_room;

static void reductions(lg_ctx *c)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3));
        reduce_room r;
        memset(&r, 0x5A, sizeof r);
        GARBAGE(r.o);
        memset(&r.o.dims, 0x77, sizeof r.o.dims);
        r.o.dims.count = 1;
        r.o.dims.dim[0] = 1; /* the others are not given and may be anything */
        r.o.keep_dim = false;
        EXPECT(lg_ndim_of(lg_sum_with(x, &r.o)) == 1 && lg_error(c) == NULL);
        r.o.keep_dim = true;
        EXPECT(lg_ndim_of(lg_mean_with(x, &r.o)) == 2 && lg_error(c) == NULL);
}

static void creations(lg_ctx *c)
{
        lg_create_options o;
        GARBAGE(o);
        o.dtype = LG_F64;
        o.device = lg_cpu();
        o.requires_grad = true;
        lg_tensor *x = lg_full_with(c, LG_SHAPE(3), 2, &o);
        EXPECT(x && lg_dtype_of(x) == LG_F64 && lg_requires_grad(x));
        lg_shape s;
        memset(&s, 0xA5, sizeof s);
        s.ndim = 1;
        s.size[0] = 3;
        EXPECT(lg_numel(lg_reshape(x, s)) == 3);
        lg_backward_options b;
        GARBAGE(b);
        b.grad = NULL;
        b.retain_graph = b.create_graph = false;
        EXPECT(lg_backward_with(lg_sum(x), &b));
}

static void convolutions(lg_ctx *c)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(1, 1, 4, 4)), *w = lg_ones(c, LG_SHAPE(1, 1, 3, 3));
        lg_conv2d_options o;
        GARBAGE(o);
        o.stride = 2;
        o.padding = o.dilation = o.groups = 0;
        o.strides.given = o.dilations.given = 0; /* h and w are garbage */
        o.paddings = LG_PAIR(1, 1);
        EXPECT(lg_size_of(lg_conv2d_with(x, w, NULL, &o), 2) == 2 && lg_error(c) == NULL);
}

static void training(lg_ctx *c)
{
        lg_tensor *p = lg_ones(c, LG_SHAPE(2), .requires_grad = true);
        lg_sgd_options o;
        GARBAGE(o);
        o.momentum = 0.5;
        o.dampening = o.weight_decay = 0;
        o.nesterov = o.maximize = o.master = false;
        lg_optimizer *opt = lg_sgd_with(c, LG_LIST(p), 0.25, &o);
        lg_backward(lg_sum(p));
        EXPECT(lg_step(opt) && lg_item(lg_select(p, 0, 0)) == 0.75);
        lg_loader_options l;
        GARBAGE(l);
        l.shuffle = l.drop_last = false;
        l.workers = l.prefetch = 0;
        l.weights = NULL;
        l.collate = NULL;
        l.group = NULL;
        l.samples = 0;
        l.no_replacement = false;
        l.device.type = LG_DEVICE_NONE;
        l.seed = 1;
        lg_tensor *x = lg_arange(c, 0, 6, 1, .device = lg_cpu());
        lg_loader *loader = lg_loader_open_with(c, lg_dataset_tensors(c, x, x), 4, &l);
        struct {
                lg_batch b;
                unsigned char behind[64];
        } b;
        memset(&b, 0xA5, sizeof b);
        EXPECT(lg_loader_next(loader, &b.b) && b.b.count == 2 && b.behind[0] == 0xA5);
        EXPECT(lg_loader_next(loader, &b.b) && b.b.index == 1 && lg_numel(b.b.x) == 2 && b.behind[0] == 0xA5);
        EXPECT(!lg_loader_next(loader, &b.b));
}

int main(void)
{
        lg_open_options o;
        GARBAGE(o);
        o.threads = 1;
        o.seed = 1;
        o.alloc = NULL;
        o.free = NULL;
        o.user = NULL;
        lg_ctx *c = lg_open_with(&o);
        if (!c)
                return 1;
        reductions(c);
        creations(c);
        convolutions(c);
        training(c);
        if (lg_error(c)) {
                printf("%s\n", lg_error(c));
                failures++;
        }
        lg_close(c);
        printf("compiled with %s, run with %s: %d failures\n", LG_VERSION, lg_version(), failures);
        return failures > 0;
}
