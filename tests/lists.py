#!/usr/bin/env python3
"""lists.py SOURCE_ROOT COMPILER ARGUMENT... - each public function is called by one of the lists that tests are made of.

It prints the lists that call each function of grad.h, and fails for a function that is in none of them and not in BY_HAND. An op
of ops.def must be in calls.def, too. tests/nulls/calls.py and tests/sweep.py call every function with what it must refuse.
"""
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
root, compiler = sys.argv[1], sys.argv[2:]
sys.path[:0] = [os.path.join(root, 'tests'), os.path.join(root, 'tests/header')]
import declarations  # noqa: E402
import examples  # noqa: E402

# Tests of functions that take nothing that a list could vary, or need processes or a loader's thread.
BY_HAND = {
    'test_context.c': 'lg_version lg_default_device', 'test_split.c': 'lg_unbind', 'test_batches.c': 'lg_rng_normal',
    'test_windows.c': 'lg_nn_pixel_shuffle lg_nn_pixel_unshuffle lg_nn_channel_shuffle',
    'test_options.c': 'lg_memory_limit lg_deterministic lg_allow_tf32 lg_conv_allow_tf32 lg_grad_mode lg_anomaly',
    'test_autocast.c': 'lg_autocast_mode', 'transport/collective.c': 'lg_group_local_rank lg_group_host',
    'transport/rules.c': 'lg_group_transport lg_sync_mode', 'test_pointwise_made.c': 'lg_equal', 'test_inplace.c': '''lg_add_scalar_
    lg_sub_scalar_ lg_mul_scalar_ lg_div_scalar_ lg_pow_scalar_ lg_floor_divide_scalar_ lg_remainder_scalar_ lg_fmod_scalar_
    lg_maximum_scalar_ lg_minimum_scalar_ lg_clamp_''',
    'test_dist.c': '''lg_dist_normal lg_dist_uniform lg_dist_laplace lg_dist_cauchy lg_dist_gumbel lg_dist_student_t lg_dist_exponential
    lg_dist_gamma lg_dist_chi2 lg_dist_beta lg_dist_log_normal lg_dist_half_normal lg_dist_dirichlet lg_dist_diagonal_normal
    lg_dist_poisson lg_dist_sample lg_dist_rsample lg_dist_log_prob lg_dist_entropy lg_dist_mean lg_dist_variance lg_dist_kl''',
}
# Ops that are within others, whose results are of whole numbers, or that draw.
NOT_LARGE = set('''view to slice_grad norm2 matmul_add linear_relu relu_grad class_weights pick pick_grad one_hot nonzero bernoulli
    multinomial rotate sequence_mask sample_logits pieces batch_norm_relu max_pool2d_grad max_pool2d_pick avg_pool2d_grad conv2d_relu conv2d_end conv2d_input_grad
    conv2d_weight_grad weighted recurrent float_power bitwise_not isclose equal standard_gamma poisson gumbel_softmax
    im2col col2im resample sample sample_x_grad sample_weight_grad
    solve_system cofactors det_value logdet_value eigh matrix_rank pinv_of qr svd
    scatter_extreme scatter_reduce searchsorted bucketize isin bincount count_nonzero'''.split())


def read(pattern):
    return ''.join(open(path, encoding='ascii').read() for path in sorted(glob.glob(os.path.join(root, pattern))))


def mentioned(text):
    return set(re.findall(r'\blg_\w+', text))


def main():
    functions, wrong = declarations.functions(declarations.preprocessed(compiler)), []
    not_made = mentioned(read('tests/fuzz/made.py'))
    lists = {
        'examples': mentioned(examples.source(root)[0]),
        'pointwise.def': {f'lg_{name}' for name in re.findall(r'^[A-Z_]+\((\w+),', read('kernels/pointwise.def'), re.M)},
        'gradients.def': mentioned(read('tests/gradients.def')),
        'calls.def': mentioned(read('tests/calls.def')),
        'fuzz': mentioned(read('tests/fuzz/*.c')) | {name for result, name, _ in functions
                                                     if result == 'lg_tensor *' and name not in not_made},
        'mistakes': mentioned(read('tests/mistakes/correct.c')),
    }
    lists.update({file: set(names.split()) for file, names in BY_HAND.items()})
    wrong += [f'tests/{file} does not call {name}' for file, names in BY_HAND.items()
              for name in set(names.split()) - mentioned(read('tests/' + file))]
    for _, name, _ in functions:
        known = [called for called, names in lists.items() if {name, re.sub('_(with|list)$', '', name)} & names]
        print(f'{name}: {", ".join(known)}')
        if not known:
            wrong.append(f'no list calls {name}(): give it an Example, or a call in one of {", ".join(list(lists)[1:6])}')
    ops = set(re.findall(r'^(?:OP|COMPOSITE)\((\w+)\)', read('libgrad/ops/ops.def'), re.M))
    wrong += [f'{op} of ops.def has no call in calls.def' for op in sorted(ops - NOT_LARGE) if f'lg_{op}' not in lists['calls.def']]
    print('\n'.join([f'{len(functions)} functions, {len(ops)} ops, {len(wrong)} complaints'] + wrong))
    return bool(wrong)


sys.exit(main())
