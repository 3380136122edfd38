/* names.c - the example networks by name. */
#include <string.h>
#include "models.h"

static lg_module *resnet18(lg_ctx *c)
{
        return lg_model_resnet18(c, 1, 10);
}

static const struct {
        const char *name;
        lg_module *(*make)(lg_ctx *c);
} models[] = {{"mlp", lg_model_mlp},
              {"lenet", lg_model_lenet},
              {"cnn", lg_model_cnn},
              {"vgg", lg_model_vgg},
              {"resnet18", resnet18}};

const char *lg_model_names(void)
{
        return "mlp, lenet, cnn, vgg, resnet18";
}

const char *lg_model_name(int i)
{
        return i >= 0 && i < (int)(sizeof models / sizeof *models) ? models[i].name : NULL;
}

lg_module *lg_model(lg_ctx *c, const char *name)
{
        for (size_t i = 0; i < sizeof models / sizeof *models; i++)
                if (name && !strcmp(models[i].name, name))
                        return models[i].make(c);
        lg_set_error(c, LG_ERR_ARGUMENT, "there is no model \"%s\"; there are %s", name ? name : "", lg_model_names());
        return NULL;
}
