/* calls_data.c - calls of data sets, transforms, ways to make batches and loaders; functions of the program make
 * samples.
 */
#include <pthread.h>
#include "vm.h"

/* ---- functions of the program ---- */

/* What is behind a data set, a transform or a way to make batches: the memory of a debt. Threads only read it. */
typedef struct source {
        debt *d;
        pthread_t owner; /* only in this thread may library and machine be called */
        lg_fields fields;
        int64_t at, end; /* of a stream */
        uint8_t how;
} source;

static source *make_source(vm *m, lg_fields fields)
{
        debt *d = owe(m, sizeof(source));
        source *s = d->memory;
        *s = (source){.d = d, .owner = pthread_self(), .fields = fields, .end = byte(m) % 16, .how = byte(m)};
        return s;
}

static void call_back(const source *s)
{
        if (s->how >= 0x80 && pthread_equal(s->owner, pthread_self()))
                mischief(s->d->m, s->d->ctx);
}

static size_t field_bytes(const lg_field *f)
{
        size_t bytes = lg_dtype_size(f->dtype);
        for (int i = 0; i < f->shape.ndim; i++)
                bytes *= (size_t)f->shape.size[i];
        return bytes;
}

static bool fill_sample(const source *s, lg_sample *to)
{
        const int64_t i = to->index;
        call_back(s);
        for (int f = 0; f < s->fields.count; f++) {
                const size_t bytes = field_bytes(&s->fields.field[f]);
                if (bytes)
                        memset(to->data[f], (int)(i % 2), bytes);
                if (s->fields.field[f].ragged)
                        to->length[f] = s->how % 16 == 7 ? i - 1 : i % (s->fields.field[f].shape.size[0] + 1);
        }
        if (lg_rng_uniform(to->rng) >= 1 || lg_rng_below(to->rng, 3) > 2)
                abort();
        if (s->how % 16 == 5)
                memset(to, 0, offsetof(lg_sample, rng)); /* what it was given is the next one's again */
        if (s->how % 16 == 3 && i % 5 == 4)
                return lg_sample_fail(to, "sample %lld", (long long)i);
        return s->how % 16 != 4 || i % 5 != 4;
}

static bool on_sample(lg_sample *to, void *user)
{
        return fill_sample(((debt *)user)->memory, to);
}

static bool on_next(lg_sample *to, void *user)
{
        source *s = ((debt *)user)->memory;
        return s->at++ < s->end && fill_sample(s, to);
}

static bool on_seek(void *user, int64_t sample)
{
        source *s = ((debt *)user)->memory;
        FUZZ_CHECK(sample >= 0, "sample %lld", (long long)sample);
        s->at = sample;
        call_back(s);
        return s->how % 16 != 6;
}

static bool on_transform(const lg_transform_call *call, void *user)
{
        const source *s = ((debt *)user)->memory;
        const size_t from = field_bytes(call->in), to = field_bytes(call->out);
        call_back(s);
        if (to)
                memset(call->to, 1, to);
        if (from && to)
                memcpy(call->to, call->from, from < to ? from : to);
        if (call->out->dtype == LG_BOOL)
                memset(call->to, 0, to);
        return s->how % 16 != 4 || lg_rng_below(call->rng, 4) > 0;
}

static bool on_collate(const lg_collation *b, void *user)
{
        const source *s = ((debt *)user)->memory;
        call_back(s);
        FUZZ_CHECK(b->count > 0, "a batch of %lld", (long long)b->count);
        for (int f = 0; f < b->out.count; f++) {
                const size_t bytes = field_bytes(&b->out.field[f]) * (size_t)b->count;
                if (bytes)
                        memset(b->to[f], 1, bytes);
        }
        return s->how % 16 != 4 || lg_rng_below(b->rng, 4) > 0;
}

/* ---- data sets ---- */

static const char *field_name(vm *m)
{
        static const char *const names[] = {"x", "y", "z", "x", "a field", "%s", ""};
        uint8_t b = byte(m);
        return b == 0xFF ? NULL : names[b % COUNT(names)];
}

