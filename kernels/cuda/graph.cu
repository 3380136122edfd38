/* graph.cu - kernel calls captured as a CUDA graph, which one launch runs. */
#include "graph.h"

static int64_t graphs; /* of all queues of the process */

bool lg_cuda_has_graphs(void)
{
        return __atomic_load_n(&graphs, __ATOMIC_RELAXED) > 0;
}

bool lg_cuda_captures(lg_queue *q)
{
        cudaStreamCaptureStatus s = cudaStreamCaptureStatusNone;
        if (cudaStreamIsCapturing(lg_cuda(q)->stream, &s) != cudaSuccess)
                cudaGetLastError();
        return s != cudaStreamCaptureStatusNone;
}

/* Kernels and plans are loaded, since the calls have run before; memory is not asked for, since workspaces are those of
 * that run. A call that CUDA cannot capture ends the capture with an error, which is no error of the queue. */
extern "C" void *lg_cuda_capture(lg_queue *base, bool (*run)(void *user), void *user)
{
        const lg_on_device here(base->index);
        cudaStream_t stream = lg_cuda(base)->stream;
        cudaGraph_t graph = NULL;
        cudaGraphExec_t ready = NULL;
        if (here.error != cudaSuccess || base->status != LG_OK ||
            cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
                cudaGetLastError();
                return NULL;
        }
        const bool ran = run(user);
        const bool ended = cudaStreamEndCapture(stream, &graph) == cudaSuccess;
        if (!ran || !ended || cudaGraphInstantiate(&ready, graph, 0) != cudaSuccess)
                ready = NULL;
        if (graph)
                cudaGraphDestroy(graph);
        cudaGetLastError();
        base->status = LG_OK;
        if (ready)
                __atomic_fetch_add(&graphs, 1, __ATOMIC_RELAXED);
        return ready;
}

extern "C" bool lg_cuda_launch_graph(lg_queue *q, void *graph)
{
        lg_cuda_count_launch();
        return lg_cuda_good(q, "cudaGraphLaunch", cudaGraphLaunch((cudaGraphExec_t)graph, lg_cuda(q)->stream));
}

extern "C" void lg_cuda_free_graph(lg_queue *q, void *graph)
{
        const lg_on_device here(q->index);
        cudaGraphExecDestroy((cudaGraphExec_t)graph);
        cudaGetLastError();
        __atomic_fetch_sub(&graphs, 1, __ATOMIC_RELAXED);
}
