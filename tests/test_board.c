/* test_board.c - files for TensorBoard: their bytes, what they hold, wrong uses. */
#include <time.h>
#include "board_records.h"

/* ---- what is written ---- */

TEST_CASE(checksums_are_those_of_the_rfc)
{
        unsigned char s[32] = {0};
        assert_int_equal(lg__crc32c(s, 32), 0x8a9136aa);
        memset(s, 0xff, 32);
        assert_int_equal(lg__crc32c(s, 32), 0x62a8ab43);
        for (int i = 0; i < 32; i++)
                s[i] = (unsigned char)i;
        assert_int_equal(lg__crc32c(s, 32), 0x46dd794e);
        assert_int_equal(lg__crc32c("123456789", 9), 0xe3069283);
}

TEST_CASE(numbers_and_texts_are_read_back)
{
        lg_ctx *c = open_ctx();
        lg_board *b = lg_board_open(c, folder);
        const double numbers[] = {0.5, -3e30, 1e300, NAN, -INFINITY};
        for (int i = 0; i < 5; i++)
                assert_true(lg_board_scalar(b, "loss/\xc3\xa4", numbers[i], i - 1));
        assert_true(lg_board_scalar(b, "x", 0, INT64_MAX));
        assert_true(lg_board_text(b, "note", "**bold**\n\n| a | b |", 7) && lg_board_text(b, "note", "", 8));
        assert_true(lg_board_flush(b) && lg_board_close(b));
        read_records(9);
        const double now = (double)time(NULL);
        for (int i = 0; i < 5; i++) {
                const record *r = &records[i + 1];
                assert_true(r->kind == LG__SCALAR && is(r->tag, "loss/\xc3\xa4") && r->step == i - 1);
                assert_true(r->number == (float)numbers[i] || (isnan(r->number) && isnan(numbers[i])));
                assert_true(r->wall >= records[i].wall && r->wall > now - 60 && r->wall < now + 2);
        }
        assert_true(records[6].step == INT64_MAX && records[6].number == 0);
        assert_true(records[7].kind == LG__TENSOR && records[7].step == 7);
        const char text[] = "\x08\x07\x12\x04\x12\x02\x08\x01\x42\x13**bold**\n\n| a | b |";
        assert_true(records[7].value.bytes == sizeof text - 1 && !memcmp(records[7].value.s, text, sizeof text - 1));
        lg_close(c);
}

