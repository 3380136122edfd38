/* calls_make.c - calls that make, view, read and own tensors, and those of the context. */
#include "vm.h"

void call_random(vm *m)
{
        lg_shape s = shape(m);
        lg_create_options o =
                *LG_OPTIONS(lg_create_options, .dtype = float_dtype(m), .device = device(m), .requires_grad = flag(m));
        double a = number(m), b = number(m);
        lg_random_state was = lg_random_state_of(m->now->ctx);
        lg_tensor *t;
        switch (byte(m) % 4) {
        case 0:
                t = lg_uniform_with(m->now->ctx, a, b, s, HAND(m, o));
                FUZZ_CHECK(!failed(m) || m->odd || lg_random_state_of(m->now->ctx).counter == was.counter,
                           "numbers were drawn for nothing");
                give(m, t);
                return;
        case 1:
                give(m, lg_normal_with(m->now->ctx, a, b, s, HAND(m, o)));
                return;
        case 2:
                give(m, lg_permutation(m->now->ctx, size(m), .device = o.device));
                return;
        default:
                give(m, lg_uniform(m->now->ctx, -1, 1, s, .requires_grad = o.requires_grad));
        }
}

void call_from(vm *m)
{
        lg_shape s = {.ndim = 2, .size = {small(m), small(m)}};
        _Alignas(8) uint8_t data[16 * 8];
        for (size_t i = 0; i < sizeof data; i++)
                data[i] = i % 8 < 4 ? 0 : byte(m);
        /* Elements of the tensor's dtype, or of another one. */
        lg_dtype memory = data[126] < 0x40   ? LG_DTYPE_NONE
                          : data[126] < 0xF8 ? (lg_dtype)(data[126] % 9)
                                             : (lg_dtype)data[126];
        const void *from = flag(m) ? NULL : data;
        lg_create_options o = *LG_OPTIONS(lg_create_options, .dtype = dtype(m), .device = device(m));
        if (!o.dtype && data[126] % 2 == 0)
                memory = LG_F32; /* one of the two says it */
        give(m, lg_from_with(m->now->ctx, from, memory, s, HAND(m, o)));
}

void call_borrow(vm *m)
{
        lg_shape s = shape(m);
        int64_t n = 8;
        bool fits = s.ndim >= 0 && s.ndim <= LG_MAX_DIMS;
        for (int i = 0; fits && i < s.ndim; i++)
                fits = s.size[i] >= 0 && s.size[i] < 1000 && (n *= s.size[i]) < 100000;
        debt *d = owe(m, fits ? (size_t)n : 0);
        lg_dtype type = dtype(m);
        /* What does not fit into the memory is asked for only where that must be an error. */
        uint8_t b = fits ? byte(m) : 0xFF;
        void *memory = b > 0xF0 ? NULL : d->memory;
        lg_create_options o =
                *LG_OPTIONS(lg_create_options, .dtype = type, .device = device(m), .requires_grad = flag(m));
        lg_dtype typed = b % 8 == 7 ? type : type || b % 8 == 6 ? LG_DTYPE_NONE : LG_F32;
        give(m, lg_borrow_with(m->now->ctx, memory, typed, release, d, s, HAND(m, o)));
}

void call_image(vm *m)
{
        lg_shape s = {.ndim = 3 + byte(m) % 2, .size = {small(m), small(m)}};
        for (int i = 2; i < s.ndim; i++)
                s.size[i] = 1 + byte(m) % 9;
        give(m, fresh(m, s));
}

void call_reshape(vm *m)
{
        lg_tensor *t = tensor(m);
        give(m, lg_reshape(t, flag(m) ? LG_SHAPE(-1, small(m)) : shape(m)));
}

void call_slice(vm *m)
{
        lg_tensor *t = tensor(m);
        int d = dim(m);
        int64_t start = size(m);
        start = flag(m) && start > 0 ? -start : start;
        int64_t stop = flag(m) ? LG_MAX : size(m);
        lg_slice_options o = *LG_OPTIONS(lg_slice_options, .step = flag(m) ? 0 : size(m));
        give(m, lg_slice_with(t, d, start, stop, HAND(m, o)));
}

void call_expand(vm *m)
{
        lg_tensor *t = tensor(m);
        give(m, lg_expand(t, shape(m)));
}

