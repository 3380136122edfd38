/* test_einsum.c - Einstein summation: against PyTorch's numbers, against sums written out, and wrong equations. */
#include "golden.h"

#define Y(phase, ...) golden_like(x, LG_SHAPE(__VA_ARGS__), phase)
#define EINSUM(equation, ...) lg_einsum(equation, LG_LIST(__VA_ARGS__))
#define ROWS(ROW)                                                                                                      \
        ROW(einsum_product, EINSUM("ij,jk->ik", x, Y(0.5, 4, 2)), 3, 4)                                                \
        ROW(einsum_implicit, EINSUM("ij,jk", x, Y(0.5, 4, 2)), 3, 4)                                                   \
        ROW(einsum_turned, EINSUM("ij,jk->ki", x, Y(0.5, 4, 2)), 3, 4)                                                 \
        ROW(einsum_scores, EINSUM("bhid,bhjd->bhij", x, Y(0.5, 2, 2, 5, 4)), 2, 2, 3, 4)                               \
        ROW(einsum_values, EINSUM("bhij,bjhd->bihd", x, Y(0.5, 2, 4, 2, 3)), 2, 2, 3, 4)                               \
        ROW(einsum_itself, EINSUM("ij,kj->ik", x, x), 3, 4)                                                            \
        ROW(einsum_transposed, EINSUM("ji", x), 3, 4)                                                                  \
        ROW(einsum_sum, EINSUM("ij->j", x), 3, 4)                                                                      \
        ROW(einsum_sum_all, EINSUM("ij->", x), 3, 4)                                                                   \
        ROW(einsum_sum_first, EINSUM("ij,kl->ik", x, Y(0.5, 2, 3)), 3, 4)                                              \
        ROW(einsum_diagonal, EINSUM("iji->ij", x), 3, 2, 3)                                                            \
        ROW(einsum_trace, EINSUM("bii->b", x), 2, 3, 3)                                                                \
        ROW(einsum_trace_of_product, EINSUM("ij,ji->", x, Y(0.5, 4, 3)), 3, 4)                                         \
        ROW(einsum_outer, EINSUM("i,j->ij", x, Y(0.5, 3)), 5)                                                          \
        ROW(einsum_outer_turned, EINSUM("i,j->ji", x, Y(0.5, 3)), 5)                                                   \
        ROW(einsum_dot, EINSUM("i,i->", x, Y(0.5, 5)), 5)                                                              \
        ROW(einsum_dots, EINSUM("bij,bij->b", x, Y(0.5, 2, 3, 4)), 2, 3, 4)                                            \
        ROW(einsum_elementwise, EINSUM("ij,ij->ij", x, Y(0.5, 3, 4)), 3, 4)                                            \
        ROW(einsum_elementwise_turned, EINSUM("ij,ji->ji", x, Y(0.5, 4, 3)), 3, 4)                                     \
        ROW(einsum_number, EINSUM(",ij->ij", lg_squeeze(x, LG_ALL_DIMS), Y(0, 3, 4)), 1)                               \
        ROW(einsum_ellipsis, EINSUM("...ij,...jk->...ik", x, Y(0.5, 4, 2)), 2, 2, 3, 4)                                \
        ROW(einsum_ellipses, EINSUM("...ij,...jk", x, Y(0.5, 2, 1, 4, 2)), 2, 2, 3, 4)                                 \
        ROW(einsum_ellipsis_end, EINSUM("i...,i...->...i", x, Y(0.5, 3, 1)), 3, 4)                                     \
        ROW(einsum_ellipsis_summed, EINSUM("...i->i", x), 2, 3, 4)                                                     \
        ROW(einsum_broadcast, EINSUM("ij,ij->i", x, Y(0.5, 3, 1)), 3, 4)                                               \
        ROW(einsum_broadcast_summed, EINSUM("ij,jk->ik", x, Y(0.5, 4, 2)), 3, 1)                                       \
        ROW(einsum_three, EINSUM("ij,jk,kl->il", x, Y(0.5, 4, 2), Y(0.9, 2, 5)), 3, 4)                                 \
        ROW(einsum_bilinear, EINSUM("bi,oij,bj->bo", x, Y(0.5, 2, 3, 4), Y(0.9, 2, 4)), 2, 3)                          \
        ROW(einsum_four, EINSUM("ab,bc,cd,da->ac", x, Y(0.5, 4, 2), Y(0.7, 2, 5), Y(0.9, 5, 3)), 3, 4)                 \
        ROW(einsum_factors, EINSUM("ij,i,j->ij", x, Y(0.5, 3), Y(0.9, 4)), 3, 4)                                       \
        ROW(einsum_tucker, EINSUM("abc,ai,bj,ck->ijk", x, Y(0.5, 2, 3), Y(0.7, 3, 2), Y(0.9, 4, 2)), 2, 3, 4)          \
        ROW(einsum_spaces, EINSUM(" i j , j k -> i k ", x, Y(0.5, 4, 2)), 3, 4)                                        \
        ROW(einsum_empty, EINSUM("ij,jk->ik", x, Y(0, 0, 2)), 3, 0)                                                    \
        ROW(einsum_capitals, EINSUM("aB,Ba", x, Y(0.5, 4, 3)), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "products.txt", golden_input, ROWS);

