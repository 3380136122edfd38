/* without.c - functions that need a library that libgrad was built without; they set an error that says so. */
#include "tensor/tensor.h"

static void *missing(lg_ctx *c, const char *op, const char *library, const char *package)
{
        return lg__fail(c, LG_ERR_STATE,
                        "%s: libgrad was built without %s; install it (Debian: %s) and build libgrad again", op,
                        library, package);
}

#ifndef LG_DLPACK
struct DLManagedTensor *lg_to_dlpack(lg_tensor *t)
{
        return lg__check(t, "lg_to_dlpack", "t") ? missing(t->ctx, "lg_to_dlpack", "DLPack", "libdlpack-dev") : NULL;
}

lg_tensor *lg_from_dlpack(lg_ctx *c, struct DLManagedTensor *m)
{
        (void)m;
        return missing(c, "lg_from_dlpack", "DLPack", "libdlpack-dev");
}
#endif

#ifndef LG_ZIP
lg_tensor *lg_read_npz(lg_ctx *c, const char *path, const char *name)
{
        (void)path, (void)name;
        return missing(c, "lg_read_npz", "libzip", "libzip-dev");
}

lg_names lg_npz_names(lg_ctx *c, const char *path)
{
        (void)path;
        missing(c, "lg_npz_names", "libzip", "libzip-dev");
        return (lg_names){0};
}

void lg_names_free(lg_ctx *c, lg_names names)
{
        (void)c, (void)names;
}

bool lg_write_npz(lg_ctx *c, const char *path, lg_names names, lg_list arrays)
{
        (void)path, (void)names, (void)arrays;
        return missing(c, "lg_write_npz", "libzip", "libzip-dev");
}
#endif

#ifndef LG_PNG
lg_tensor *lg_read_png_with(lg_ctx *c, const char *path, const lg_read_png_options *options)
{
        (void)path, (void)options;
        return missing(c, "lg_read_png", "libpng", "libpng-dev");
}

bool lg_write_png(const lg_tensor *t, const char *path)
{
        (void)path;
        return lg__check(t, "lg_write_png", "t") && missing(t->ctx, "lg_write_png", "libpng", "libpng-dev");
}

bool lg_board_image(lg_board *b, const char *tag, lg_tensor *t, int64_t step)
{
        (void)tag, (void)t, (void)step;
        return b && missing(((lg__object *)b)->ctx, "lg_board_image", "libpng", "libpng-dev");
}

lg_dataset *lg_dataset_image_folder_with(lg_ctx *c, const char *path, const lg_dataset_image_folder_options *options)
{
        (void)path, (void)options;
        return missing(c, "lg_dataset_image_folder", "libpng", "libpng-dev");
}
#endif
