/* test_csv.c - CSV files: how they are taken apart, numbers in every notation, texts as codes, and what is wrong where.
 */
#include <locale.h>
#include <zlib.h>
#include "files.h"

static lg_ctx *c;

static int open_each(void **state)
{
        (void)state;
        c = open_ctx();
        return 0;
}

static int close_each(void **state)
{
        (void)state;
        bool ok = !lg_error(c);
        if (!ok)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return ok ? 0 : -1;
}

/* lg_csv_open of a file with that text; options as there. */
#define TABLE(text, ...) (put_file(at("t.csv"), (text), strlen(text)), lg_csv_open(c, at("t.csv"), __VA_ARGS__))
#define PLAIN(text) (put_file(at("t.csv"), (text), strlen(text)), lg_csv_open(c, at("t.csv")))

static void assert_names(lg_names got, int64_t count, const char *const *wanted)
{
        assert_int_equal(got.count, count);
        for (int64_t i = 0; i < count; i++)
                assert_string_equal(got.items[i], wanted[i]);
}
#define assert_texts(got, ...)                                                                                         \
        assert_names((got), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),                               \
                     (const char *const[]){__VA_ARGS__})

/* The file is refused as it is opened. */
static void refused(const char *text, const char *message)
{
        assert_null(PLAIN(text));
        assert_error(c, LG_ERR_FORMAT, message);
}

/* ---- taking apart ---- */

TEST_CASE_WITH(a_table_is_read, open_each, close_each)
{
        lg_csv *t = PLAIN("length,width,species\n5.1,3.5,setosa\n7,-3.2,virginica\n6.4,+3.2e0,setosa\n");
        assert_int_equal(lg_csv_rows(t), 3);
        assert_texts(lg_csv_columns(t), "length", "width", "species");
        lg_tensor *x = lg_csv_numbers(t, LG_NAMES("width", "length"));
        assert_int_equal(lg_dtype_of(x), LG_F32);
        assert_true(lg_ndim_of(x) == 2 && lg_size_of(x, 0) == 3 && lg_size_of(x, 1) == 2);
        assert_list(x, 1e-7, 3.5, 5.1, -3.2, 7, 3.2, 6.4);
        assert_list(lg_csv_numbers(t, LG_NAMES("length"), .dtype = LG_F64), 0, 5.1, 7, 6.4);
        assert_list(lg_csv_numbers(t, LG_NAMES("length", "length")), 1e-7, 5.1, 5.1, 7, 7, 6.4, 6.4);
        lg_tensor *y = lg_csv_categories(t, "species");
        assert_int_equal(lg_dtype_of(y), LG_I64);
        assert_int_equal(lg_ndim_of(y), 1);
        assert_list(y, 0, 0, 1, 0);
        assert_texts(lg_csv_texts(t, "species"), "setosa", "virginica");
        lg_csv_close(t);
        lg_csv_close(NULL);
        assert_int_equal(lg_csv_rows(NULL), 0);
        assert_int_equal(lg_csv_columns(NULL).count, 0);
}

TEST_CASE_WITH(lines_end_in_every_way, open_each, close_each)
{
        const char *const texts[] = {"a,b\n1,2\n3,4\n",
                                     "a,b\r\n1,2\r\n3,4\r\n",
                                     "a,b\r1,2\r3,4\r",
                                     "a,b\n1,2\n3,4",
                                     "\n\r\n\ra,b\r\n\n1,2\r\r\n3,4\n\n\n",
                                     ("\xef\xbb\xbf"
                                      "a,b\n1,2\r\n3,4\r")};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                lg_csv *t = PLAIN(texts[i]);
                assert_texts(lg_csv_columns(t), "a", "b");
                assert_list(lg_csv_numbers(t, lg_csv_columns(t)), 0, 1, 2, 3, 4);
        }
}