/* ---- random equations, against sums over all values of all letters ---- */

enum { MOST = 4, LETTERS = 7, ROOM = 4096 };

typedef struct drawn {
        int operands, n[MOST + 1], letter[MOST + 1][4]; /* the last term is that of the result */
        int64_t size[LETTERS];
        bool one[MOST][4]; /* dimensions that broadcast */
        char text[64];
} drawn;

static unsigned draw(unsigned *next, unsigned n)
{
        *next = *next * 1664525u + 1013904223u;
        return (*next >> 16) % n;
}

static drawn draw_equation(unsigned *next)
{
        drawn e = {.operands = 1 + (int)draw(next, MOST)};
        bool used[LETTERS] = {false};
        char *to = e.text;
        for (int l = 0; l < LETTERS; l++)
                e.size[l] = 1 + draw(next, 3);
        for (int i = 0; i < e.operands; i++) {
                e.n[i] = (int)draw(next, 4);
                for (int d = 0; d < e.n[i]; d++) {
                        bool again = false;
                        const int l = e.letter[i][d] = (int)draw(next, LETTERS);
                        for (int k = 0; k < d; k++)
                                again = again || e.letter[i][k] == l;
                        e.one[i][d] = !again && draw(next, 6) == 0 && i > 0;
                        for (int k = 0; k < d; k++)
                                e.one[i][d] = e.one[i][d] || (again && e.letter[i][k] == l && e.one[i][k]);
                        used[l] = true;
                        *to++ = (char)(l < 3 ? 'X' + l : 'a' + l);
                }
                *to++ = i + 1 < e.operands ? ',' : '-';
        }
        *to++ = '>';
        for (int l = LETTERS - 1; l >= 0 && e.n[e.operands] < 4; l--)
                if (used[l] && draw(next, 2)) {
                        e.letter[e.operands][e.n[e.operands]++] = l;
                        *to++ = (char)(l < 3 ? 'X' + l : 'a' + l);
                }
        return e;
}

/* The sizes with which a letter counts: 1 where all operands have 1. */
static void settle_sizes(drawn *e)
{
        for (int l = 0; l < LETTERS; l++) {
                bool whole = false;
                for (int i = 0; i < e->operands; i++)
                        for (int d = 0; d < e->n[i]; d++)
                                whole = whole || (e->letter[i][d] == l && !e->one[i][d]);
                e->size[l] = whole ? e->size[l] : 1;
        }
}

static int64_t place(const drawn *e, int term, const int64_t *at)
{
        int64_t p = 0;
        for (int d = 0; d < e->n[term]; d++) {
                const int l = e->letter[term][d];
                const bool one = term < e->operands && e->one[term][d];
                p = p * (one ? 1 : e->size[l]) + (one ? 0 : at[l]);
        }
        return p;
}

