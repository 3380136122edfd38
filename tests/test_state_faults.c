/* test_state_faults.c - saving and loading of modules and whole runs while memory or a call on files fails. */
#include "faulty_run.h"

/* ---- memory ---- */

/* What an action left that failed for want of memory, or, where it could do without, made. */
static void check_memory(run *r, const expected *e, bool ok, int64_t n, int64_t live, int64_t bytes)
{
        if (ok) {
                assert_true(has(at("w"), e->file_after));
                assert_state(r, e->state_after, act_names[e->a], n);
                return;
        }
        assert_error(r->c, LG_ERR_MEMORY, "memory");
        assert_int_equal(lg_live_tensors(r->c), live);
        assert_int_equal(used(r), bytes);
        check_failed(r, e, n);
}

/* Whether the n-th request to the system was reached. */
static bool try_less_memory(const expected *e, int64_t n, bool only)
{
        run r;
        begin(&r, 2, e->trained);
        put_file(at("w"), e->file.data, e->file.bytes);
        const int64_t live = lg_live_tensors(r.c), bytes = used(&r);
        lg_empty_cache(r.c); /* what is there already is no request */
        arm(&r.f, n, only);
        bool ok = perform(&r, e->a), reached = r.f.calls >= n;
        arm(&r.f, 0, false);
        assert_true(ok || reached);
        check_memory(&r, e, ok, n, live, bytes);
        end(&r);
        return reached;
}

TEST_CASE_WITH(every_allocation_fails, clean, NULL)
{
        for (int a = 0; a < ACTS; a++)
                for (int only = 0; only < 2; only++) {
                        expected e = undisturbed((act)a, only ? 0 : 2);
                        int64_t n = 1;
                        while (try_less_memory(&e, n, only))
                                n++;
                        print_message("%s: %lld allocations\n", act_names[a], (long long)n - 1);
                        assert_true(n > (is_save((act)a) ? 4 : 1));
                        forget(&e);
                }
}

#define SLAB ((size_t)65536) /* in which the context asks the system for memory for its records */
#define SLAB_ROOM (SLAB - 64)

static struct {
        int count;
        struct {
                void *p;
                size_t bytes;
        } all[100000];
} taken;

static bool take(lg_ctx *c, size_t bytes)
{
        void *p = lg__alloc(c, bytes);
        assert_true(taken.count < 100000);
        if (p) {
                taken.all[taken.count].p = p;
                taken.all[taken.count++].bytes = bytes;
        }
        return p != NULL;
}

/* Takes all of the context's small memory but so much: more cannot be had. */
static void leave(run *r, size_t room)
{
        r->f.of = SLAB;
        arm(&r->f, 1, false);
        for (size_t bytes = LG__POOL_MAX; bytes >= 16; bytes -= 16)
                while (take(r->c, bytes))
                        ;
        lg_clear_error(r->c);
        arm(&r->f, 0, false);
        for (size_t left = SLAB_ROOM; left > room;) {
                size_t bytes = left - room > LG__POOL_MAX ? LG__POOL_MAX : left - room;
                assert_true(take(r->c, bytes));
                left -= bytes;
        }
        arm(&r->f, 1, false);
}

static void give_back(run *r)
{
        arm(&r->f, 0, false);
        r->f.of = 0;
        while (taken.count--)
                lg__free(r->c, taken.all[taken.count].p, taken.all[taken.count].bytes);
        taken.count = 0;
}

/* Whether so much memory for records is too little. */
static bool try_few_records(const expected *e, size_t room)
{
        run r;
        begin(&r, 2, e->trained);
        put_file(at("w"), e->file.data, e->file.bytes);
        const int64_t live = lg_live_tensors(r.c), bytes = used(&r);
        leave(&r, room);
        bool ok = perform(&r, e->a);
        give_back(&r);
        check_memory(&r, e, ok, (int64_t)room, live, bytes);
        end(&r);
        return !ok;
}

TEST_CASE_WITH(every_record_fails, clean, NULL)
{
        for (int a = 0; a < ACTS; a++) {
                expected e = undisturbed((act)a, 0);
                size_t room = 0;
                while (try_few_records(&e, room))
                        room += 16;
                print_message("%s: %zu bytes of records\n", act_names[a], room);
                assert_in_range(room, 500, SLAB_ROOM - 1);
                forget(&e);
        }
}

/* ---- calls on files ---- */

/* Whether the n-th call on files was reached. */
static bool try_failing_call(const expected *e, int n)
{
        run r;
        begin(&r, 2, e->trained);
        put_file(at("w"), e->file.data, e->file.bytes);
        faulty.calls = 0;
        faulty.fail_at = n;
        faulty.error = EIO;
        bool ok = perform(&r, e->a), reached = faulty.calls >= n;
        faulty.fail_at = 0;
        if (ok) {
                assert_true(!reached || is_done_without());
                assert_true(has(at("w"), e->file_after));
        } else if (strstr(lg_error(r.c), "but its folder cannot be synchronised")) {
                assert_error(r.c, LG_ERR_IO, strerror(EIO));
                assert_true(has(at("w"), e->file_after));
        } else {
                assert_error(r.c, LG_ERR_IO, strerror(EIO));
                check_failed(&r, e, n);
        }
        assert_int_equal(count_files(false), 1);
        end(&r);
        return reached;
}

TEST_CASE_WITH(every_call_fails, clean, NULL)
{
        for (int a = 0; a < ACTS; a++) {
                expected e = undisturbed((act)a, 2);
                int n = 1;
                while (try_failing_call(&e, n))
                        n++;
                print_message("%s: %d calls on files\n", act_names[a], n - 1);
                assert_true(n > (is_save((act)a) ? 8 : 4));
                forget(&e);
        }
}

AROUND_TESTS(prepare, remove_folder);
