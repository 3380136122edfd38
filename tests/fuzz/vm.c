/* vm.c - operands, results and the life of the machine's contexts. */
#include "vm.h"

#define MOST_ELEMENTS 4096 /* of an operand: views can have many without memory */

/* ---- operands ---- */

uint8_t byte(vm *m)
{
        return m->at < m->end ? *m->at++ : 0;
}

bool flag(vm *m)
{
        return byte(m) & 1;
}

int64_t size(vm *m)
{
        static const int64_t extremes[] = {
                INT64_MAX, INT64_MIN, -1,    -2,   INT64_MAX / 2, INT64_MAX - 1, 1LL << 31, 1LL << 32,
                1LL << 62, 1LL << 33, 65536, 1000, INT64_MAX / 4, INT32_MAX,     INT32_MIN, LG_ZERO_INT};
        uint8_t b = byte(m);
        return b < 0xE0 ? b % 9 : extremes[b % COUNT(extremes)];
}

int64_t small(vm *m)
{
        return 1 + byte(m) % 4;
}

int dim(vm *m)
{
        static const int extremes[] = {INT_MAX, INT_MIN, -9, 8, 9, -8, 7, 100};
        uint8_t b = byte(m);
        return b < 0xE0 ? b % 7 - 3 : extremes[b % COUNT(extremes)];
}

double number(vm *m)
{
        static const double values[] = {0,     1,       -1,     0.5,       2,        3,    1e-3,   1e30,
                                        -1e30, NAN,     0.9,    -INFINITY, INFINITY, 0.99, 1e308,  5e-324,
                                        0.1,   LG_ZERO, 0x1p63, -0x1p63,   0x1p53,   -2,   1e-300, 10,
                                        300,   -0.0,    1.5,    -0x1p31,   4};
        return values[byte(m) % COUNT(values)];
}

lg_dtype dtype(vm *m)
{
        uint8_t b = byte(m);
        return b < 0xF0 ? (lg_dtype)(b % (LG_BOOL + 1)) : (lg_dtype)b;
}

lg_dtype float_dtype(vm *m)
{
        uint8_t b = byte(m);
        return b < 0xE0 ? (lg_dtype)(b % (LG_BF16 + 1)) : dtype(m);
}

lg_device device(vm *m)
{
        const lg_device others[] = {LG_DEVICE(LG_DEVICE_SHADOW, 0),  LG_DEVICE(LG_DEVICE_CUDA, 0),
                                    LG_DEVICE(LG_DEVICE_CPU, 1),     LG_DEVICE(LG_DEVICE_CUDA, -1),
                                    LG_DEVICE((lg_device_type)9, 0), LG_DEVICE(LG_DEVICE_NONE, 5),
                                    LG_DEVICE(LG_DEVICE_SHADOW, 1)};
        uint8_t b = byte(m);
        return b < 0xC0 ? LG_DEVICE(b & 1 ? LG_DEVICE_CPU : LG_DEVICE_NONE, 0) : others[b % COUNT(others)];
}

lg_shape shape(vm *m)
{
        uint8_t b = byte(m);
        lg_shape s = {.ndim = b < 0xE0 ? b % 5 : b < 0xFC ? b % 9 : b < 0xFE ? INT_MIN : 9};
        for (int i = 0; i < s.ndim && i < LG_MAX_DIMS; i++)
                s.size[i] = size(m);
        return s;
}

lg_dims dims(vm *m)
{
        uint8_t b = byte(m);
        lg_dims d = {.count = b < 0xF0 ? b % 5 : b < 0xFE ? b % 9 : b == 0xFE ? -1 : 9};
        for (int i = 0; i < d.count && i < LG_MAX_DIMS; i++)
                d.dim[i] = dim(m);
        return d;
}

lg_tensor *tensor(vm *m)
{
        uint8_t b = byte(m);
        const side *s = b >= 0xF8 ? &m->sides[m->now == m->sides] : m->now;
        lg_tensor *t = b >= 0xF0 && b < 0xF8 ? NULL : s->tensors[b % TENSORS];
        m->odd = m->odd || !t;
        return t;
}

lg_tensor *maybe(vm *m)
{
        bool odd = m->odd;
        lg_tensor *t = flag(m) ? tensor(m) : NULL;
        m->odd = odd;
        return t;
}

lg_tensor *fresh(vm *m, lg_shape s)
{
        lg_tensor *t = lg_uniform(m->now->ctx, -1, 1, s, .dtype = float_dtype(m), .requires_grad = flag(m));
        m->odd = m->odd || !t;
        return t;
}

