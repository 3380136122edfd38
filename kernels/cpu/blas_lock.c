/* blas_lock.c - makes the serial OpenBLAS safe to call from several threads.
 *
 * Distributions build it without USE_LOCKING: two products at once may be given the same buffer, and come out wrong.
 * The linker's --wrap puts these in place of its only functions on shared data.
 */
#include <pthread.h>

void *__real_blas_memory_alloc(int position);
void __real_blas_memory_free(void *buffer);
void *__wrap_blas_memory_alloc(int position);
void __wrap_blas_memory_free(void *buffer);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *__wrap_blas_memory_alloc(int position)
{
        pthread_mutex_lock(&lock);
        void *buffer = __real_blas_memory_alloc(position);
        pthread_mutex_unlock(&lock);
        return buffer;
}

void __wrap_blas_memory_free(void *buffer)
{
        pthread_mutex_lock(&lock);
        __real_blas_memory_free(buffer);
        pthread_mutex_unlock(&lock);
}