TEST_CASE(a_resumed_run_hides_later_steps)
{
        lg_ctx *c = open_ctx();
        const int64_t purge[] = {0, 1001, LG_ZERO_INT};
        for (int i = 0; i < 3; i++) {
                lg_board *b = lg_board_open(c, folder, .purge_step = purge[i]);
                assert_true(lg_board_scalar(b, "x", 1, 1));
                assert_true(lg_board_close(b));
                read_records(i ? 3 : 2);
                if (i)
                        assert_true(is(records[1].session, "\x08\x01") && records[1].step == (i == 1 ? 1001 : 0));
        }
        assert_null(lg_board_open(c, folder, .purge_step = -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_open: .purge_step is -1, below 0");
        assert_int_equal(count_files(false), 0);
        lg_close(c);
}

/* ---- histograms ---- */

static double edges[1549];

static void make_edges(void)
{
        double v = 1e-12;
        for (int i = 0; i < 774; i++, v *= 1.1) {
                edges[775 + i] = v;
                edges[773 - i] = -v;
        }
        assert_true(edges[1548] < 1e20 && v >= 1e20);
}

/* Compares with counts of the finite values in the bins between edges, each found by a search from the first on. */
static void check_histogram(const record *r, const double *values, int64_t n)
{
        static double counts[1550];
        double min = INFINITY, max = -INFINITY, num = 0, sum = 0, squares = 0;
        histogram h;
        make_edges();
        memset(counts, 0, sizeof counts);
        for (int64_t i = 0; i < n; i++) {
                int bin = 0;
                if (!isfinite(values[i]))
                        continue;
                while (bin < 1549 && edges[bin] <= values[i])
                        bin++;
                counts[bin]++;
                num++;
                sum += values[i];
                squares += values[i] * values[i];
                min = fmin(min, values[i]);
                max = fmax(max, values[i]);
        }
        parse_histogram(r, &h);
        assert_true(h.numbers[1] == min && h.numbers[2] == max && h.numbers[3] == num);
        assert_near(h.numbers[4], sum, 1e-12 * squares + 1e-12); /* in another order */
        assert_near(h.numbers[5], squares, 1e-12 * squares);
        int first = 0, last = 1549;
        while (!counts[first])
                first++;
        while (!counts[last])
                last--;
        assert_int_equal(h.bins, last - first + 2);
        assert_true(h.counts[0] == 0 && h.limits[0] == (first ? edges[first - 1] : min));
        for (int i = first; i <= last; i++)
                assert_true(h.counts[i - first + 1] == counts[i] &&
                            h.limits[i - first + 1] == (i < 1549 ? edges[i] : max));
}

TEST_CASE(histograms_have_the_bins_of_pytorch)
{
        static double values[600];
        lg_ctx *c = open_ctx();
        make_edges();
        for (lg_dtype d = LG_F32; d <= LG_BOOL; d++) {
                lg_board *b = lg_board_open(c, folder);
                const double scale = d == LG_U8 || d == LG_F16 || d == LG_BOOL ? 10 : 1e5;
                lg_tensor *x = lg_cast(lg_mul_scalar(lg_abs(lg_normal(c, 0, 1, LG_SHAPE(20, 30))), scale), d);
                x = d == LG_U8 || d == LG_BOOL ? x : lg_sub(x, lg_cast(lg_full(c, LG_SHAPE_0D, 7), d));
                lg_tensor *const all[] = {x, lg_transpose(x, 0, 1), lg_slice(x, 1, 3, 29, .step = 5),
                                          lg_select(lg_select(x, 0, 2), 0, 1),
                                          lg_expand(lg_slice(x, 0, 0, 1), LG_SHAPE(5, 30))};
                for (int i = 0; i < 5; i++)
                        assert_true(lg_board_histogram(b, "x", all[i], i));
                assert_ok(c);
                assert_true(lg_board_close(b));
                read_records(6);
                for (int i = 0; i < 5; i++)
                        check_histogram(&records[i + 1], values, read_all(all[i], values, 600));
        }
        lg_close(c);
}

TEST_CASE(edges_belong_to_the_bin_above)
{
        lg_ctx *c = open_ctx();
        make_edges();
        double values[] = {
                edges[0],    edges[1], edges[773], 0,     -0.0, edges[775], edges[1000], nextafter(edges[1000], 0),
                edges[1548], -1e25,    1e25,       1e308, NAN,  INFINITY,   -INFINITY,   5e-324};
        values[11] = 1e150; /* its square is finite */
        lg_board *b = lg_board_open(c, folder);
        lg_tensor *x = lg_from(c, values, LG_SHAPE(16));
        assert_true(lg_board_histogram(b, "x", x, 1) && lg_board_close(b));
        read_records(2);
        check_histogram(&records[1], values, 16);
        lg_close(c);
}

TEST_CASE(histograms_of_many_parts)
{
        const int64_t n = (1 << 21) + 3;
        double *values = malloc((size_t)n * sizeof *values);
        lg_ctx *c = open_ctx();
        lg_board *b = lg_board_open(c, folder);
        lg_tensor *x = lg_normal(c, 0.1, 1, LG_SHAPE(n));
        assert_true(lg_board_histogram(b, "x", x, 1) && lg_board_close(b));
        read_records(2);
        check_histogram(&records[1], values, read_all(x, values, n));
        free(values);
        lg_close(c);
}

TEST_CASE(even_bins)
{
        lg_ctx *c = open_ctx();
        lg_board *b = lg_board_open(c, folder);
        const float values[] = {0, 1, 2, 3, 3.5f, 4, 4, NAN};
        histogram h;
        assert_true(lg_board_histogram(b, "x", lg_from(c, values, LG_SHAPE(8)), 1, .bins = 4));
        assert_true(lg_board_histogram(b, "x", lg_full(c, LG_SHAPE(5), -2), 1, .bins = 3));
        assert_true(lg_board_histogram(b, "x", lg_from(c, values, LG_SHAPE(8)), 1, .bins = 100000));
        assert_true(lg_board_close(b));
        read_records(4);
        parse_histogram(&records[1], &h);
        const double limits[] = {0, 1, 2, 3, 4}, counts[] = {0, 1, 1, 1, 4};
        assert_true(h.bins == 5 && !memcmp(h.limits, limits, sizeof limits) &&
                    !memcmp(h.counts, counts, sizeof counts));
        parse_histogram(&records[2], &h);
        assert_true(h.bins == 2 && h.limits[0] == -2 && h.limits[1] == -2 && h.counts[0] == 0 && h.counts[1] == 5);
        assert_true(h.numbers[1] == -2 && h.numbers[2] == -2 && h.numbers[3] == 5 && h.numbers[5] == 20);
        assert_int_equal(records[3].kind, LG__HISTOGRAM);
        lg_close(c);
}

TEST_CASE(nothing_to_count_is_an_empty_histogram)
{
        lg_ctx *c = open_ctx();
        lg_board *b = lg_board_open(c, folder);
        histogram h;
        lg_tensor *const all[] = {lg_zeros(c, LG_SHAPE(3, 0)), lg_full(c, LG_SHAPE(4), NAN),
                                  lg_full(c, LG_SHAPE_0D, INFINITY)};
        for (int i = 0; i < 3; i++)
                assert_true(lg_board_histogram(b, "x", all[i], 1) && lg_board_histogram(b, "x", all[i], 1, .bins = 2));
        assert_true(lg_board_close(b));
        read_records(7);
        for (int i = 1; i < 7; i++) {
                parse_histogram(&records[i], &h);
                assert_true(!h.bins && !h.numbers[1] && !h.numbers[2] && !h.numbers[3] && !h.numbers[4]);
        }
        lg_close(c);
}

TEST_CASE(parameters_and_gradients)
{
        static double values[400];
        static const char *const tags[] = {"values/0.weight", "gradients/0.weight", "values/0.bias", "gradients/0.bias",
                                           "values/2.weight", "gradients/2.weight", "values/2.bias"};
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 20, 10), lg_nn_batch_norm1d(c, 10, .no_affine = true),
                                          lg_nn_linear(c, 10, 4));
        lg_set_requires_grad(lg_parameters(net).items[3], false);
        lg_backward(lg_sum(lg_square(lg_forward(net, lg_normal(c, 0, 1, LG_SHAPE(8, 20))))));
        const int64_t live = lg_live_tensors(c);
        lg_board *b = lg_board_open(c, folder);
        assert_true(lg_board_parameters(b, net, 5));
        assert_int_equal(lg_live_tensors(c), live);
        assert_true(lg_grad_mode(c));
        assert_true(lg_board_close(b));
        read_records(8);
        for (int i = 0; i < 7; i++) {
                lg_tensor *p = lg_parameters(net).items[i / 2], *t = i % 2 ? lg_grad_of(p) : p;
                assert_true(is(records[i + 1].tag, tags[i]) && records[i + 1].step == 5);
                check_histogram(&records[i + 1], values, read_all(t, values, 400));
        }
        lg_close(c);
}

