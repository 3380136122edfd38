/* fuzz.h - what the fuzzers share: the entry of libFuzzer, which replay.c calls too, and checks that end the process.
 */
#ifndef LG_FUZZ_H
#define LG_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libFuzzer and sanitizers report an input that aborts. */
#define FUZZ_CHECK(condition, ...)                                                                                     \
        do {                                                                                                           \
                if (!(condition)) {                                                                                    \
                        fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                                \
                        fprintf(stderr, __VA_ARGS__);                                                                  \
                        fputc('\n', stderr);                                                                           \
                        abort();                                                                                       \
                }                                                                                                      \
        } while (0)

#endif
