/* kernel_queue.h - a queue of the simulated device and memory there, for tests that call kernels themselves. */
#ifndef KERNEL_QUEUE_H
#define KERNEL_QUEUE_H

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>
extern "C" {
#include <cmocka.h>
}
#include "../../kernels/kernels.h"

extern "C" const lg_device_api *lg_device_module(void);

struct kernel_queue {
        lg_queue *q;
        std::vector<void *> scratch, memory;

        kernel_queue()
        {
                const lg_device_api *api = lg_device_module();
                char reason[200];
                q = (lg_queue *)calloc(1, api->queue_size);
                q->api = api;
                q->workspace = [](lg_queue *queue, size_t bytes) {
                        void *p = queue->api->allocate(queue, bytes);
                        if (p)
                                ((kernel_queue *)queue->owner)->scratch.push_back(p);
                        else
                                lg_queue_fail(queue, LG_NO_MEMORY, "no memory for scratch");
                        return p;
                };
                q->release_cached = [](lg_queue *) { return false; };
                q->owner = this;
                assert_true(api->open(q, reason, sizeof reason));
        }
        ~kernel_queue()
        {
                release(&scratch);
                release(&memory);
                q->api->close(q);
                free(q);
        }
        kernel_queue(const kernel_queue &) = delete;
        kernel_queue &operator=(const kernel_queue &) = delete;
        void release(std::vector<void *> *list)
        {
                for (void *p : *list)
                        q->api->free(q, p, 0);
                list->clear();
        }
        char *room(size_t bytes)
        {
                memory.push_back(q->api->allocate(q, bytes));
                assert_non_null(memory.back());
                return (char *)memory.back();
        }
        template <typename A> bool run(bool (*kernel)(lg_queue *, const A *), const A *a)
        {
                const bool good = kernel(q, a);
                release(&scratch);
                return good;
        }
};

#endif
