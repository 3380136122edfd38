/* dnn_table.cu - cuDNN's handle and plans for a device, which all queues of the process share. */
#include "dnn.h"
#include "graph.h"
#if LG_CUDNN
#include <new>
#include <string.h>

static std::mutex tables_lock;
static lg_dnn_table *tables; /* never freed at exit, when the driver may be gone */

static void free_kept(lg_dnn_table *d)
{
        for (lg_dnn_plan *p = d->kept, *next; p; p = next) {
                next = p->next;
                delete p;
        }
        d->kept = NULL;
}

lg_dnn_table::~lg_dnn_table()
{
        lg_on_device here(device);
        free_kept(this);
        for (int i = 0; i < count; i++)
                delete plans[i];
        if (handle)
                lg_dnn_find()->close(handle);
}

static lg_dnn_table *table_of(lg_queue *q)
{
        return (lg_dnn_table *)lg_cuda(q)->dnn;
}

lg_dnn_table *lg_dnn_join(lg_queue *q)
{
        if (table_of(q))
                return table_of(q);
        const std::lock_guard<std::mutex> guard(tables_lock);
        lg_dnn_table *d = tables;
        while (d && d->device != q->index)
                d = d->next;
        if (!d) {
                d = new (std::nothrow) lg_dnn_table(q->index);
                if (!d) {
                        lg_queue_fail(q, LG_NO_MEMORY, "no memory for cuDNN's plans");
                        return NULL;
                }
                d->next = tables;
                tables = d;
        }
        d->users++;
        lg_cuda(q)->dnn = d;
        return d;
}

extern "C" void lg_cuda_dnn_close(lg_queue *q)
{
        lg_dnn_table *d = table_of(q);
        lg_cuda(q)->dnn = NULL;
        if (!d)
                return;
        {
                const std::lock_guard<std::mutex> guard(d->lock);
                if (d->handle && d->stream == lg_cuda(q)->stream) {
                        lg_dnn_find()->set_stream(d->handle, NULL);
                        d->stream = NULL;
                }
        }
        const std::lock_guard<std::mutex> guard(tables_lock);
        d->users--;
}

extern "C" void lg_cuda_dnn_forget(void)
{
        const std::lock_guard<std::mutex> guard(tables_lock);
        for (lg_dnn_table **at = &tables; *at;) {
                lg_dnn_table *d = *at;
                if (d->users > 0) {
                        at = &d->next;
                        continue;
                }
                *at = d->next;
                delete d;
        }
}

lg_dnn_answer lg_dnn_open(lg_queue *q, lg_dnn_table *d)
{
        const lg_dnn_library *l = lg_dnn_find();
        lg_dnn_answer answer = LG_DNN_DONE;
        if (!d->opened) {
                cudnnStatus_t s;
                do
                        s = l->open(&d->handle);
                while (s != CUDNN_STATUS_SUCCESS && lg_cuda_again(q, lg_dnn_lacked_memory(s)));
                answer = lg_dnn_judge(q, "cudnnCreate", s);
                if (answer != LG_DNN_DONE)
                        d->handle = NULL;
                d->opened = answer != LG_DNN_FAILED;
        }
        if (answer == LG_DNN_DONE && d->handle && d->stream != lg_cuda(q)->stream) {
                answer = lg_dnn_judge(q, "cudnnSetStream", l->set_stream(d->handle, lg_cuda(q)->stream));
                d->stream = answer == LG_DNN_DONE ? lg_cuda(q)->stream : NULL;
        }
        return d->handle || answer == LG_DNN_FAILED ? answer : LG_DNN_REFUSED;
}

extern "C" lg_dnn_counts lg_cuda_dnn_counts(lg_queue *q)
{
        lg_dnn_table *d = table_of(q);
        lg_dnn_counts c = {};
        if (!d)
                return c;
        const std::lock_guard<std::mutex> guard(d->lock);
        c.hits = d->hits;
        c.misses = d->misses;
        c.failures = d->failures;
        for (int i = 0; i < d->count; i++)
                (d->plans[i]->works ? c.plans : c.refusals)++;
        return c;
}

static uint64_t hash_of(const lg_dnn_key *k)
{
        uint64_t words[sizeof *k / sizeof(uint64_t)], h = 14695981039346656037u;
        static_assert(sizeof words == sizeof *k, "keys are whole words");
        memcpy(words, k, sizeof words);
        for (const uint64_t word : words)
                h = (h ^ word) * 1099511628211u;
        return h;
}

static void keep(lg_dnn_table *d, lg_dnn_plan *p)
{
        int at = d->count;
        if (d->count < LG_DNN_PLANS) {
                d->count++;
        } else {
                at = 0;
                for (int i = 1; i < LG_DNN_PLANS; i++)
                        if (d->plans[i]->used < d->plans[at]->used)
                                at = i;
                d->plans[at]->next = d->kept;
                d->kept = d->plans[at];
                if (!lg_cuda_has_graphs())
                        free_kept(d);
        }
        d->plans[at] = p;
}

lg_dnn_answer lg_dnn_plan_for(lg_queue *q, lg_dnn_table *d, const lg_dnn_key *key, bool make, lg_dnn_plan **ret)
{
        const uint64_t hash = hash_of(key);
        *ret = NULL;
        if (!lg_cuda_before_first(q, (const void *)(uintptr_t)hash))
                return LG_DNN_FAILED;
        d->calls++;
        for (int i = 0; i < d->count; i++) {
                lg_dnn_plan *p = d->plans[i];
                if (p->hash != hash || memcmp(&p->key, key, sizeof *key) != 0)
                        continue;
                p->used = d->calls;
                d->hits++;
                *ret = p->works ? p : NULL;
                return p->works ? LG_DNN_DONE : LG_DNN_REFUSED;
        }
        if (!make)
                return LG_DNN_REFUSED;
        d->misses++;
        lg_dnn_plan *p = new (std::nothrow) lg_dnn_plan;
        if (!p) {
                lg_queue_fail(q, LG_NO_MEMORY, "no memory for a plan of cuDNN");
                return LG_DNN_FAILED;
        }
        p->key = *key;
        p->hash = hash;
        p->used = d->calls;
        lg_dnn_answer answer = lg_dnn_build(q, d->handle, p);
        if (answer == LG_DNN_FAILED) {
                delete p;
                return answer;
        }
        keep(d, p);
        *ret = answer == LG_DNN_DONE ? p : NULL;
        return answer;
}

#else

extern "C" {
lg_dnn_counts lg_cuda_dnn_counts(lg_queue *)
{
        return lg_dnn_counts{};
}

void lg_cuda_dnn_close(lg_queue *)
{
}

void lg_cuda_dnn_forget(void)
{
}
}
#endif