/* Mostly images and class numbers. */
static lg_fields fields(vm *m)
{
        static const lg_dtype dtypes[] = {LG_F32, LG_U8, LG_F64, LG_I64, LG_F16, LG_BOOL, LG_BF16};
        uint8_t b = byte(m);
        lg_fields all = {.count = b < 0xF8 ? 1 + b % 3 : b % 12 - 1};
        for (int f = 0; f < all.count && f < LG_MAX_FIELDS; f++) {
                lg_field *to = &all.field[f];
                uint8_t kind = byte(m), i = kind % 8;
                to->name = kind < 0xF0 ? "x" : field_name(m);
                to->dtype = f == 1 && i < 4 ? LG_I64 : i < COUNT(dtypes) ? dtypes[i] : dtype(m);
                to->shape = f == 1 && i < 4 ? LG_SHAPE_0D : LG_SHAPE(3, 4, 4);
                if (kind / 8 % 4 == 2)
                        to->shape = shape(m);
                to->ragged = kind / 8 % 4 == 3;
                to->pad = to->ragged ? number(m) : 0;
        }
        return all;
}

static void take(vm *m, lg_dataset *d)
{
        check_done(m, d != NULL);
        FUZZ_CHECK(lg_dataset_size(d) >= -1, "%lld samples", (long long)lg_dataset_size(d));
        FUZZ_CHECK(lg_dataset_classes(d).count == 0, "classes of no names");
        FUZZ_CHECK(!d || lg_dataset_fields(d).count > 0, "%d fields", lg_dataset_fields(d).count);
        if (d)
                PUT(m, m->now->datasets, d);
}

static lg_dataset *dataset(vm *m)
{
        lg_dataset *d = PICK(m, m->now->datasets);
        m->odd = m->odd || !d;
        return d;
}

static void data_list(vm *m)
{
        lg_tensor *room[4];
        lg_list l = list(m, room);
        lg_dataset_options o =
                *LG_OPTIONS(lg_dataset_options, .scale = flag(m) ? number(m) : 0, .shift = flag(m) ? number(m) : 0);
        take(m, lg_dataset_list_with(m->now->ctx, l, HAND(m, o)));
}

static void data_own(vm *m)
{
        source *s = make_source(m, fields(m));
        debt *d = s->d;
        const bool stream = flag(m);
        int64_t samples = flag(m) ? s->end : size(m);
        lg_source_options o = *LG_OPTIONS(lg_source_options, .release = release);
        o.seek = stream == flag(m) ? on_seek : NULL;
        const lg_source_options *handed = HAND_WITH(m, o, release);
        lg_dataset *made = stream ? lg_dataset_stream_with(m->now->ctx, s->fields, on_next, d, handed)
                                  : lg_dataset_new_with(m->now->ctx, samples, s->fields, on_sample, d, handed);
        if (m->unread)
                forgive(d);
        take(m, made);
}

static void data_subset(vm *m)
{
        lg_dataset *d = dataset(m);
        int64_t which[4];
        uint8_t b = byte(m);
        for (int i = 0; i < 4; i++)
                which[i] = size(m);
        take(m, lg_dataset_subset(d, LG_INTS_OF(b % 5, b >= 0xF8 ? NULL : which)));
}

static void data_concat(vm *m)
{
        lg_dataset *a = dataset(m), *b = flag(m) ? a : dataset(m);
        take(m, flag(m) ? lg_dataset_concat(m->now->ctx, a, b) : lg_dataset_concat(m->now->ctx, a));
}

static void data_split(vm *m)
{
        lg_dataset *d = dataset(m), *first = NULL, *second = NULL;
        double part = number(m);
        lg_split_options o = *LG_OPTIONS(lg_split_options, .seed = byte(m));
        bool ok = lg_dataset_split_with(d, part, &first, byte(m) < 0xF0 ? &second : NULL, HAND(m, o));
        check_done(m, ok);
        FUZZ_CHECK(ok == (first && second) && (ok || !first), "a split of one part");
        FUZZ_CHECK(!ok || lg_dataset_size(first) + lg_dataset_size(second) == lg_dataset_size(d), "a part is missing");
        if (ok) {
                PUT(m, m->now->datasets, first);
                PUT(m, m->now->datasets, second);
        }
}

