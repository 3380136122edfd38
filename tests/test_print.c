/* test_print.c - what lg_print and lg_graph_dot write, compared with what PyTorch prints. */
#include <locale.h>
#include <unistd.h>
#include "test.h"

static char text[1 << 16];

static const char *printed(const lg_tensor *t)
{
        FILE *f = fmemopen(text, sizeof text, "w");
        bool ok = lg_print(f, t);
        fclose(f);
        assert_true(ok);
        return text;
}

static void assert_has(const char *s, const char *part)
{
        if (!strstr(s, part))
                fail_msg("\"%s\" is not in:\n%s", part, s);
}

TEST_CASE(values)
{
        lg_ctx *c = open_ctx();
        assert_has(printed(lg_from(c, ((float[]){1, 2.5f, -3}), LG_SHAPE(3))), "[ 1.0000,  2.5000, -3.0000]");
        assert_has(printed(lg_from(c, ((int64_t[]){1, 20, -3}), LG_SHAPE(3), .dtype = LG_I64)), "[ 1, 20, -3]");
        assert_has(printed(lg_from(c, ((float[]){1, 2, 3}), LG_SHAPE(3))), "[1., 2., 3.]");
        const char *s = printed(lg_from(c, ((bool[]){1, 0}), LG_SHAPE(2), .dtype = LG_BOOL));
        assert_true(strstr(s, "true") || strstr(s, "True"));
        s = printed(lg_from(c, ((float[]){NAN, INFINITY, -INFINITY, 1.5f}), LG_SHAPE(4)));
        assert_has(s, "nan");
        assert_has(s, "inf");
        assert_has(s, "-inf");
        assert_has(s, "1.5000");
        assert_has(printed(lg_from(c, ((float[]){1e-9f, 1e9f}), LG_SHAPE(2))), "1.0000e-09");
        assert_has(printed(lg_scalar(c, 3.25)), "3.25");
        s = printed(lg_arange(c, 0, 6, 1, .dtype = LG_F16));
        assert_has(s, "f16");
        s = printed(lg_zeros(c, LG_SHAPE(0, 3)));
        assert_has(s, "[]");
        assert_has(s, "(0, 3)");
        lg_close(c);
}

TEST_CASE(shapes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *m = lg_reshape(lg_arange(c, 0, 6, 1), LG_SHAPE(2, 3));
        const char *s = printed(m);
        assert_has(s, "[0, 1, 2]");
        assert_has(s, "[3, 4, 5]");
        assert_has(printed(lg_transpose(m, 0, 1)), "[0, 3]");
        s = printed(lg_arange(c, 0, 2000, 1));
        assert_has(s, "...");
        assert_has(s, "1999");
        assert_true(strlen(s) < 400);
        assert_null(strstr(s, "500"));
        drop(lg_arange(c, 0, 1000, 1));
        s = printed(lg_reshape(lg_arange(c, 0, 1000, 1), LG_SHAPE(10, 100)));
        assert_null(strstr(s, "..."));
        lg_close(c);
}

TEST_CASE(always_works)
{
        lg_ctx *c = open_ctx();
        lg_scope s = lg_scope_begin(c);
        lg_tensor *t = lg_ones(c, LG_SHAPE(2));
        lg_set_error(c, LG_ERR_IO, "x");
        assert_has(printed(t), "1.");
        assert_string_equal(lg_error(c), "x");
        lg_clear_error(c);
        lg_scope_end(c, s);
        printed(t); /* dead */
        printed(NULL);
        lg_clear_error(c);
        lg_close(c);
}

TEST_CASE(dot)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3), .requires_grad = true);
        lg_tensor *y = lg_sum(lg_mul(lg_exp(x), x));
        FILE *f = fmemopen(text, sizeof text, "w");
        assert_true(lg_graph_dot(f, y));
        fclose(f);
        assert_has(text, "digraph");
        assert_has(text, "->");
        assert_has(text, "sum");
        assert_has(text, "mul");
        assert_has(text, "exp");
        assert_has(text, "(2, 3)");
        int arrows = 0, open = 0;
        for (const char *p = text; *p; p++) {
                open += (*p == '{') - (*p == '}');
                arrows += p[0] == '-' && p[1] == '>';
        }
        assert_int_equal(open, 0);
        assert_true(arrows >= 4); /* x to exp and to mul, exp to mul, mul to sum */
        assert_false(lg_graph_dot(NULL, y));
        assert_error(c, LG_ERR_ARGUMENT, "lg_graph_dot");
        lg_close(c);
}

/* Parameters stand under their paths, ops of a watched module in a frame. */
TEST_CASE(dot_of_a_network)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 3, 4), lg_nn_tanh(c), lg_nn_linear(c, 4, 2));
        FILE *f = fmemopen(text, sizeof text, "w");
        lg_set_anomaly(c, true);
        lg_tensor *y = lg_forward(net, lg_ones(c, LG_SHAPE(2, 3)));
        lg_set_anomaly(c, false);
        assert_true(lg_graph_dot(f, y, .module = net));
        fclose(f);
        assert_has(text, "label=\"0.weight\\nf32 (4, 3)\\n");
        assert_has(text, "2.bias");
        assert_has(text, "label=\"1 (Tanh)\"");
        assert_ok(c);
        lg_close(c);
}