TEST_CASE_WITH(quotes_hold_everything, open_each, close_each)
{
        lg_csv *t = PLAIN("\"a\"\"b\",\"c,d\",e\"f\r\n"
                          "\"\",\"\"\"\",\"1\r\n2\n3\r4\"\r\n"
                          "x\"\"y,\",\",\"\"\"\"\"\"\n"
                          "\xc3\xa4 \xff,\" q \", r ");
        assert_texts(lg_csv_columns(t), "a\"b", "c,d", "e\"f");
        assert_int_equal(lg_csv_rows(t), 3);
        assert_texts(lg_csv_texts(t, "a\"b"), "x\"\"y", "\xc3\xa4 \xff"); /* "" is missing */
        assert_texts(lg_csv_texts(t, "c,d"), " q ", "\"", ",");
        assert_texts(lg_csv_texts(t, "e\"f"), " r ", "\"\"", "1\r\n2\n3\r4");
        drop(lg_csv_numbers(t, LG_NAMES("e\"f")));
        assert_error(c, LG_ERR_FORMAT, "line 2, column \"e\"f\": \"1??2?3?4\" is no number");
        drop(lg_csv_categories(t, "c,d", .texts = LG_NAMES("\"", ",")));
        assert_error(c, LG_ERR_FORMAT, "line 7, column \"c,d\": \" q \" is none of .texts");
}

TEST_CASE_WITH(options_change_the_form, open_each, close_each)
{
        lg_csv *t = TABLE("1;2,5\n3;4\n", .separator = ';', .no_header = true);
        assert_texts(lg_csv_columns(t), "0", "1");
        assert_int_equal(lg_csv_rows(t), 2);
        assert_list(lg_csv_numbers(t, LG_NAMES("0")), 0, 1, 3);
        drop(lg_csv_numbers(t, LG_NAMES("1")));
        assert_error(c, LG_ERR_FORMAT, "line 1, column \"1\": \"2,5\" is no number");
        t = TABLE(" a\t, b ,\" c \"\t \n  \t\n1 ,\t2, \"x\" \n 3,4,  y z  ", .trim = true);
        assert_texts(lg_csv_columns(t), "a", "b", " c ");
        assert_int_equal(lg_csv_rows(t), 2);
        assert_texts(lg_csv_texts(t, " c "), "x", "y z");
        t = TABLE(" a \t b \n1\t\n", .trim = true, .separator = '\t');
        assert_texts(lg_csv_columns(t), "a", "b");
        assert_list(lg_csv_numbers(t, LG_NAMES("b", "a"), .missing_as = 7), 0, 7, 1);
        t = PLAIN(" a, b\n 1 ,\t2\t\n"); /* numbers may have spaces around them even so */
        assert_texts(lg_csv_columns(t), " a", " b");
        assert_list(lg_csv_numbers(t, lg_csv_columns(t)), 0, 1, 2);
        t = PLAIN("a,b\n");
        assert_int_equal(lg_csv_rows(t), 0);
        assert_int_equal(lg_numel(lg_csv_numbers(t, lg_csv_columns(t))), 0);
        assert_int_equal(lg_numel(lg_csv_categories(t, "b")), 0);
        assert_int_equal(lg_csv_texts(t, "a").count, 0);
}

