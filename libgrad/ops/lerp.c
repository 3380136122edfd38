/* lerp.c - between a and b: a + w (b - a), made of other ops, of 16-bit floats in f32.
 *
 * From the half on it is b - (1 - w) (b - a): so both ends come out exactly.
 */
#include "../op.h"

static bool check(const char *op, const lg_tensor *a, const lg_tensor *b, const lg_tensor *w)
{
        const lg_tensor *of[] = {a, b, w};
        static const char *const names[] = {"a", "b", "w"};
        lg_shape shape = a->at.shape;
        for (int i = 1; i < 3; i++)
                if (!lg__same_context(a, of[i], op, names[i]))
                        return false;
        for (int i = 0; i < 3 && of[i]; i++) {
                if (!lg__check(of[i], op, names[i]))
                        return false;
                if (!lg__dtype_float(of[i]->at.dtype))
                        return lg__fail(a->ctx, LG_ERR_DTYPE,
                                        "%s: %s is %s, not of a float dtype; convert it with lg_cast()", op, names[i],
                                        lg__tensor_text(of[i]).s);
                if (!lg__broadcast(a->ctx, op, shape, of[i]->at.shape, &shape))
                        return false;
        }
        return true;
}

lg_tensor *lg_lerp_scalar(lg_tensor *a, lg_tensor *b, double w)
{
        if (!a || !b)
                return lg__fail(a ? a->ctx : lg__ctx_of(b), LG_ERR_ARGUMENT, "lerp_scalar: %s is NULL", a ? "b" : "a");
        if (!check("lerp_scalar", a, b, NULL))
                return NULL;
        lg_dtype dtype = lg__common_dtype((lg_tensor *[]){a, b}, 2);
        a = lg__widened(a);
        b = lg__widened(b);
        lg_tensor *way = lg_sub(b, a);
        return lg_cast(w < 0.5 ? lg_add(a, lg_mul_scalar(way, w)) : lg_sub(b, lg_mul_scalar(way, 1 - w)), dtype);
}

lg_tensor *lg_lerp(lg_tensor *a, lg_tensor *b, lg_tensor *w)
{
        if (!a || !b || !w)
                return lg__fail(a   ? a->ctx
                                : b ? b->ctx
                                    : lg__ctx_of(w),
                                LG_ERR_ARGUMENT, "lerp: %s is NULL",
                                !a   ? "a"
                                : !b ? "b"
                                     : "w");
        if (!check("lerp", a, b, w))
                return NULL;
        lg_dtype dtype = lg__common_dtype((lg_tensor *[]){a, b, w}, 3);
        a = lg__widened(a);
        b = lg__widened(b);
        w = lg__widened(w);
        lg_tensor *way = lg_sub(b, a), *from_b = lg_sub(b, lg_mul(way, lg_rsub_scalar(w, 1)));
        return lg_cast(lg_where(lg_lt_scalar(w, 0.5), lg_add(a, lg_mul(way, w)), from_b), dtype);
}
