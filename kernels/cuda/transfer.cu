/* transfer.cu - copies between host and device memory, and waits of the host for a device. */
#include "transfer.h"
#include "nccl.h"
#include <string.h>

/* ---- waits ---- */

bool lg_cuda_finish(lg_queue *q, cudaEvent_t e, bool wait)
{
        const char *call = "cudaEventQuery";
        cudaError_t s = cudaEventQuery(e);
        if (s == cudaErrorNotReady) {
                cudaGetLastError(); /* clears the error, or the next launch would report it */
                if (!wait || !lg_cuda_links_before(q, e))
                        return false;
                call = "cudaEventSynchronize";
                s = cudaEventSynchronize(e);
        }
        return lg_cuda_good(q, call, s);
}

/* Makes the host wait for stream s; for operations of links in s it waits no longer than their time limit. */
static bool finish(lg_queue *q, cudaStream_t s)
{
        return lg_cuda_links_before(q, s) && lg_cuda_good(q, "cudaStreamSynchronize", cudaStreamSynchronize(s));
}

bool lg_cuda_clear_error(lg_queue *base)
{
        lg_cuda_queue *q = lg_cuda(base);
        return lg_cuda_good(base, "cudaMemsetAsync", cudaMemsetAsync(q->error, 0, sizeof *q->error, q->stream));
}

/* Queues a copy of *q->report to pinned memory. */
static bool fetch_report(lg_queue *base)
{
        lg_cuda_queue *q = lg_cuda(base);
        return lg_cuda_good(
                base, "cudaMemcpyAsync (error)",
                cudaMemcpyAsync(q->landing, q->report, sizeof *q->report, cudaMemcpyDeviceToHost, q->stream));
}

/* Moves the error of a report that has arrived to *ret. */
static bool take_error(lg_queue *base, lg_device_error *ret)
{
        *ret = lg_cuda(base)->landing->error;
        return ret->code == LG_DEVICE_OK || lg_cuda_clear_error(base);
}

bool lg_cuda_synchronize(lg_queue *base, lg_device_error *ret)
{
        lg_cuda_queue *q = lg_cuda(base);
        *ret = lg_device_error{0, 0, 0};
        if (!lg_cuda_links_before(base, q->stream) || !fetch_report(base) ||
            !lg_cuda_good(base, "cudaStreamSynchronize", cudaStreamSynchronize(q->stream)) ||
            (q->ended != q->mark && !finish(base, q->copies)))
                return false;
        q->ended = q->mark;
        return take_error(base, ret);
}

bool lg_cuda_item(lg_queue *base, const void *p, lg_dtype from, void *ret, lg_dtype to, lg_device_error *error)
{
        lg_cuda_queue *q = lg_cuda(base);
        lg_copy_args a = {};
        a.out_dtype = to;
        a.out = &q->report->item;
        a.in_dtype = from;
        a.in = p;
        *error = lg_device_error{0, 0, 0};
        if (!lg_cuda_copy(base, &a) || !fetch_report(base) ||
            !lg_cuda_good(base, "cudaEventRecord", cudaEventRecord(q->here, q->stream)) ||
            !lg_cuda_finish(base, q->here))
                return false;
        memcpy(ret, &q->landing->item, sizeof q->landing->item);
        return take_error(base, error);
}

/* ---- copies ---- */

static bool copy(lg_queue *q, const char *what, void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
        return lg_cuda_good(q, what, cudaMemcpyAsync(to, from, bytes, kind, lg_cuda(q)->stream));
}

/* Copies from any host memory, and waits until it has been read. */
static bool upload_and_wait(lg_queue *q, void *device, const void *host, size_t bytes)
{
        return lg_cuda_links_before(q, lg_cuda(q)->stream) && /* a copy from pageable memory may make the host wait */
               copy(q, "cudaMemcpyAsync (to the device)", device, host, bytes, cudaMemcpyHostToDevice) &&
               finish(q, lg_cuda(q)->stream);
}

/* Makes the next piece the current one, after the copies that read it. On failure, the current one stays. */
static bool next_piece(lg_queue *base)
{
        lg_cuda_queue *q = lg_cuda(base);
        const int next = (q->piece + 1) % LG_CUDA_PIECES;
        if (!lg_cuda_good(base, "cudaEventRecord", cudaEventRecord(q->pieces[q->piece].read, q->stream)) ||
            !lg_cuda_finish(base, q->pieces[next].read))
                return false;
        q->piece = next;
        q->filled = 0;
        return true;
}

/* Allocates the current piece, if needed. Returns false, with no error but that of a link, if no memory is left. */
static bool has_piece(lg_queue *q)
{
        char **p = &lg_cuda(q)->pieces[lg_cuda(q)->piece].p;
        if (*p)
                return true;
        if (lg_cuda_links_before(q) && cudaHostAlloc((void **)p, LG_CUDA_PIECE, 0) == cudaSuccess)
                return true;
        cudaGetLastError();
        *p = NULL;
        return false;
}

/* Copies host memory to the device by way of pinned memory, and so waits only for a piece of that which is still in
 * use. A copy from pageable memory may wait for the stream, or read the memory after it has returned. */
bool lg_cuda_upload(lg_queue *base, void *device, const void *host, size_t bytes)
{
        lg_cuda_queue *q = lg_cuda(base);
        for (size_t n; bytes; bytes -= n, device = (char *)device + n, host = (const char *)host + n) {
                if (q->filled == LG_CUDA_PIECE && !next_piece(base))
                        return false;
                if (!has_piece(base))
                        return base->status == LG_OK && upload_and_wait(base, device, host, bytes);
                char *at = q->pieces[q->piece].p + q->filled;
                n = bytes < LG_CUDA_PIECE - q->filled ? bytes : LG_CUDA_PIECE - q->filled;
                memcpy(at, host, n);
                if (!copy(base, "cudaMemcpyAsync (to the device)", device, at, n, cudaMemcpyHostToDevice))
                        return false;
                q->filled += (n + 63) / 64 * 64;
        }
        return true;
}

bool lg_cuda_download(lg_queue *q, void *host, const void *device, size_t bytes)
{
        return bytes == 0 ||
               (lg_cuda_links_before(q, lg_cuda(q)->stream) && /* a copy to pageable memory makes the host wait */
                copy(q, "cudaMemcpyAsync (to the host)", host, device, bytes, cudaMemcpyDeviceToHost) &&
                finish(q, lg_cuda(q)->stream));
}