static void check_batch(vm *m, const lg_batch *b)
{
        FUZZ_CHECK(b->fields >= 1 && b->fields <= LG_MAX_FIELDS, "%lld fields", (long long)b->fields);
        for (int f = 0; f < LG_MAX_FIELDS; f++) {
                FUZZ_CHECK(!b->field[f] == (f >= b->fields), "field %d of %lld", f, (long long)b->fields);
                FUZZ_CHECK(!b->length[f] || b->field[f], "lengths of no field %d", f);
                give_read(m, b->length[f]);
        }
        give_read(m, b->field[b->fields - 1]);
}

static void data_get(vm *m)
{
        lg_dataset *d = dataset(m);
        lg_batch b = LG_FIRST_BATCH(NULL);
        bool ok = lg_dataset_get(d, size(m), &b);
        check_done(m, ok);
        if (ok)
                check_batch(m, &b);
}

/* ---- transforms ---- */

static void take_transform(vm *m, lg_transform *t)
{
        check_done(m, t != NULL);
        if (t)
                PUT(m, m->now->transforms, t);
}

static lg_transform *transform(vm *m)
{
        lg_transform *t = PICK(m, m->now->transforms);
        m->odd = m->odd || !t;
        return t;
}

static void image_transform(vm *m)
{
        lg_ctx *c = m->now->ctx;
        const int64_t height = size(m), width = size(m);
        const uint8_t i = byte(m) % 9, b = byte(m);
        lg_crop_options crop = *LG_OPTIONS(lg_crop_options, .padding = b & 1 ? size(m) : 0,
                                           .mode = (lg_pad_mode)(b % 4), .value = b & 4 ? number(m) : 0);
        lg_flip_options flip = *LG_OPTIONS(lg_flip_options, .p = b & 1 ? number(m) : 1);
        lg_rotation_options turn = *LG_OPTIONS(lg_rotation_options, .value = b & 4 ? number(m) : 0);
        lg_affine_options affine =
                *LG_OPTIONS(lg_affine_options, .degrees = b & 1 ? number(m) : 20,
                            .translate_x = b & 2 ? number(m) : 0.5, .scale_min = b & 4 ? number(m) : 0,
                            .scale_max = b & 8 ? number(m) : 0, .shear = b & 16 ? number(m) : 0);
        lg_jitter_options jitter = *LG_OPTIONS(lg_jitter_options, .brightness = b & 1 ? number(m) : 0.5,
                                               .contrast = b & 2 ? number(m) : 0.5);
        lg_erasing_options erase =
                *LG_OPTIONS(lg_erasing_options, .p = b & 1 ? number(m) : 1, .scale_min = b & 2 ? number(m) : 0,
                            .scale_max = b & 4 ? number(m) : 0, .ratio_min = b & 8 ? number(m) : 0,
                            .ratio_max = b & 16 ? number(m) : 0, .value = b & 32 ? number(m) : 0, .random = b & 64);
        take_transform(m, i == 0   ? lg_transform_random_crop_with(c, height, width, HAND(m, crop))
                          : i == 1 ? lg_transform_center_crop(c, height, width)
                          : i == 2 ? lg_transform_random_horizontal_flip_with(c, HAND(m, flip))
                          : i == 3 ? lg_transform_random_vertical_flip_with(c, HAND(m, flip))
                          : i == 4 ? lg_transform_resize(c, height, width)
                          : i == 5 ? lg_transform_random_rotation_with(c, number(m), HAND(m, turn))
                          : i == 6 ? lg_transform_random_affine_with(c, HAND(m, affine))
                          : i == 7 ? lg_transform_color_jitter_with(c, HAND(m, jitter))
                                   : lg_transform_random_erasing_with(c, HAND(m, erase)));
}

static void value_transform(vm *m)
{
        const double mean[] = {number(m), number(m), 0}, std[] = {number(m), 1, 2};
        uint8_t b = byte(m);
        lg_numbers means = LG_NUMBERS_OF(b % 4, b >= 0xF8 ? NULL : mean), stds = LG_NUMBERS_OF(b / 4 % 4, std);
        m->odd = m->odd || b >= 0xF8;
        take_transform(m,
                       flag(m) ? lg_transform_to_float(m->now->ctx) : lg_transform_normalize(m->now->ctx, means, stds));
}