/* A disk that is full, as a file: small texts wait in a buffer, so that only the flush can tell. */
TEST_CASE(full_disks_are_told)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3), .requires_grad = true);
        lg_module *net = lg_nn_linear(c, 3, 4);
        for (int i = 0; i < 6; i++) {
                FILE *f = fopen("/dev/full", "w");
                assert_non_null(f);
                bool ok = i == 0   ? lg_print(f, x)
                          : i == 1 ? lg_graph_dot(f, lg_exp(x))
                          : i == 2 ? lg_module_print(f, net, .input = LG_SHAPE(2, 3))
                          : i == 3 ? lg_module_print(f, net)
                          : i == 4 ? lg_module_print_memory(f, net, .input = LG_SHAPE(2, 3))
                                   : lg_graph_dot(f, x);
                assert_false(ok);
                assert_error(c, LG_ERR_IO, "the file cannot be written: ");
                assert_true(fputs("more", f) >= 0 && fflush(f)); /* an earlier failure counts, too */
                assert_false(lg_print(f, x));
                assert_error(c, LG_ERR_IO, "lg_print: the file cannot be written");
                assert_false(lg_print(f, NULL));
                fclose(f);
        }
        assert_false(lg_print(NULL, x));
        assert_error(c, LG_ERR_ARGUMENT, "lg_print: the file is NULL");
        lg_close(c);
}

/* ---- decimal commas ---- */

#define ASCII "<U00%02X> /x%02x c\n"

/* Makes a locale of our own, with the C library's tool and nothing else, and sets it. */
static void set_comma(const char *folder)
{
        char command[400];
        snprintf(command, sizeof command, "%s/characters", folder);
        FILE *f = fopen(command, "w");
        assert_non_null(f);
        fputs("<code_set_name> ASCII\n<comment_char> %\n<escape_char> /\nCHARMAP\n", f);
        for (unsigned i = 0; i < 128; i++)
                fprintf(f, ASCII, i, i);
        fputs("END CHARMAP\n", f);
        fclose(f);
        snprintf(command, sizeof command, "%s/source", folder);
        f = fopen(command, "w");
        assert_non_null(f);
        fputs("comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\n"
              "grouping 3;3\nEND LC_NUMERIC\n",
              f);
        fclose(f);
        /* It warns of what is not in it, and then exits with 1. */
        snprintf(command, sizeof command,
                 "cd %s && PATH=$PATH:/usr/bin:/usr/sbin localedef -c -i ./source -f ./characters ./comma >log 2>&1",
                 folder);
        if (system(command) < 0 || setenv("LOCPATH", folder, 1) || !setlocale(LC_NUMERIC, "comma"))
                fail_msg("no locale with a decimal comma could be made by localedef (Debian: libc-bin)");
}

static void remove_folder(const char *folder)
{
        char command[200];
        snprintf(command, sizeof command, "rm -rf %s", folder);
        assert_int_equal(system(command), 0);
}

static lg_tensor *exponential(lg_ctx *c, lg_list inputs, void *user)
{
        (void)c, (void)user;
        return lg_exp(inputs.items[0]);
}

/* Everything that writes fractions, as it is and under the comma. */
static void write_all(lg_ctx *c, FILE *f)
{
        lg_tensor *x = lg_full(c, LG_SHAPE(2, 3), 2.5, .requires_grad = true);
        lg_module *net = lg_nn_linear(c, 3, 1000);
        lg_check_report report;
        assert_true(lg_print(f, x));
        assert_true(lg_print(f, lg_from(c, ((double[]){1.5e-9, 1e9}), LG_SHAPE(2), .dtype = LG_F64)));
        assert_true(lg_graph_dot(f, lg_exp(x)));
        assert_true(lg_module_print_memory(f, net, .input = LG_SHAPE(2, 3)));
        assert_true(lg_module_print(f, net, .input = LG_SHAPE(2, 3)));
        lg_set_trace(c, lg_trace_print, .user = f);
        drop(lg_exp(x));
        lg_set_trace(c, NULL);
        lg_tensor *y = lg_full(c, LG_SHAPE(1), 2.5, .dtype = LG_F64, .requires_grad = true);
        assert_true(lg_gradcheck(c, exponential, LG_LIST(y), .report = &report));
        fputs(report.text, f);
        lg_clear_error(c);
        drop(lg_uniform(c, 2.5, 1.25, LG_SHAPE(1)));
        fputs(lg_error(c), f);
        lg_clear_error(c);
        lg_set_error(c, LG_ERR_STATE, "%.2f left", 0.25);
        fputs(lg_error(c), f);
        lg_clear_error(c);
}

TEST_CASE(numbers_have_a_point_in_every_locale)
{
        char folder[] = "/tmp/libgrad-test-XXXXXX", comma[16];
        assert_non_null(mkdtemp(folder));
        set_comma(folder);
        remove_folder(folder);
        snprintf(comma, sizeof comma, "%.1f", 2.5);
        assert_string_equal(comma, "2,5");
        lg_ctx *c = open_ctx();
        FILE *f = fmemopen(text, sizeof text, "w");
        write_all(c, f);
        fclose(f);
        snprintf(comma, sizeof comma, "%.1f", 2.5);
        setlocale(LC_NUMERIC, "C");
        assert_string_equal(comma, "2,5"); /* the program's locale is what it was */
        assert_has(text, "[2.5000, 2.5000, 2.5000]");
        assert_has(text, "1.5000e-09");
        assert_has(text, "15.6 KiB");
        assert_has(text, " us  ");
        assert_has(text, "low is 2.5, above high, 1.25");
        assert_has(text, "0.25 left");
        assert_has(text, "element 0 of (1,): analytic ");
        for (const char *p = text; *p; p++)
                if (p[0] >= '0' && p[0] <= '9' && p[1] == ',' && p[2] >= '0' && p[2] <= '9')
                        fail_msg("\"%.20s\" has a comma in a number", p);
        lg_close(c);
}