void call_in_place(vm *m)
{
        bool (*const two[])(lg_tensor *, lg_tensor *) = {lg_copy_, lg_add_, lg_sub_, lg_mul_, lg_div_};
        lg_tensor *x = tensor(m);
        uint8_t i = byte(m) % 6;
        check_done(m, i == 5 ? lg_fill_(x, number(m)) : two[i](x, tensor(m)));
}

void call_read(vm *m)
{
        lg_tensor *t = tensor(m);
        lg_dtype d = flag(m) ? dtype(m) : lg_dtype_of(t);
        int64_t n = lg_numel(t);
        /* No size that is too great for the memory may pass for the right one. */
        size_t bytes = (size_t)n * (d <= LG_BOOL ? lg_dtype_size(d) : 1), room = bytes < 1 << 20 ? bytes : 0;
        char *data = malloc(room + 1);
        FUZZ_CHECK(data, "no memory");
        bool ok = lg_read(t, data, d, room);
        FUZZ_CHECK(ok || m->odd || lg_error(m->sides[0].ctx) || (m->sides[1].ctx && lg_error(m->sides[1].ctx)),
                   "lg_read failed without an error");
        free(data);
        lg_item(t);
        lg_clear_error(lg_ctx_of(t));
        lg_item_i64(t);
}

void call_write(vm *m)
{
        lg_tensor *t = tensor(m);
        lg_dtype d = flag(m) ? dtype(m) : lg_dtype_of(t);
        size_t bytes = (size_t)lg_numel(t) * (d <= LG_BOOL ? lg_dtype_size(d) : 1), room = bytes < 1 << 20 ? bytes : 0;
        char *data = malloc(room + 1);
        FUZZ_CHECK(data, "no memory");
        memset(data, byte(m), room + 1);
        check_done(m, lg_write(t, data, d, room));
        free(data);
}

void call_print(vm *m)
{
        lg_print(m->nowhere, tensor(m));
}

/* What only looks works for any tensor. */
void call_facts(vm *m)
{
        lg_tensor *t = tensor(m);
        int d = dim(m);
        FUZZ_CHECK(lg_size_of(t, d) >= -1, "size %lld", (long long)lg_size_of(t, d));
        lg_stride_of(t, d);
        lg_is_contiguous(t);
        lg_requires_grad(t);
        lg_is_leaf(t);
        lg_device_name(lg_device_of(t));
        lg_dtype_name(dtype(m));
        lg_dtype_is_float(dtype(m));
        lg_dtype a = dtype(m);
        lg_promote(a, dtype(m));
        lg_error_name((lg_error_code)byte(m));
        FUZZ_CHECK(lg_live_tensors(m->now->ctx) >= 0, "fewer than no tensors");
        lg_memory_stats_t stats = lg_memory_stats(m->now->ctx, device(m));
        FUZZ_CHECK(stats.used >= 0 && stats.cached >= 0 && stats.peak >= stats.used, "memory: %lld used, %lld peak",
                   (long long)stats.used, (long long)stats.peak);
}

void call_scope_begin(vm *m)
{
        lg_scope s = lg_scope_begin(m->now->ctx);
        check_done(m, s.id != 0);
        PUT(m, m->now->scopes, s);
}

void call_scope_end(vm *m)
{
        uint8_t b = byte(m);
        const side *s = b >= 0xF0 ? &m->sides[m->now == m->sides] : m->now;
        lg_scope scope = b >= 0xE0 && b < 0xF0 ? (lg_scope){m->now->scopes[b % SCOPES].id + 1} : s->scopes[b % SCOPES];
        check_done(m, lg_scope_end(m->now->ctx, scope));
}

void call_own(vm *m)
{
        lg_tensor *t = tensor(m);
        m->odd = true;
        give_read(m, flag(m) ? lg_keep(t) : lg_escape(t));
}

void call_free(vm *m)
{
        lg_free(tensor(m));
}

void call_memory_limit(vm *m)
{
        static const int64_t limits[] = {0, 1, 4096, 65536, 200000, INT64_MAX, -1, INT64_MIN};
        lg_device d = device(m);
        check_done(m, lg_set_memory_limit(m->now->ctx, d, limits[byte(m) % COUNT(limits)]));
        if (flag(m))
                lg_empty_cache(m->now->ctx);
        if (flag(m))
                lg_reset_peak_memory(m->now->ctx, d);
}