static void sum_over_letters(const drawn *e, double values[MOST][ROOM], double *y)
{
        int64_t all = 1;
        for (int l = 0; l < LETTERS; l++)
                all *= e->size[l];
        memset(y, 0, ROOM * sizeof *y);
        bool seen[LETTERS] = {false};
        for (int i = 0; i < e->operands; i++)
                for (int d = 0; d < e->n[i]; d++)
                        seen[e->letter[i][d]] = true;
        for (int64_t k = 0; k < all; k++) {
                int64_t at[LETTERS], left = k;
                bool counts = true;
                double product = 1;
                for (int l = 0; l < LETTERS; l++) {
                        at[l] = left % e->size[l];
                        left /= e->size[l];
                        counts = counts && (seen[l] || at[l] == 0);
                }
                for (int i = 0; i < e->operands; i++)
                        product *= values[i][place(e, i, at)];
                y[place(e, e->operands, at)] += counts ? product : 0;
        }
}

TEST_CASE(random_equations)
{
        static double values[MOST][ROOM], y[ROOM];
        unsigned next = 7;
        lg_ctx *c = open_ctx();
        for (int round = 0; round < 400; round++) {
                lg_scope scope = lg_scope_begin(c);
                drawn e = draw_equation(&next);
                settle_sizes(&e);
                lg_tensor *x[MOST];
                for (int i = 0; i < e.operands; i++) {
                        lg_shape s = {.ndim = e.n[i]};
                        for (int d = 0; d < s.ndim; d++)
                                s.size[d] = e.one[i][d] ? 1 : e.size[e.letter[i][d]];
                        x[i] = golden_tensor(c, s, i);
                        read_all(x[i], values[i], ROOM);
                        x[i] = draw(&next, 2) ? golden_turned(x[i]) : x[i];
                }
                sum_over_letters(&e, values, y);
                lg_tensor *found = lg_einsum(e.text, LG_LIST_OF(e.operands, x));
                if (lg_error(c))
                        fail_msg("%s: %s", e.text, lg_error(c));
                lg_shape s = {.ndim = e.n[e.operands]};
                for (int d = 0; d < s.ndim; d++)
                        s.size[d] = e.size[e.letter[e.operands][d]];
                assert_shape(found, s);
                assert_values(found, y, lg_numel(found), 1e-10);
                lg_scope_end(c, scope);
        }
        lg_close(c);
}

/* ---- dtypes, sizes, handles ---- */

TEST_CASE(dtypes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *i = lg_reshape(lg_arange(c, 0, 4, 1, .dtype = LG_I32), LG_SHAPE(2, 2));
        assert_int_equal(lg_dtype_of(lg_einsum("ij->i", LG_LIST(i))), LG_I64);
        assert_int_equal(lg_dtype_of(lg_einsum("ij->ji", LG_LIST(i))), LG_I32);
        assert_int_equal(lg_dtype_of(lg_einsum("ij,ij->ij", LG_LIST(i, i))), LG_I32);
        lg_tensor *half = lg_cast(i, LG_F16), *wide = lg_cast(i, LG_F64);
        assert_int_equal(lg_dtype_of(lg_einsum("ij,jk->ik", LG_LIST(half, half))), LG_F16);
        assert_int_equal(lg_dtype_of(lg_einsum("ij,jk,kl->il", LG_LIST(half, half, half))), LG_F16);
        assert_int_equal(lg_dtype_of(lg_einsum("ij,jk", LG_LIST(half, wide))), LG_F64);
        assert_int_equal(lg_dtype_of(lg_einsum("ij,jk", LG_LIST(i, half))), LG_F16);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(views_and_empty_tensors)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)), *none = lg_zeros(c, LG_SHAPE(3, 0));
        lg_tensor *same = lg_einsum("ij->ij", LG_LIST(x));
        assert_true(same != x);
        assert_true(lg_fill_(same, 2));
        assert_list(x, 0, 2, 2, 2, 2, 2, 2);
        assert_shape(lg_einsum("ij,jk->ik", LG_LIST(x, none)), LG_SHAPE(2, 0));
        assert_list(lg_einsum("ij,ij->i", LG_LIST(none, none)), 0, 0, 0, 0);
        assert_list(lg_einsum("ij,ij->i", LG_LIST(none, lg_ones(c, LG_SHAPE(3, 1)))), 0, 0, 0, 0);
        assert_shape(lg_einsum("abcdefg,abcdefg->abcdef", LG_LIST(lg_ones(c, LG_SHAPE(2, 2, 2, 2, 2, 2, 2)),
                                                                  lg_ones(c, LG_SHAPE(2, 2, 2, 2, 2, 2, 2)))),
                     LG_SHAPE(2, 2, 2, 2, 2, 2));
        assert_shape(lg_einsum("abcdefgh,abcdefgh->abcdefgh", LG_LIST(lg_ones(c, LG_SHAPE(2, 1, 2, 1, 1, 1, 1, 2)),
                                                                      lg_ones(c, LG_SHAPE(1, 2, 1, 1, 1, 1, 1, 2)))),
                     LG_SHAPE(2, 2, 2, 1, 1, 1, 1, 2));
        assert_null(lg_einsum("i", LG_LIST(NULL)));
        assert_null(lg_einsum("i", (lg_list){0, NULL}));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_equations)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)), *y = lg_ones(c, LG_SHAPE(4, 2));
