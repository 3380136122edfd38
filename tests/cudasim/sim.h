/* sim.h - what the simulator's parts share. */
#ifndef SIM_H
#define SIM_H

#include "cudasim.h"
#include <mutex>

namespace cudasim
{
/* Runs a kernel now, on open device memory. */
void run_grid(const char *name, dim3 grid, dim3 block, size_t dynamic, const std::function<void()> &body);
/* Under AddressSanitizer: memory that may be touched, or not. */
void open_memory(const void *p, size_t bytes);
void close_memory(const void *p, size_t bytes);
/* The order of threads and blocks: 0 as numbered, 1 backwards, 2 drawn. $CUDASIM_ORDER */
int shuffling();
uint64_t next_random();

/* Queues work behind what the stream holds; it runs when somebody waits. The second: work that says whether it is done,
 * and is asked again if not. */
void enqueue(cudaStream_t stream, std::function<void()> work);
void enqueue_step(cudaStream_t stream, std::function<bool()> work);
/* What can be made to fail. LOAD: what takes memory of the device for itself, a kernel's code or a library's handle. */
enum failure { CALL, ALLOCATION, LOAD };
/* True if the call of that name shall fail now, in that way. */
bool fails(const char *name, failure way = CALL);
/* Of this thread. */
extern thread_local int current_device;
/* Whether this thread captures a stream, which a call that may wait or take memory of the device breaks, such as one
 * that makes a library's handle. */
bool breaks_capture();
/* Libraries' handles and descriptors, as cudasim_handles() counts them. */
void count_handles(int64_t by);
/* Held while a call runs: several threads of the host may call at once. */
std::recursive_mutex &everything();
/* Dies unless [p, p + bytes) is inside one live allocation of the current device. */
void check_device(const char *call, const void *p, size_t bytes);
} // namespace cudasim

/* For tests: the n-th call from now on that can fail in that way (cudasim::failure) fails; from: all later ones, too.
 * 0: none. */
extern "C" __attribute__((visibility("default"))) void cudasim_fail_at(int64_t n, bool from, int way);
extern "C" __attribute__((visibility("default"))) int64_t cudasim_calls(int way);
/* Looks at $CUDASIM_ORDER and $CUDASIM_CHECK again. */
extern "C" __attribute__((visibility("default"))) void cudasim_read_settings(void);
/* Waits (calls that make the host wait for a device) so far; bytes allocated now, on all devices. */
extern "C" __attribute__((visibility("default"))) int64_t cudasim_waits(void);
extern "C" __attribute__((visibility("default"))) int64_t cudasim_bytes(void);
/* How often a device was asked whether it reaches another; copies between devices that could not go straight. */
extern "C" __attribute__((visibility("default"))) int64_t cudasim_peers_asked(void);
extern "C" __attribute__((visibility("default"))) int64_t cudasim_copies_through_host(void);
/* Handles and descriptors of cuBLASLt that were made so far. */
extern "C" __attribute__((visibility("default"))) int64_t cudasim_products_described(void);
/* Calls of cudaMemcpyAsync so far. */
extern "C" __attribute__((visibility("default"))) int64_t cudasim_copies(void);
/* The name of the call that failed last since cudasim_fail_at; "": none. */
extern "C" __attribute__((visibility("default"))) const char *cudasim_failed(void);
/* Handles (streams, events, libraries) and pinned buffers that are alive. */
extern "C" __attribute__((visibility("default"))) int64_t cudasim_handles(void);

#endif
