/* npz_none.c - NumPy's archives where libgrad is built without libzip: errors that say so. */
#include "tensor/tensor.h"

static void *missing(lg_ctx *c, const char *who)
{
        return lg__fail(c, LG_ERR_STATE, "%s: " LG__BUILT_WITHOUT("libzip", "libzip-dev"), who);
}

lg_tensor *lg_read_npz(lg_ctx *c, const char *path, const char *name)
{
        (void)path, (void)name;
        return missing(c, "lg_read_npz");
}

lg_names lg_npz_names(lg_ctx *c, const char *path)
{
        (void)path;
        missing(c, "lg_npz_names");
        return (lg_names){0};
}

void lg_names_free(lg_ctx *c, lg_names names)
{
        (void)c, (void)names;
}

bool lg_write_npz(lg_ctx *c, const char *path, lg_names names, lg_list arrays)
{
        (void)path, (void)names, (void)arrays;
        return missing(c, "lg_write_npz");
}