#define WRONG(equation, code, text, ...) assert_fails(c, EINSUM(equation, __VA_ARGS__), code, text)
        WRONG(NULL, LG_ERR_ARGUMENT, "the equation is NULL", x);
        WRONG("ij,jk->ik", LG_ERR_SHAPE, "in \"ij,jk->ik\", at position 5: 'j' has size 4 in tensor 1, but 3 before", x,
              y);
        WRONG("ij,jk>ik", LG_ERR_ARGUMENT, "at position 5: '>' is not a letter", x, y);
        WRONG("ij-", LG_ERR_ARGUMENT, "at position 2: '-' without '>'", x);
        WRONG("ij->ik", LG_ERR_ARGUMENT, "at position 5: 'k' of the result is in no term", x);
        WRONG("ij->ii", LG_ERR_ARGUMENT, "at position 5: 'i' is twice in the result", x);
        WRONG("ij->i,j", LG_ERR_ARGUMENT, "at position 5: ',' in the result", x);
        WRONG("ij->i->", LG_ERR_ARGUMENT, "at position 5: '-' in the result", x);
        WRONG("ijk", LG_ERR_SHAPE, "more letters than tensor 0, f32 (2, 3)", x);
        WRONG("i", LG_ERR_SHAPE, "the term has 1 letters, but tensor 0 is f32 (2, 3)", x);
        WRONG("", LG_ERR_SHAPE, "the term has 0 letters", x);
        WRONG("ij,", LG_ERR_ARGUMENT, "at position 2: more terms than the 1 tensors", x);
        WRONG("ij", LG_ERR_ARGUMENT, "at position 2: 1 terms for 2 tensors", x, y);
        WRONG("..ij", LG_ERR_ARGUMENT, "at position 0: '.' is not", x);
        WRONG("...i...", LG_ERR_ARGUMENT, "at position 4: a second ellipsis", x);
        WRONG("ij->......", LG_ERR_ARGUMENT, "at position 7: a second ellipsis", x);
        WRONG("ii", LG_ERR_SHAPE, "'i' has size 3 in tensor 0, but 2 before", x);
        WRONG("ii", LG_ERR_SHAPE, "'i' of tensor 0 has the sizes 1 and 3", lg_ones(c, LG_SHAPE(1, 3)));
        WRONG("...,...", LG_ERR_SHAPE, "the ellipsis of tensor 1 has size 4 in its dimension -2, but 2", x, y);
        WRONG("abcde,fghij", LG_ERR_SHAPE, "the result would have 10 dimensions", lg_ones(c, LG_SHAPE(1, 1, 1, 1, 1)),
              lg_ones(c, LG_SHAPE(1, 1, 1, 1, 1)));
        lg_tensor *big = lg_ones(c, LG_SHAPE(2, 2, 2, 2, 2));
        WRONG("abcde,fghij,abcde,fghij,afbgc->", LG_ERR_SHAPE, "f32", big, big, big, lg_cast(big, LG_F32), x);
        WRONG("ij,jk", LG_ERR_ARGUMENT, "tensor 1 is NULL", x, NULL);
        lg_close(c);
}