TEST_CASE_WITH(what_is_no_table_is_refused, open_each, close_each)
{
        refused("", "t.csv has no line with anything in it");
        refused("\n\r\n\r", "t.csv has no line with anything in it");
        refused("a,b\n1,2\n\n3\n", "lg_csv_open: /tmp/");
        refused("a,b\n1,2\n\n3\n", "t.csv, line 4: 1 fields; the first line has 2");
        refused("a,b\r\n\"1\r\n\",2\r\n3,4,5\r\n", "line 4: 3 fields; the first line has 2");
        refused("a,b\n1,2,\n", "line 2: 3 fields");
        refused("a,b\n1,\"2\n3\n", "line 2: a quote begins a field that does not end");
        refused("a,b\n1,\"2\n\"3\n", "line 3: text follows the quote that ends a field");
        refused("\"a\" ,b\n", "line 1: text follows the quote");
        refused("\"", "line 1: a quote begins a field");
        put_file(at("t.csv"), "a,b\n1,\0002\n", 9);
        assert_null(lg_csv_open(c, at("t.csv")));
        assert_error(c, LG_ERR_FORMAT, "t.csv is no text: byte 6 is zero");
        put_file(at("t.csv"),
                 "\xff\xfe"
                 "a\0,\0b\0",
                 8);
        assert_null(lg_csv_open(c, at("t.csv")));
        assert_error(c, LG_ERR_FORMAT, "byte 3 is zero (UTF-16 must become UTF-8)");
        assert_null(lg_csv_open(c, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_csv_open: the path is NULL");
        assert_null(lg_csv_open(c, at("none.csv")));
        assert_error(c, LG_ERR_IO, "lg_csv_open: /tmp/");
        assert_null(lg_csv_open(c, folder));
        assert_error(c, LG_ERR_IO, "a folder");
        assert_null(TABLE("a\n", .separator = '"'));
        assert_error(c, LG_ERR_ARGUMENT, ".separator");
        assert_null(TABLE("a\n", .separator = '\n'));
        assert_error(c, LG_ERR_ARGUMENT, ".separator");
        const char *const texts[] = {"", NULL};
        assert_null(TABLE("a\n", .missing = {2, texts}));
        assert_error(c, LG_ERR_ARGUMENT, "text 1 of .missing is NULL");
}

TEST_CASE_WITH(gzip_is_the_same, open_each, close_each)
{
        enum { rows = 20000 };
        char *text = malloc(rows * 16 + 16);
        size_t n = (size_t)sprintf(text, "a,b\n");
        for (int i = 0; i < rows; i++)
                n += (size_t)sprintf(text + n, "%d,%d\n", i, i % 7);
        gzFile f = gzopen(at("t.csv.gz"), "wb");
        assert_int_equal(gzwrite(f, text, (unsigned)n), n);
        gzclose(f);
        put_file(at("t.csv"), text, n);
        lg_csv *plain = lg_csv_open(c, at("t.csv"));
        assert_int_equal(lg_csv_rows(plain), rows);
        lg_tensor *x = lg_csv_numbers(plain, lg_csv_columns(plain), .dtype = LG_F64);
        assert_near(lg_item(lg_sum(x)), (rows - 1) * (double)rows / 2 + 59997, 0); /* 2857 * 21, of 19999 numbers */
#if LG_ZLIB
        lg_csv *packed = lg_csv_open(c, at("t.csv.gz"));
        assert_int_equal(lg_csv_rows(packed), rows);
        lg_tensor *y = lg_csv_numbers(packed, lg_csv_columns(packed), .dtype = LG_F64);
        assert_near(lg_item(lg_amax(lg_abs(lg_sub(x, y)))), 0, 0);
        contents whole = get_file(at("t.csv.gz"));
        put_file(at("u.csv.gz"), whole.data, whole.bytes - 5);
        assert_null(lg_csv_open(c, at("u.csv.gz")));
        assert_error(c, LG_ERR_FORMAT, "u.csv.gz");
        whole.data[whole.bytes / 2] ^= 1;
        put_file(at("u.csv.gz"), whole.data, whole.bytes);
        assert_null(lg_csv_open(c, at("u.csv.gz")));
        assert_error(c, LG_ERR_FORMAT, "u.csv.gz");
        free(whole.data);
#else
        assert_null(lg_csv_open(c, at("t.csv.gz")));
        assert_error(c, LG_ERR_FORMAT, "without zlib");
#endif
        free(text);
}

/* ---- numbers ---- */

/* The number as f64; NaN with an error set where it is none. */
static double number(const char *text, lg_dtype dtype)
{
        char line[128];
        snprintf(line, sizeof line, "a\n\"%s\"\n", text);
        lg_csv *t = PLAIN(line);
        lg_tensor *x = lg_csv_numbers(t, LG_NAMES("a"), .dtype = dtype);
        double v = x ? lg_item(x) : NAN;
        lg_csv_close(t);
        return v;
}

TEST_CASE_WITH(numbers_are_rounded_once, open_each, close_each)
{
        static const struct {
                const char *text;
                double value;
        } good[] = {{"0", 0},
                    {"-0", -0.0},
                    {"007", 7},
                    {"1.", 1},
                    {".5", .5},
                    {"-.5e1", -5},
                    {"+1E+2", 100},
                    {"1e-5", 1e-5},
                    {"0.1", 0.1},
                    {"123456789.123456789", 123456789.123456789},
                    {"1.7976931348623157e308", 1.7976931348623157e308},
                    {"4.9e-324", 4.9e-324},
                    {"1e-400", 0},
                    {"9007199254740993", 9007199254740992},
                    {"inf", INFINITY},
                    {"-Infinity", -INFINITY},
                    {" \t12 ", 12}};
        for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
                double v = number(good[i].text, LG_F64);
                assert_ok(c);
                if (v != good[i].value || signbit(v) != signbit(good[i].value))
                        fail_msg("%s is %.17g", good[i].text, v);
        }
        assert_true(isnan(number("NaN", LG_F64)) && isnan(number("-nan", LG_F32)));
        assert_ok(c);
        /* half between two floats but for the last digit: by way of f64 it would be rounded to even */
        assert_near(number("1.00000017881393432617187500001", LG_F32), 1.0000002384185791, 0);
        assert_near(number("3.4028235e38", LG_F32), 3.4028234663852886e38, 0);
}

TEST_CASE_WITH(what_is_no_number_is_told, open_each, close_each)
{
        const char *const wrong[] = {"x",
                                     "1x",
                                     "0x10",
                                     "1e",
                                     "1e+",
                                     ".",
                                     "-",
                                     "+",
                                     "--1",
                                     "1 2",
                                     "1,5",
                                     "1_0",
                                     "e5",
                                     "in",
                                     "infin",
                                     "nan1",
                                     "1.2.3",
                                     "nan(1)",
                                     "$1",
                                     "1%",
                                     "1e5.",
                                     ("\xc2\xa0"
                                      "1"),
                                     "true",
                                     "1\n2",
                                     "i nf",
                                     "0b1",
                                     "1f",
                                     "INFINITYY"};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                number(wrong[i], LG_F32);
                if (!lg_error(c))
                        fail_msg("\"%s\" was taken for a number", wrong[i]);
                assert_error(c, LG_ERR_FORMAT, "is no number");
        }
        number("1e309", LG_F64);
        assert_error(c, LG_ERR_FORMAT, "lg_csv_numbers: /tmp/");
        number("-1e309", LG_F64);
        assert_error(c, LG_ERR_FORMAT, "t.csv, line 2, column \"a\": \"-1e309\" is too large for f64");
        number("1e39", LG_F32);
        assert_error(c, LG_ERR_FORMAT, "\"1e39\" is too large for f32");
        lg_csv *t = PLAIN("a,b,b\n1,2,3\n");
        drop(lg_csv_numbers(t, LG_NAMES("c")));
        assert_error(c, LG_ERR_ARGUMENT, "t.csv has no column \"c\"; there are \"a\", \"b\", \"b\"");
        drop(lg_csv_numbers(t, LG_NAMES("a", "b")));
        assert_error(c, LG_ERR_ARGUMENT, "two columns that are called \"b\"");
        drop(lg_csv_integers(t, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "no column NULL");
        drop(lg_csv_numbers(t, LG_NAMES("a"), .dtype = LG_I64));
        assert_error(c, LG_ERR_DTYPE, ".dtype is i64");
        const lg_names none = {0, NULL};
        drop(lg_csv_numbers(t, none));
        assert_error(c, LG_ERR_ARGUMENT, "no columns are named");
}

TEST_CASE_WITH(whole_numbers_are_exact, open_each, close_each)
{
        lg_csv *t = PLAIN("a\n9223372036854775807\n-9223372036854775808\n-1\n+2.000\n 3. \n");
        lg_tensor *y = lg_csv_integers(t, "a");
        int64_t got[5], wanted[] = {INT64_MAX, INT64_MIN, -1, 2, 3};
        assert_int_equal(lg_dtype_of(y), LG_I64);
        assert_int_equal(lg_ndim_of(y), 1);
        assert_true(lg_read(y, got, LG_I64, sizeof got));
        assert_memory_equal(got, wanted, sizeof got);
        const char *const wrong[][2] = {{"9223372036854775808", "is too large for i64"},
                                        {"-9223372036854775809", "is too large for i64"},
                                        {"92233720368547758070", "is too large for i64"},
                                        {"1.5", "is no whole number"},
                                        {"1e3", "is no whole number"},
                                        {"-", "is no whole number"},
                                        {".0", "is no whole number"},
                                        {"inf", "is no whole number"},
                                        {"1 1", "is no whole number"},
                                        {"0x1", "is no whole number"}};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                char line[128];
                snprintf(line, sizeof line, "a\n1\n%s\n", wrong[i][0]);
                drop(lg_csv_integers(PLAIN(line), "a"));
                assert_error(c, LG_ERR_FORMAT, wrong[i][1]);
        }
}

