/* stage.c - values are put in their places. */
#include <string.h>
#include "stage.h"

static bool put_tensor(lg__roster *r, const lg__staged *s)
{
        lg_tensor **at = s->to->at;
        if (*at && !s->goes) {
                lg__storage_finish_copies((*at)->storage);
                if (!lg__copy_values(*at, s->tensor, r->op))
                        return false;
                (*at)->storage->version++;
                return true;
        }
        lg_tensor *old = *at;
        *at = s->goes ? NULL : lg__tensor_own(s->tensor);
        lg__tensor_release(old);
        return true;
}

static void put_number(const lg__staged *s)
{
        switch (s->to->kind) {
        case LG__HELD_I64:
        case LG__HELD_COUNT:
                *(int64_t *)s->to->at = s->number.i64;
                break;
        case LG__HELD_U64:
                *(uint64_t *)s->to->at = s->number.u64;
                break;
        case LG__HELD_F64:
                *(double *)s->to->at = s->number.f64;
                break;
        case LG__HELD_BOOL:
                *(bool *)s->to->at = s->number.flag;
                break;
        case LG__HELD_TEXT:
                memcpy(s->to->at, s->number.text, strlen(s->number.text) + 1);
                break;
        case LG__HELD_TENSOR:
                break;
        }
}

bool lg__stage_commit(lg__roster *r, lg__staged *all, int64_t count)
{
        for (int64_t i = 0; i < count; i++)
                if (all[i].to->kind == LG__HELD_TENSOR && !all[i].late && !put_tensor(r, &all[i]))
                        return false;
        for (int64_t i = 0; i < count; i++)
                put_number(&all[i]);
        return true;
}
