/* test_transforms_memory.c - transforms without memory: each allocation fails in turn; nothing is kept. */
#include "../libgrad/tensor/tensor.h"
#include "failing.h"
#include "transforms.h"

static bool copy(const lg_transform_call *call, void *user)
{
        (void)user;
        memcpy(call->to, call->from, (size_t)call->in->shape.size[0] * 8 * 20 * sizeof(float));
        return true;
}

static void count(void *user)
{
        ++*(int *)user;
}

typedef struct life {
        lg_ctx *c;
        lg_tensor *x, *y;
        int released;
} life;

static life begin(failing *f)
{
        life l = {.c = lg_open(.threads = 1, FAILING(f))};
        l.x = lg_zeros(l.c, LG_SHAPE(4, 3, 12, 12), .dtype = LG_U8, .device = lg_cpu());
        l.y = lg_zeros(l.c, LG_SHAPE(4), .dtype = LG_I64, .device = lg_cpu());
        assert_ok(l.c);
        return l;
}

static void end(const life *l, const failing *f)
{
        lg_close(l->c);
        assert_int_equal(f->allocs, f->frees);
        assert_int_equal(f->bytes, 0);
}

/* All of it once, freed by hand. False: the context says why. */
static bool train(life *l, int workers)
{
        lg_ctx *c = l->c;
        lg_batch b;
        lg_transform *parts[PARTS + 1], *own = lg_transform_new(c, copy, &l->released, .release = count);
        lg_transform *all = chain_of_all(c, parts), *t = lg_transforms(c, all, own);
        lg_dataset *base = lg_dataset_tensors(c, l->x, l->y), *d = lg_dataset_transform(base, t);
        lg_collate *mix = lg_mixup(c, .classes = 4);
        lg_loader *loader = lg_loader_open(c, d, 2, .collate = mix, .workers = workers, .device = lg_cpu());
        bool ok = lg_loader_next(loader, &b);
        assert_true(ok == !lg_error(c));
        assert_true(!ok || (own && all && t && base && d && mix && loader));
        lg_loader_close(loader);
        lg_collate_free(mix);
        lg_dataset_free(d);
        lg_dataset_free(base);
        lg_transform_free(t);
        lg_transform_free(all);
        lg_transform_free(own);
        for (int i = 0; i < PARTS; i++)
                lg_transform_free(parts[i]);
        return ok;
}

/* It failed for want of memory, and now there is some: nothing is in the way. */
static void train_again(life *l, int workers)
{
        assert_int_equal(l->released, 1);
        assert_int_equal(lg_error_code_of(l->c), LG_ERR_MEMORY);
        lg_clear_error(l->c);
        assert_true(train(l, workers));
        assert_int_equal(l->released, 2);
}

TEST_CASE(blocks_may_run_out_anywhere)
{
        for (int k = 0; k < 4; k++) {
                const int workers = k / 2;
                const bool only = k % 2; /* once: what the context has cached may be enough */
                bool done = false;
                for (int64_t n = 1; !done; n++) {
                        failing f = {.allocs = 0};
                        life l = begin(&f);
                        arm(&f, n, only);
                        bool ok = train(&l, workers);
                        done = n > f.calls;
                        arm(&f, 0, false);
                        assert_true(only ? ok || !done : ok == done);
                        if (!ok)
                                train_again(&l, workers);
                        assert_true(n > 1 || !done);
                        end(&l, &f);
                }
        }
}

/* ---- records ---- */

/* Records are cut from slabs of this size; those are what fails here. */
enum { SLAB = 65536, CELL = 16, SLAB_HEAD = 4 };

typedef struct short_of_slabs {
        failing f; /* first */
        bool fails;
} short_of_slabs;

static void *alloc_but_slabs(void *user, lg_ctx *c, lg_device device, size_t bytes)
{
        const short_of_slabs *s = user;
        return s->fails && bytes == SLAB ? NULL : failing_alloc(user, c, device, bytes);
}

/* Trains with room for that many cells of records; returns whether they were enough. */
static bool train_with_room(int64_t room)
{
        short_of_slabs s = {.fails = false};
        life l = {.c = lg_open(.threads = 1, .alloc = alloc_but_slabs, .free = failing_free, .user = &s)};
        lg_ctx *c = l.c;
        int64_t cells = 0;
        l.x = lg_zeros(c, LG_SHAPE(4, 3, 12, 12), .dtype = LG_U8, .device = lg_cpu());
        l.y = lg_zeros(c, LG_SHAPE(4), .dtype = LG_I64, .device = lg_cpu());
        s.fails = true;
        while (lg__alloc(c, CELL))
                cells++;
        lg_clear_error(c);
        s.fails = false;
        assert_non_null(lg__alloc(c, CELL)); /* the first of a new slab, of which all but the room is taken, too */
        for (cells = SLAB / CELL - SLAB_HEAD - 1 - room; cells > 0; cells--)
                assert_non_null(lg__alloc(c, CELL));
        s.fails = true;
        bool ok = train(&l, 0);
        s.fails = false;
        if (!ok)
                train_again(&l, 0);
        end(&l, &s.f);
        return ok;
}

/* Wherever the room ends, the record that does not fit in is the one that fails. */
TEST_CASE(records_may_run_out_anywhere)
{
        int64_t room = 0;
        while (!train_with_room(room))
                room++;
        assert_true(room > 100);
}

/* In time, nothing takes memory that was not there before: the pool of records grows at first. */
TEST_CASE(nothing_is_kept)
{
        failing f = {.allocs = 0};
        life l = begin(&f);
        int64_t bytes = 0;
        for (int i = 0; i < 4000; i++) {
                lg_scope scope = lg_scope_begin(l.c);
                assert_true(train(&l, i % 2));
                lg_scope_end(l.c, scope);
                bytes = i < 500 ? f.bytes : bytes;
                assert_int_equal(f.bytes, bytes);
        }
        assert_int_equal(l.released, 4000);
        end(&l, &f);
}

/* What cannot be made leaves nothing behind either: here its second block fails. */
TEST_CASE(what_fails_leaves_nothing)
{
        enum { MANY = 300 }; /* so many parts that their list is a block of its own */
        failing f = {.allocs = 0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        lg_transform *parts[MANY + 1];
        int64_t bytes = 0;
        for (int i = 0; i < MANY; i++)
                parts[i] = lg_transform_random_vertical_flip(c);
        parts[MANY] = LG_END;
        for (int i = 0; i < 3000; i++) {
                lg_empty_cache(c);
                arm(&f, 1, false);
                assert_null(i % 2 ? lg_transforms_list(c, parts)
                                  : lg_transform_normalize(c, LG_NUMBERS(0.5, 0.5, 0.5), LG_NUMBERS(1)));
                arm(&f, 0, false);
                assert_error(c, LG_ERR_MEMORY, "");
                lg_transform_free(lg_transforms(c)); /* in the places of those */
                lg_transform_free(lg_transform_to_float(c));
                lg_empty_cache(c);
                bytes = i < 10 ? f.bytes : bytes;
                assert_int_equal(f.bytes, bytes);
        }
        lg_close(c);
        assert_int_equal(f.bytes, 0);
}