TEST_CASE_WITH(locales_change_nothing, open_each, close_each)
{
        const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "tr_TR.UTF-8", "C.UTF-8"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                if (!setlocale(LC_ALL, names[i]))
                        continue;
                assert_near(number("1.5", LG_F64), 1.5, 0);
                assert_true(number("-INFINITY", LG_F32) == -INFINITY);
                assert_ok(c);
                number("1,5", LG_F64);
                assert_error(c, LG_ERR_FORMAT, "is no number");
                number("1.5e999", LG_F64);
                assert_error(c, LG_ERR_FORMAT, "is too large");
                assert_string_equal(setlocale(LC_ALL, NULL), names[i]);
        }
        setlocale(LC_ALL, "C");
}

/* ---- missing values ---- */

TEST_CASE_WITH(missing_values_are_an_error_or_filled, open_each, close_each)
{
        lg_csv *t = PLAIN("a,b,n\n1,x,1\n,?,2\n3,x,NA\n");
        drop(lg_csv_numbers(t, LG_NAMES("n", "a")));
        assert_error(c, LG_ERR_FORMAT, "line 3, column \"a\": \"\" stands for a missing value; .missing_as fills it");
        drop(lg_csv_categories(t, "b"));
        assert_error(c, LG_ERR_FORMAT, "line 3, column \"b\": \"?\" stands for a missing value");
        drop(lg_csv_integers(t, "n"));
        assert_error(c, LG_ERR_FORMAT, "line 4, column \"n\": \"NA\" stands for a missing value");
        assert_list(lg_csv_numbers(t, LG_NAMES("a"), .missing_as = NAN), 0, 1, NAN, 3);
        assert_list(lg_csv_numbers(t, LG_NAMES("a", "n"), .missing_as = LG_ZERO), 0, 1, 1, 0, 2, 3, 0);
        assert_list(lg_csv_numbers(t, LG_NAMES("a"), .missing_as = -1.5, .dtype = LG_F64), 0, 1, -1.5, 3);
        assert_list(lg_csv_integers(t, "n", .missing_as = -100), 0, 1, 2, -100);
        assert_list(lg_csv_integers(t, "n", .missing_as = LG_ZERO_INT), 0, 1, 2, 0);
        assert_list(lg_csv_categories(t, "b", .missing_as = -100), 0, 0, -100, 0);
        assert_texts(lg_csv_texts(t, "b"), "x");
        t = TABLE("a,b\n-9,x\n1,\n2,NA\n", .missing = LG_NAMES("-9", "none"));
        assert_list(lg_csv_numbers(t, LG_NAMES("a"), .missing_as = 5), 0, 5, 1, 2);
        assert_texts(lg_csv_texts(t, "b"), "", "NA", "x");
        assert_list(lg_csv_categories(t, "b"), 0, 2, 0, 1);
}

