#!/usr/bin/env python3
"""generate.py - calls of every public function with NULL in place of its arguments, as C, from the declarations of the header.

generate.py INCLUDE... -- COMPILER...: writes the calls to standard output, which calls.c includes. Each call of a function has
either one argument that is wrong (NULL, a list without an array, a negative count) or no context at all. Whether they do what
they should is checked there. A type that is not in GOOD is an error, so that no new function escapes.
"""
import re
import subprocess
import sys

# An argument that a function could take: members of `given` and constants.
GOOD = {
    'lg_ctx *': 'g->c', 'lg_tensor *': 'g->x', 'lg_module *': 'g->net', 'lg_optimizer *': 'g->opt', 'lg_scheduler *': 'g->schedule',
    'lg_ema *': 'g->ema', 'lg_scaler *': 'g->scaler', 'lg_dataset *': 'g->data', 'lg_loader *': 'g->loader', 'lg_collate *': 'g->collate',
    'lg_transform *': 'g->transform', 'lg_checkpoint *': 'g->checkpoint', 'lg_weights *': 'g->weights', 'lg_csv *': 'g->csv',
    'lg_group *': 'g->group', 'lg_rng *': 'g->rng', 'lg_sample *': 'g->sample', 'struct DLManagedTensor *': 'NULL', 'FILE *': 'g->file',
    'const lg_trace_record *': 'g->record', 'char *': 'g->text', 'const char *': '"x"', 'void *': 'g->memory', 'double *': 'g->memory', 'int64_t *': 'g->memory',
    'lg_tensor **': 'g->memory', 'lg_dataset **': 'g->memory', 'const char **': 'g->memory', 'lg_device *': 'g->memory',
    'lg_memory_stats_t *': 'g->memory', 'lg_device_info_t *': 'g->memory', 'lg_outputs *': 'g->memory', 'lg_weight *': 'g->memory',
    'lg_batch *': 'g->memory',
    'lg_dataset *const *': '(lg_dataset *[]){g->data, LG_END}', 'lg_transform *const *': '(lg_transform *[]){g->transform, LG_END}',
    'lg_module *const *': '(lg_module *[]){g->free_net, LG_END}', 'lg_scheduler *const *': '(lg_scheduler *[]){g->schedule, LG_END}',
    'lg_tensor *const *': '(lg_tensor *[]){g->x, LG_END}',
    'lg_message_fn *': 'on_message', 'lg_hook_fn *': 'on_hook', 'lg_parameter_fn *': 'on_parameter', 'lg_lambda_fn *': 'on_lambda',
    'lg_trace_fn *': 'on_trace', 'lg_collate_fn *': 'on_collate', 'lg_transform_fn *': 'on_transform', 'lg_check_fn *': 'on_check',
    'lg_sample_fn *': 'on_sample',
    'lg_list_in': 'LG_LIST(g->x)', 'lg_ints_in': 'LG_INTS(1)', 'lg_numbers_in': 'LG_NUMBERS(1)', 'lg_names_in': 'LG_NAMES("x")',
    'lg_list': 'LG_LIST(g->x)', 'lg_names': 'LG_NAMES("x")',
    'lg_shape': 'LG_SHAPE(2, 3)', 'lg_dims': 'LG_DIMS(0)', 'lg_device': 'lg_cpu()', 'lg_fields': 'LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE(1)))',
    'lg_scope': 'g->scope', 'lg_random_state': '(lg_random_state){0}', 'lg_dtype': 'LG_F32', 'lg_device_type': 'LG_DEVICE_CPU',
    'lg_rank_op': 'LG_RANKS_SUM', 'lg_state_kind': 'LG_STATE_MODULE', 'lg_error_code': 'LG_ERR_STATE',
    'double': '1', 'int': '1', 'int64_t': '1', 'size_t': '64', 'uint64_t': '1', 'bool': 'true',
}
# What is wrong beside NULL.
WRONG = {
    'lg_list_in': ['LG_LIST_OF(1, NULL)', 'LG_LIST_OF(-1, NULL)', 'LG_LIST(NULL)'],
    'lg_names_in': ['LG_NAMES_OF(1, NULL)', 'LG_NAMES_OF(-1, NULL)', 'LG_NAMES(NULL)'],
    'lg_ints_in': ['LG_INTS_OF(1, NULL)', 'LG_INTS_OF(-1, NULL)'],
    'lg_numbers_in': ['LG_NUMBERS_OF(1, NULL)', 'LG_NUMBERS_OF(-1, NULL)'],
    'lg_list': ['LG_LIST_OF(1, NULL)'], 'lg_names': ['LG_NAMES_OF(1, NULL)'],
    'int64_t': ['-1', 'INT64_MIN', 'INT64_MAX'], 'int': ['-1', 'INT_MIN', 'INT_MAX'], 
    'lg_shape': ['(lg_shape){.ndim = -1}', '(lg_shape){.ndim = 99}', 'LG_SHAPE(-1)'], 'lg_dims': ['(lg_dims){.count = -1}', '(lg_dims){.count = 99}'],
    'lg_fields': ['(lg_fields){.count = -1}', '(lg_fields){.count = 99}', 'LG_FIELDS(LG_FIELD(NULL, LG_F32, LG_SHAPE(1)))'],
}