static void own_transform(vm *m)
{
        debt *d = make_source(m, (lg_fields){.count = 0})->d;
        lg_transform_options o = *LG_OPTIONS(lg_transform_options, .random = true, .release = release);
        uint8_t b = byte(m);
        o.shape = b & 1 ? shape(m) : LG_SHAPE_0D;
        o.dtype = b & 2 ? dtype(m) : LG_DTYPE_NONE;
        const lg_transform_options *handed = HAND_WITH(m, o, release);
        lg_transform *t = lg_transform_new_with(m->now->ctx, b == 0xFF ? NULL : on_transform, d, handed);
        if (m->unread)
                forgive(d);
        take_transform(m, t);
}

static void transform_chain(vm *m)
{
        lg_ctx *c = m->now->ctx;
        uint8_t b = byte(m) % 3;
        lg_transform *first = b > 0 ? transform(m) : NULL, *second = b > 1 ? transform(m) : NULL;
        take_transform(m, b == 0   ? lg_transforms_list(c, (lg_transform *const[]){LG_END})
                          : b == 1 ? lg_transforms(c, first)
                                   : lg_transforms(c, first, second));
}

static void data_transform(vm *m)
{
        lg_dataset *d = dataset(m);
        take(m, lg_dataset_transform(d, transform(m)));
}

/* ---- loaders ---- */

static void data_collate(vm *m)
{
        lg_mixup_options mix = *LG_OPTIONS(lg_mixup_options, .alpha = 0, .classes = size(m));
        lg_collate_options o = *LG_OPTIONS(lg_collate_options, .release = release);
        lg_collate *k;
        if (flag(m)) {
                mix.alpha = number(m);
                k = lg_mixup_with(m->now->ctx, HAND(m, mix));
        } else {
                source *s = make_source(m, fields(m));
                debt *d = s->d;
                k = lg_collate_new_with(m->now->ctx, s->fields, on_collate, d, HAND_WITH(m, o, release));
                if (m->unread)
                        forgive(d);
        }
        check_done(m, k != NULL);
        if (k)
                PUT(m, m->now->collates, k);
}

static void data_loader(vm *m)
{
        lg_dataset *d = dataset(m);
        uint8_t b = byte(m), workers = byte(m);
        lg_loader_options o = *LG_OPTIONS(lg_loader_options, .shuffle = b & 1, .drop_last = b & 2, .seed = b);
        o.workers = workers > 0xF8 ? workers - 0xFC : workers > 0xE0 ? workers % 3 : 0;
        o.device = b & 4 ? device(m) : LG_DEVICE(LG_DEVICE_NONE, 0);
        o.weights = b & 8 ? tensor(m) : NULL;
        o.collate = b & 16 ? PICK(m, m->now->collates) : NULL;
        o.samples = b & 32 ? size(m) : 0;
        o.no_replacement = b & 64 ? flag(m) : 0;
        o.prefetch = b & 128 ? dim(m) : 0;
        lg_loader *l = lg_loader_open_with(m->now->ctx, d, 1 + byte(m) % 4, HAND(m, o));
        check_done(m, l != NULL);
        FUZZ_CHECK(lg_loader_batches(l) >= -1, "%lld batches", (long long)lg_loader_batches(l));
        lg_loader **slot = &PICK(m, m->now->loaders), *gone = *slot;
        *slot = l;
        lg_loader_close(gone);
}

static void data_next(vm *m)
{
        lg_loader *l = PICK(m, m->now->loaders);
        lg_batch b = LG_FIRST_BATCH(NULL);
        for (int i = byte(m) % 4; i >= 0 && lg_loader_next(l, &b); i--)
                check_batch(m, &b);
}

static void part_free(vm *m)
{
        if (flag(m)) {
                lg_transform **t = &PICK(m, m->now->transforms), *gone = *t;
                for (int i = 0; i < OBJECTS; i++)
                        if (m->now->transforms[i] == gone)
                                m->now->transforms[i] = NULL;
                lg_transform_free(gone);
        } else {
                lg_collate **k = &PICK(m, m->now->collates), *gone = *k;
                *k = NULL;
                lg_collate_free(gone);
        }
}

/* The next byte says which, so that all of them take one number of calls.def. */
void call_data(vm *m)
{
        static call *const table[] = {data_list,      data_own,        data_subset,     data_concat,   data_split,
                                      data_get,       image_transform, value_transform, own_transform, transform_chain,
                                      data_transform, data_collate,    data_loader,     data_next,     part_free,
                                      data_own,       data_loader,     data_next};
        table[byte(m) % COUNT(table)](m);
}