/* ---- texts ---- */

TEST_CASE_WITH(codes_are_in_order, open_each, close_each)
{
        lg_csv *t = PLAIN("t,n,m\nb,10,10\na,9,9\nB,-1,x\n\xc3\xa4,9.0,1\na,10,10\n");
        assert_texts(lg_csv_texts(t, "t"), "B", "a", "b", "\xc3\xa4");
        assert_list(lg_csv_categories(t, "t"), 0, 2, 1, 0, 3, 1);
        assert_texts(lg_csv_texts(t, "n"), "-1", "9", "9.0", "10"); /* all of them are numbers */
        assert_list(lg_csv_categories(t, "n"), 0, 3, 1, 0, 2, 3);
        assert_texts(lg_csv_texts(t, "m"), "1", "10", "9", "x");
        lg_csv *other = TABLE("t\na\nb\n\xc3\xa4\n", .trim = true);
        assert_list(lg_csv_categories(other, "t"), 0, 0, 1, 2);
        assert_list(lg_csv_categories(other, "t", .texts = lg_csv_texts(t, "t")), 0, 1, 2, 3);
        assert_list(lg_csv_categories(other, "t", .texts = LG_NAMES("\xc3\xa4", "b", "c", "a")), 0, 3, 1, 0);
        drop(lg_csv_categories(other, "t", .texts = LG_NAMES("a", "c")));
        assert_error(c, LG_ERR_FORMAT, "lg_csv_categories: /tmp/");
        drop(lg_csv_categories(other, "t", .texts = LG_NAMES("a", "c")));
        assert_error(c, LG_ERR_FORMAT, "line 3, column \"t\": \"b\" is none of .texts");
        drop(lg_csv_categories(other, "t", .texts = LG_NAMES("a", "b", "a")));
        assert_error(c, LG_ERR_ARGUMENT, "\"a\" is in .texts twice");
        lg_csv *empty = PLAIN("t\n");
        drop(lg_csv_categories(other, "t", .texts = lg_csv_texts(empty, "t")));
        assert_error(c, LG_ERR_FORMAT, "line 2, column \"t\": \"a\" is none of .texts");
        assert_int_equal(lg_csv_texts(t, "u").count, 0);
        assert_error(c, LG_ERR_ARGUMENT, "lg_csv_texts: ");
        drop(lg_csv_categories(t, "u"));
        assert_error(c, LG_ERR_ARGUMENT, "no column \"u\"");
}