void call_random_state(vm *m)
{
        lg_random_state s = lg_random_state_of(m->now->ctx);
        s.counter = flag(m) ? UINT64_MAX - byte(m) : byte(m);
        lg_set_random_state(m->now->ctx, s);
        if (flag(m))
                lg_seed(m->now->ctx, byte(m));
}

void call_settings(vm *m)
{
        lg_set_deterministic(m->now->ctx, flag(m));
        lg_set_allow_tf32(m->now->ctx, flag(m));
        lg_set_conv_allow_tf32(m->now->ctx, lg_allow_tf32(m->now->ctx));
        check_done(m, lg_set_threads(m->now->ctx, flag(m) ? 1 : dim(m)));
        FUZZ_CHECK(lg_threads(m->now->ctx) >= 1, "%d threads", lg_threads(m->now->ctx));
        check_done(m, lg_synchronize(m->now->ctx));
}

static void on_message(lg_ctx *c, const char *text, void *user)
{
        FUZZ_CHECK(c && text && *text && user, "a message without a text");
}

void call_message(vm *m)
{
        lg_on_message(m->now->ctx, flag(m) ? on_message : NULL, m);
}

void call_devices(vm *m)
{
        static const char *const names[] = {"cpu",  "cpu:0",           "cuda",     "cuda:1", "",
                                            "cpu:", "cpu:99999999999", "shadow:0", "x"};
        lg_ctx *c = m->now->ctx;
        lg_device_info_t info;
        lg_device all[2];
        uint8_t b = byte(m);
        lg_parse_device(c, b == 0xFF ? NULL : names[b % COUNT(names)]);
        lg_device_info(c, device(m), &info);
        lg_device_count(c, (lg_device_type)(byte(m) % (LG_DEVICE_SHADOW + 2)));
        lg_set_default_device(c, device(m));
        lg_try_cuda(c, dim(m));
        lg_try_all_cuda(c, byte(m) % 3, all);
        lg_device_equal(device(m), lg_cpu());
}

/* The next options are handed on in another way than the macros do. */
void call_odd_options(vm *m)
{
        m->way = byte(m) % WAYS;
        m->amount = byte(m);
}

/* A context of its own, opened with options that may be odd, and facts in structs of other sizes. */
void call_open(vm *m)
{
        uint8_t b = byte(m);
        failing memory = {.limit = MOST_MEMORY, .fail_at = b & 7};
        lg_open_options o = *LG_OPTIONS(lg_open_options, .threads = dim(m), .seed = b, FAILING(&memory));
        o.free = b & 8 ? NULL : o.free; /* without it neither is used */
        lg_ctx *c = lg_open_with(HAND_WITH(m, o, user));
        FUZZ_CHECK(c ? !m->refused : m->refused || memory.fail_at, "a context of options that are not right, or none");
        m->refused = false; /* which no error of the current context tells */
        lg_close(c);
        FUZZ_CHECK(memory.bytes == 0 && memory.allocs == memory.frees, "%lld bytes are left", (long long)memory.bytes);
        const size_t known = (size_t)byte(m) * 2;
        char *facts = calloc(1, known + 1);
        FUZZ_CHECK(facts, "no memory");
        lg_memory_stats_with(m->now->ctx, lg_cpu(), (void *)facts, known);
        lg_device_info_with(m->now->ctx, device(m), (void *)facts, known);
        FUZZ_CHECK(facts[known] == 0, "more than the struct was filled");
        free(facts);
}

void call_set_error(vm *m)
{
        const lg_error_code code = (lg_error_code)(byte(m) % 10);
        lg_set_error(m->now->ctx, code, "%0*d", 10 * byte(m), 1);
}

void call_other_side(vm *m)
{
        side *other = &m->sides[m->now == m->sides];
        m->now = other->ctx ? other : m->now;
}

/* Inside a call that must be an error, and free nothing. */
void call_close(vm *m)
{
        lg_close(m->in);
}

/* From here on the system has no memory left for the n-th request, or for any from that one on. */
void call_fail_at(vm *m)
{
        const uint8_t at = byte(m) % 32;
        arm(&m->now->memory, at, flag(m));
        if (flag(m))
                lg_empty_cache(m->now->ctx);
}

void call_reopen(vm *m)
{
        side *s = m->now;
        side_close(m, s);
        side_open(s);
        m->now = s;
}
