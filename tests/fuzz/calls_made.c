/* calls_made.c - a call of any op, generated from its declaration: operands by their types. */
#include "vm.h"

static lg_pair pair(vm *m)
{
        const int64_t h = size(m), w = size(m);
        return LG_PAIR(h, w);
}

/* One of a few kinds; the parameters may be freed before it is used. */
static lg_dist distribution(vm *m)
{
        lg_tensor *a = tensor(m), *b = tensor(m);
        switch (byte(m) % 6) {
        case 0:
                return lg_dist_gamma(a, b);
        case 1:
                return lg_dist_categorical(.logits = a);
        case 2:
                return lg_dist_binomial(byte(m), .probs = a);
        case 3:
                return lg_dist_multinomial(byte(m), .probs = a);
        case 4:
                return lg_dist_dirichlet(a);
        default:
                return lg_dist_normal(a, b);
        }
}

static lg_triple triple(vm *m)
{
        const int64_t d = size(m), h = size(m), w = size(m);
        return LG_TRIPLE(d, h, w);
}

static lg_ints ints(vm *m, int64_t numbers[8])
{
        const uint8_t b = byte(m);
        const int64_t n = b < 0xF0 ? b % 5 * 2 : b < 0xF8 ? b % 8 : b < 0xFC ? 1 : -2;
        for (int64_t i = 0; i < n; i++) {
                numbers[i] = size(m);
                numbers[i] = numbers[i] > 4 && numbers[i] < 9 ? 4 - numbers[i] : numbers[i];
        }
        return LG_INTS_OF(n, b == 0xFB ? NULL : numbers);
}

/* Up to three numbers, of which most are from 0 to 1. */
static lg_numbers shares(vm *m, double numbers[4])
{
        const uint8_t b = byte(m);
        const int64_t n = b < 0xFC ? b % 4 : -1;
        for (int64_t i = 0; i < n; i++)
                numbers[i] = flag(m) ? (byte(m) % 5) * 0.25 : number(m);
        return LG_NUMBERS_OF(n, b == 0xFB ? NULL : numbers);
}

#include "made.inc"

void call_made(vm *m)
{
        const unsigned i = byte(m) | (unsigned)byte(m) << 8;
        if (getenv("FUZZ_VERBOSE"))
                fprintf(stderr, "        %s\n", made[i % COUNT(made)].name);
        made[i % COUNT(made)].call(m);
}

/* Runs a generated call on what the bytes say; if `at` is not 0, that allocation fails, and all later ones unless
 * `only`. Returns whether it succeeded; *ret_reached: whether it came to that allocation. */
static bool try_made(size_t i, const uint8_t *bytes, size_t count, int64_t at, bool only, bool *ret_reached)
{
        vm m = {.at = bytes, .end = bytes + count};
        m.now = m.sides;
        side_open(m.now);
        lg_empty_cache(m.now->ctx);
        arm(&m.now->memory, at, only);
        const bool done = made[i].call(&m);
        *ret_reached = at && m.now->memory.calls >= at;
        arm(&m.now->memory, 0, false);
        side_close(&m, m.now);
        return done;
}

int made_that_fail(int64_t tries)
{
        uint64_t random = 1;
        int found = 0;
        for (size_t i = 0; i < COUNT(made); i++) {
                bool done = false, reached = true;
                uint8_t bytes[64];
                for (int64_t t = 0; t < tries && !done; t++) {
                        for (size_t k = 0; k < sizeof bytes; k++) {
                                random = random * 6364136223846793005u + 1442695040888963407u;
                                bytes[k] = (uint8_t)(random >> 56);
                        }
                        done = try_made(i, bytes, sizeof bytes, 0, false, &reached);
                }
                for (int only = 0; only < 2 && done; only++) {
                        reached = true;
                        for (int64_t at = 1; reached; at++)
                                try_made(i, bytes, sizeof bytes, at, only, &reached);
                }
                if (!done && !made[i].seldom)
                        printf("%s succeeded in none of %lld calls\n", made[i].name, (long long)tries);
                found += !done && !made[i].seldom;
        }
        return found;
}