/* ---- wrong uses ---- */

TEST_CASE(wrong_uses)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_board *b = lg_board_open(c, folder);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2)), *freed = lg_ones(c, LG_SHAPE(2));
        lg_free(freed);
        assert_false(lg_board_scalar(b, NULL, 1, 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_scalar: the tag is NULL");
        assert_false(lg_board_histogram(b, "", x, 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_histogram: the tag is empty");
        assert_false(lg_board_text(b, "\xff", "x", 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_text: the tag is not UTF-8");
        assert_false(lg_board_text(b, "x", "\xc3", 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_text: the text is not UTF-8");
        assert_false(lg_board_text(b, "x", NULL, 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_text: the text is NULL");
        assert_false(lg_board_histogram(b, "x", NULL, 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_histogram: t is NULL");
        assert_false(lg_board_histogram(b, "x", lg_ones(other, LG_SHAPE(2)), 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_histogram: t belongs to another context");
        assert_false(lg_board_histogram(b, "x", freed, 1));
        assert_error(c, LG_ERR_STATE, "lg_board_histogram: t was freed");
        assert_false(lg_board_histogram(b, "x", x, 1, .bins = -3));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_histogram: .bins is -3; it is from 1 to 100000");
        assert_false(lg_board_histogram(b, "x", x, 1, .bins = 100001));
        assert_error(c, LG_ERR_ARGUMENT, ".bins is 100001");
        assert_false(lg_board_histogram(NULL, "x", x, 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_histogram: b is NULL");
        assert_false(lg_board_parameters(b, NULL, 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_parameters: m is NULL");
        assert_false(lg_board_parameters(b, lg_nn_linear(other, 2, 2), 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_parameters: m belongs to another context");
        assert_false(lg_board_parameters(NULL, lg_nn_linear(c, 2, 2), 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_parameters: b is NULL");
        assert_false(lg_board_scalar(NULL, "x", 1, 1) || lg_board_flush(NULL) || lg_board_close(NULL));
        assert_ok(c);
        lg_set_error(c, LG_ERR_STATE, "an earlier error");
        assert_false(lg_board_scalar(b, "x", 1, 1) || lg_board_histogram(b, "x", x, 1) || lg_board_flush(b));
        assert_true(lg_board_close(b));
        assert_error(c, LG_ERR_STATE, "an earlier error");
        read_records(1);
        lg_close(c);
        lg_close(other);
}

/* ---- for tests/board.py ---- */

TEST_CASE(files_for_tensorboard)
{
        const char *to = getenv("LG_TEST_BOARD");
        if (!to)
                skip();
        lg_ctx *c = open_ctx();
        lg_board *b = lg_board_open(c, to);
        const double values[] = {-1e25, -3, -2.5, -1e-13, 0, 0, 1e-12, 0.25, 0.26, 7, 1e19, NAN, INFINITY};
        lg_tensor *x = lg_from(c, values, LG_SHAPE(13));
        for (int i = 1; i <= 20; i++) {
                lg_board_scalar(b, "curve/quarter", i / 4.0, i);
                lg_board_scalar(b, "curve/third", i == 9 ? NAN : i == 10 ? -INFINITY : i / 3.0, i);
        }
        lg_board_histogram(b, "usual", lg_slice(x, 0, 0, 11), 2);
        lg_board_histogram(b, "even", lg_slice(x, 0, 1, 10), 3, .bins = 5);
        lg_board_histogram(b, "finite", x, 4);
        lg_board_histogram(b, "none", lg_zeros(c, LG_SHAPE(0)), 5);
        lg_board_text(b, "note", "# A *title*\n\xe2\x82\xac", 6);
        lg_tensor *grey = lg_cast(lg_reshape(lg_arange(c, 0, 48, 1), LG_SHAPE(1, 6, 8)), LG_U8);
        lg_tensor *colours = lg_div_scalar(lg_reshape(lg_arange(c, 0, 120, 1), LG_SHAPE(2, 3, 4, 5)), 119);
        if (!lg_board_image(b, "grey", grey, 7))
                assert_error(c, LG_ERR_STATE, "without libpng");
        else
                lg_board_image(b, "rows", colours, 8);
        if (!lg_board_close(b))
                fail_msg("%s", lg_error(c));
        /* the run goes on after step 15 */
        nanosleep(&(struct timespec){1, 100000000}, NULL); /* files are read in the order of their seconds */
        b = lg_board_open(c, to, .purge_step = 16);
        for (int i = 16; i <= 18; i++)
                lg_board_scalar(b, "curve/quarter", -i, i);
        if (!lg_board_close(b))
                fail_msg("%s", lg_error(c));
        lg_close(c);
}

AROUND_TESTS(make_folder, remove_folder);