lg_tensor *indices(vm *m, lg_shape s, int64_t n)
{
        lg_tensor *t = flag(m) ? tensor(m) : lg_zeros(m->now->ctx, s, .dtype = LG_I64);
        int64_t i = byte(m);
        if (lg_dtype_of(t) == LG_I64 && n > 0 && lg_numel(t) > 0)
                lg_fill_(t, (double)(i < 0xF0 ? i % n : i - 0xF4));
        m->odd = m->odd || !t;
        return t;
}

lg_list list(vm *m, lg_tensor *room[4])
{
        uint8_t b = byte(m);
        int64_t n = b < 0xF0 ? b % 4 + 1 : b & 1 ? 0 : 1;
        for (int64_t i = 0; i < n; i++)
                room[i] = tensor(m);
        const bool nothing = n == 0 || b == 0xFE;
        m->odd = m->odd || nothing;
        return LG_LIST_OF(n, nothing ? NULL : room);
}

lg_module *module(vm *m)
{
        uint8_t path = byte(m);
        lg_module *a = m->now->modules[path % MODULES];
        for (path /= MODULES; a && path && lg_child_count(a); path /= 4)
                a = lg_child(a, path % 4 % lg_child_count(a));
        m->odd = m->odd || !a;
        return a;
}

const void *hand(vm *m, const void *options, size_t size, size_t kept)
{
        const way how = m->handed || (m->way == NONE && kept > sizeof size) ? AS_THEY_ARE : m->way;
        size_t says = size, room = size;
        if (how == AS_THEY_ARE)
                return options;
        if (how == OLDER) /* of whole pointers */
                room = says = kept + m->amount % ((size - kept) / 8 + 1) * 8;
        else if (how == NEWER || how == NEWER_SET)
                room = says = size + 8 + m->amount % 4 * 8;
        else if (how == SIZELESS)
                says = m->amount % sizeof says;
        char *copy = calloc(1, room); /* no more than it says, so that sanitizers find what reads on */
        FUZZ_CHECK(copy, "no memory");
        memcpy(copy, options, room < size ? room : size);
        if (how == NEWER_SET)
                copy[m->amount & 4 ? size : room - 1] = 1;
        if (how == NEWER_SET && m->amount & 4)
                says = SIZE_MAX;
        memcpy(copy, &says, sizeof says);
        m->odd = m->odd || how == OLDER || how == NONE; /* what the machine asked for may be missing */
        m->refused = how == NEWER_SET || how == SIZELESS;
        m->unread = how == SIZELESS || (how == NEWER_SET && m->amount & 4);
        m->handed = copy;
        m->way = AS_THEY_ARE;
        return how == NONE ? NULL : copy;
}

/* ---- results ---- */

bool failed(const vm *m)
{
        return lg_error(m->sides[0].ctx) || (m->sides[1].ctx && lg_error(m->sides[1].ctx));
}

void check_done(vm *m, bool ok)
{
        FUZZ_CHECK(ok || m->odd || failed(m), "a call failed without an error");
        FUZZ_CHECK(!ok || m->odd || !failed(m), "a call succeeded with an error: %s, %s",
                   lg_error(m->sides[0].ctx) ? lg_error(m->sides[0].ctx) : "none",
                   m->sides[1].ctx && lg_error(m->sides[1].ctx) ? lg_error(m->sides[1].ctx) : "none");
}

static void check_shape(const lg_tensor *t)
{
        lg_shape s = lg_shape_of(t);
        int64_t n = 1;
        FUZZ_CHECK(s.ndim >= 0 && s.ndim <= LG_MAX_DIMS, "%d dimensions", s.ndim);
        for (int i = 0; i < s.ndim; i++) {
                FUZZ_CHECK(s.size[i] >= 0, "size %lld", (long long)s.size[i]);
                n = s.size[i] == 0 ? 0 : n;
        }
        for (int i = 0; i < s.ndim && n; i++)
                FUZZ_CHECK(!__builtin_mul_overflow(n, s.size[i], &n), "too many elements");
        FUZZ_CHECK(n == lg_numel(t), "%lld elements, not %lld", (long long)lg_numel(t), (long long)n);
        FUZZ_CHECK(lg_dtype_of(t) > LG_DTYPE_NONE && lg_dtype_of(t) <= LG_BOOL, "dtype %d", lg_dtype_of(t));
}

