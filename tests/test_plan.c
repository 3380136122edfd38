/* test_plan.c - places of a step's pieces of memory: those in use at once have no byte in common. */
#include "../libgrad/core/tape.h"
#include "test.h"

enum { MOST = 400 };

static uint64_t seed;

static int64_t draw(int64_t n)
{
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        return (int64_t)(seed >> 33) % n;
}

/* Draws `count` requests and, between them, returns of pieces; some pieces stay. */
static void draw_lives(lg__life *lives, int64_t count)
{
        int64_t event = 0;
        for (int64_t i = 0; i < count; i++) {
                lives[i] = (lg__life){.bytes = 64 * (1 + draw(draw(8) ? 20 : 500)), .from = event++, .to = INT64_MAX};
                for (int64_t k = draw(3); k > 0; k--) {
                        lg__life *l = &lives[draw(i + 1)];
                        if (l->to == INT64_MAX && draw(8))
                                l->to = event++;
                }
        }
}

static int64_t most_at_once(const lg__life *lives, int64_t count)
{
        int64_t most = 0;
        for (int64_t i = 0; i < count; i++) {
                int64_t sum = 0;
                for (int64_t k = 0; k <= i; k++)
                        sum += lives[k].to > lives[i].from ? lives[k].bytes : 0;
                most = sum > most ? sum : most;
        }
        return most;
}

TEST_CASE(pieces_do_not_overlap)
{
        static lg__life lives[MOST], *order[MOST];
        double worst = 0;
        for (int n = 0; n < 100; n++) {
                const int64_t count = 1 + draw(n % 10 ? 60 : MOST);
                draw_lives(lives, count);
                const int64_t bytes = lg__place_lives(lives, count, order), most = most_at_once(lives, count);
                for (int64_t i = 0; i < count; i++) {
                        const lg__life *a = &lives[i];
                        assert_true(a->at >= 0 && a->at % 64 == 0 && a->at + a->bytes <= bytes);
                        for (int64_t k = 0; k < i; k++) {
                                const lg__life *b = &lives[k];
                                assert_true(b->to < a->from || b->at + b->bytes <= a->at || a->at + a->bytes <= b->at);
                        }
                }
                assert_true(bytes >= most);
                worst = fmax(worst, (double)bytes / (double)most);
        }
        print_message("at worst %.3f times what is in use at once\n", worst);
        assert_true(worst < 1.2);
}
