/* poison.h - lets AddressSanitizer report accesses to memory that an allocator keeps free for reuse. */
#ifndef LG_POISON_H
#define LG_POISON_H

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define LG__POISONS
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define LG__POISONS
#endif

#ifdef LG__POISONS
#include <sanitizer/asan_interface.h>
#define lg__poison(p, bytes) __asan_poison_memory_region((p), (bytes))
#define lg__unpoison(p, bytes) __asan_unpoison_memory_region((p), (bytes))
#else
#define lg__poison(p, bytes) ((void)(p), (void)(bytes))
#define lg__unpoison(p, bytes) ((void)(p), (void)(bytes))
#endif

#endif