void give_read(vm *m, lg_tensor *t)
{
        if (!lg_ctx_of(t))
                return;
        side *s = lg_ctx_of(t) == m->sides[0].ctx ? &m->sides[0] : &m->sides[1];
        FUZZ_CHECK(lg_ctx_of(t) == s->ctx, "a tensor of no context");
        check_shape(t);
        if (lg_numel(t) <= MOST_ELEMENTS)
                s->tensors[s->next++ % TENSORS] = t;
        else
                lg_free(t);
}

void give(vm *m, lg_tensor *t)
{
        check_done(m, t != NULL);
        FUZZ_CHECK(!t || m->odd || lg_ctx_of(t), "a call returned a dead tensor");
        give_read(m, t);
}

void check_gradient(const lg_tensor *g, const lg_tensor *of)
{
        lg_shape a = lg_shape_of(g), b = lg_shape_of(of);
        if (!lg_ctx_of(g) || !lg_ctx_of(of))
                return;
        FUZZ_CHECK(lg_ctx_of(g) == lg_ctx_of(of) && lg_dtype_of(g) == lg_dtype_of(of) &&
                           lg_device_equal(lg_device_of(g), lg_device_of(of)) && a.ndim == b.ndim &&
                           !memcmp(a.size, b.size, (size_t)a.ndim * sizeof *a.size),
                   "a gradient of another kind than its tensor");
}

static uint64_t hash(uint64_t h, const lg_tensor *t)
{
        size_t bytes = (size_t)lg_numel(t) * lg_dtype_size(lg_dtype_of(t));
        unsigned char *data = calloc(1, bytes + 1);
        FUZZ_CHECK(data, "no memory");
        lg_read(t, data, lg_dtype_of(t), bytes);
        for (size_t i = 0; i < bytes; i++)
                h = (h ^ data[i]) * 0x100000001b3u;
        free(data);
        return h;
}

uint64_t parameter_values(vm *m)
{
        side *s = m->now;
        uint64_t h = 0xcbf29ce484222325u;
        int64_t fail_at = s->memory.fail_at, calls = s->memory.calls, limit = s->memory.limit;
        s->memory.fail_at = s->memory.limit = 0; /* the machine's own reading always works */
        for (int i = 0; i < MODULES; i++) {
                lg_list l = lg_parameters(s->modules[i]);
                for (int64_t k = 0; k < l.count; k++)
                        h = hash(h, l.items[k]);
        }
        s->memory.fail_at = fail_at;
        s->memory.calls = calls;
        s->memory.limit = limit;
        m->odd = m->odd || failed(m); /* reading told what a kernel has found in data */
        return h;
}

/* ---- running ---- */

/* What every program begins with: tensors of many kinds, small networks, what trains them. */
static void fill(side *s)
{
        lg_ctx *c = s->ctx;
        lg_tensor *const first[TENSORS] = {
                lg_uniform(c, -1, 1, LG_SHAPE(2, 3), .requires_grad = true),
                lg_uniform(c, -1, 1, LG_SHAPE(3, 2), .requires_grad = true),
                lg_uniform(c, -1, 1, LG_SHAPE(2, 3), .dtype = LG_F64, .requires_grad = true),
                lg_ones(c, LG_SHAPE(3)),
                lg_ones(c, LG_SHAPE_0D, .requires_grad = true),
                lg_ones(c, LG_SHAPE(2, 3), .dtype = LG_F16, .requires_grad = true),
                lg_ones(c, LG_SHAPE(2, 3), .dtype = LG_I64),
                lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64),
                lg_ones(c, LG_SHAPE(2, 3), .dtype = LG_BOOL),
                lg_uniform(c, -1, 1, LG_SHAPE(2, 2, 5, 4), .requires_grad = true),
                lg_uniform(c, -1, 1, LG_SHAPE(2, 2, 3, 3), .requires_grad = true),
                lg_uniform(c, -1, 1, LG_SHAPE(1, 2, 7)),
                lg_ones(c, LG_SHAPE(0, 3), .requires_grad = true),
                lg_ones(c, LG_SHAPE(3, 1), .dtype = LG_BF16),
                lg_ones(c, LG_SHAPE(3, 3), .dtype = LG_U8),
                lg_transpose(lg_uniform(c, -1, 1, LG_SHAPE(4, 3, 2), .requires_grad = true), 0, 2),
        };
        memcpy(s->tensors, first, sizeof first);
        s->modules[0] = lg_nn_sequential(c, lg_nn_linear(c, 3, 4), lg_nn_relu(c), lg_nn_linear(c, 4, 2));
        s->modules[1] = lg_nn_sequential(c, lg_nn_conv2d(c, 2, 2, 3, .padding = 1), lg_nn_batch_norm2d(c, 2));
        s->optimizers[0] = lg_adam(c, lg_parameters(s->modules[0]), 0.1);
        s->schedulers[0] = lg_step_lr(s->optimizers[0], 2);
        s->datasets[0] = lg_dataset_tensors(c, s->tensors[0], s->tensors[7], .scale = 2);
        s->loaders[0] = lg_loader_open(c, s->datasets[0], 1, .shuffle = true, .seed = 1);
        FUZZ_CHECK(!lg_error(c) && s->loaders[0], "%s", lg_error(c));
}

