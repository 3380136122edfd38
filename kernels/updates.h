/* updates.h - sub-formulas of updates.def, of the step inputs that the optimiser has. */
#ifndef LG_UPDATES_H
#define LG_UPDATES_H

#include <math.h>
#include "philox.h"

/* The momentum of NAdam in step t. */
#define NADAM_MU(t) (beta1 * (1 - 0.5 * pow(0.96, (t)*momentum_decay)))
/* The product of the momenta of NAdam in steps 1 to t. */
#define NADAM_PRODUCT(t) lg_nadam_product(beta1, momentum_decay, t)
/* The length of the average in RAdam, in step t and in the limit, and the rectification of the variance. */
#define RADAM_LIMIT (2 / (1 - beta2) - 1)
#define RADAM_RHO(t) (RADAM_LIMIT - 2 * (t)*pow(beta2, t) / (1 - pow(beta2, t)))
#define RADAM_RECTIFICATION(t)                                                                                         \
        sqrt((RADAM_RHO(t) - 4) * (RADAM_RHO(t) - 2) * RADAM_LIMIT /                                                   \
             ((RADAM_LIMIT - 4) * (RADAM_LIMIT - 2) * RADAM_RHO(t)))

/* Returns NADAM_PRODUCT(t), or a product that is too small to change 1 - NADAM_PRODUCT(t). */
LG_HOST_DEVICE static inline double lg_nadam_product(double beta1, double momentum_decay, double t)
{
        const double ratio = pow(0.96, momentum_decay);
        double product = 1, rest = 0.5;
        for (double i = 1; i <= t && product > 1e-20; i++) {
                rest *= ratio;
                product *= beta1 * (1 - rest);
        }
        return product;
}

#endif