/* ---- memory ---- */

TEST_CASE_WITH(every_failing_allocation_is_told, open_each, close_each)
{
        char text[8192] = "a,b,\"c\nd\"\n";
        for (int i = 0; i < 300; i++)
                sprintf(text + strlen(text), "%d,x%d,%d\n", i, i % 9, i * i);
        put_file(at("t.csv"), text, strlen(text));
        for (int64_t n = 1, done = 0; !done; n++) {
                failing f = {0};
                lg_ctx *own = lg_open(.threads = 1, FAILING(&f));
                arm(&f, n, false);
                lg_csv *t = lg_csv_open(own, at("t.csv"));
                lg_tensor *x = lg_csv_numbers(t, LG_NAMES("c\nd", "a")), *y = lg_csv_categories(t, "b"),
                          *z = lg_csv_integers(t, "a");
                done = f.calls < n;
                if (x && y && z)
                        assert_false(lg_error(own));
                else
                        assert_error(own, LG_ERR_MEMORY, "memory");
                assert_true((x && y && z) || !done);
                lg_csv_close(t);
                lg_close(own);
                assert_int_equal(f.bytes, 0);
        }
}

TEST_CASE_WITH(memory_is_bounded_by_the_file, open_each, close_each)
{
        enum { lines = 100000 };
        char *text = malloc(lines + 3);
        memset(text, '\n', lines);
        strcpy(text + lines, "a");
        int64_t before = lg_memory_stats(c, lg_cpu()).peak;
        assert_int_equal(lg_csv_rows(PLAIN(text)), 0); /* empty lines take nothing */
        assert_true(lg_memory_stats(c, lg_cpu()).peak - before < 4 * lines);
        memset(text, ',', lines);
        text[lines] = '\0';
        lg_csv *t = PLAIN(text); /* one row of many columns */
        assert_int_equal(lg_csv_columns(t).count, lines + 1);
        drop(lg_csv_numbers(t, LG_NAMES("x")));
        assert_error(c, LG_ERR_ARGUMENT, "no column \"x\"; there are \"\", \"\", ");
        lg_csv_close(t);
        for (int no_header = 0; no_header < 2; no_header++) {
                lg_empty_cache(c);
                lg_reset_peak_memory(c, lg_cpu());
                before = lg_memory_stats(c, lg_cpu()).peak;
                t = TABLE(text, .no_header = no_header);
                assert_int_equal(lg_csv_columns(t).count, lines + 1);
                if (no_header) {
                        assert_string_equal(lg_csv_columns(t).items[9], "9");
                        assert_string_equal(lg_csv_columns(t).items[10], "10");
                        assert_string_equal(lg_csv_columns(t).items[lines], "100000");
                        assert_int_equal(lg_csv_texts(t, "99999").count, 0);
                }
                /* the text, an address of each column, and its number in digits */
                assert_true(lg_memory_stats(c, lg_cpu()).peak - before < (no_header ? 18 : 11) * lines);
                lg_csv_close(t);
        }
        free(text);
}

AROUND_TESTS(make_folder, remove_folder);