void side_open(side *s)
{
        *s = (side){.memory.limit = MOST_MEMORY};
        s->ctx = lg_open(.threads = 1, .seed = 7, FAILING(&s->memory));
        FUZZ_CHECK(s->ctx, "no memory for a context");
        fill(s);
}

void side_close(vm *m, side *s)
{
        side last = *s;
        m->now = s;
        /* Release functions find the tensors, which have ended, but nothing that is freed with the context. */
        *s = (side){.ctx = last.ctx, .memory = last.memory};
        memcpy(s->tensors, last.tensors, sizeof last.tensors);
        memcpy(s->scopes, last.scopes, sizeof last.scopes);
        lg_close(s->ctx);
        FUZZ_CHECK(s->memory.bytes == 0 && s->memory.allocs == s->memory.frees, "%lld bytes are left",
                   (long long)s->memory.bytes);
        *s = (side){0};
        side *other = &m->sides[s == m->sides];
        m->now = other->ctx ? other : s;
}

static void check_error(vm *m, side *s)
{
        lg_error_code code = lg_error_code_of(s->ctx);
        const char *text = lg_error(s->ctx);
        FUZZ_CHECK((code == LG_ERR_NONE) == !text && code <= LG_ERR_CUDA, "error %d: %s", code, text ? text : "NULL");
        FUZZ_CHECK(!text || (*text && strlen(text) < 1024), "an error without a message");
        if (text && getenv("FUZZ_VERBOSE"))
                fprintf(stderr, "        %s: %s\n", lg_error_name(code), text);
        if (text && (m->depth ? byte(m) % 4 == 1 : byte(m) % 4 != 3)) {
                lg_clear_error(s->ctx);
                m->odd = m->odd || m->depth;
        }
}

static const struct {
        call *run;
        bool inside;
        const char *name;
} calls[] = {
#define CALL(name, inside) {call_##name, inside, #name},
#include "calls.def"
#undef CALL
};

void step(vm *m)
{
        size_t i = byte(m) % 128;
        if (m->steps-- <= 0 || (i < COUNT(calls) && m->depth && !calls[i].inside))
                return;
        if (getenv("FUZZ_VERBOSE"))
                fprintf(stderr, "%*s%s\n", m->depth * 4 + 4, "", i < COUNT(calls) ? calls[i].name : "made");
        bool odd = m->odd, refused = m->refused, unread = m->unread;
        void *handed = m->handed;
        m->odd = failed(m);
        m->refused = m->unread = false;
        m->handed = NULL;
        (i < COUNT(calls) ? calls[i].run : call_made)(m);
        FUZZ_CHECK(!m->refused || m->odd || failed(m), "options that no header has were taken");
        free(m->handed);
        m->handed = handed;
        m->refused = refused;
        m->unread = unread;
        m->odd = m->depth && (m->odd || odd);
        for (int k = 0; k < 2; k++)
                if (m->sides[k].ctx)
                        check_error(m, &m->sides[k]);
}

void mischief(vm *m, lg_ctx *in)
{
        uint8_t b = byte(m);
        lg_ctx *around = m->in;
        m->in = in;
        m->depth++;
        for (int i = 0; i < b % 4 && m->depth <= 3; i++) {
                m->odd = true;
                step(m);
        }
        m->depth--;
        m->in = around;
}

debt *owe(vm *m, size_t bytes)
{
        debt *d = malloc(sizeof *d);
        FUZZ_CHECK(d, "no memory");
        *d = (debt){m, m->now->ctx, calloc(1, bytes + 1)};
        FUZZ_CHECK(d->memory, "no memory");
        m->lent++;
        return d;
}

void forgive(debt *d)
{
        d->m->lent--;
        free(d->memory);
        free(d);
}

void release(void *user)
{
        debt *d = user;
        mischief(d->m, d->ctx);
        forgive(d);
}
