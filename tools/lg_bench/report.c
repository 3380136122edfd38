/* report.c - prints results as a table or as lines of JSON. */
#include <string.h>
#include "bench.h"

/* Prints text inside a JSON string; quotes, backslashes and control characters are replaced by '. */
static void print_text(const char *text)
{
        for (; *text; text++)
                putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '\'' : *text);
}

/* Returns the bytes per second of copies where the kernel's arrays are: in cache or in memory. */
static double bandwidth(const item *it, const limits *l)
{
        return it->place == IN_CACHE ? l->cache : l->memory;
}

/* Returns the share of the limit in FLOP/s, or 0 if operations are not counted. */
static double flops_share(const item *it, const result *r, const limits *l)
{
        return it->flops ? it->flops() / it->units / r->median / l->flops : 0;
}

static double bytes_share(const item *it, const result *r, const limits *l)
{
        return it->bytes / r->median / bandwidth(it, l);
}

/* ---- JSON ---- */

static void json_head(const limits *l, const char *device, const char *model)
{
        printf("{\"peer\": \"libgrad\", \"version\": \"%s\", \"device\": \"%s\", \"model\": \"", lg_version(), device);
        print_text(model);
        printf("\", \"threads\": %d, \"flops\": %.6g, \"flops_by\": \"%s\", \"memory\": %.6g, \"cache\": %.6g, "
               "\"round_trip\": %.6g}\n",
               l->threads, l->flops, l->flops_by, l->memory, l->cache, l->round_trip);
}

static void json_item(const item *it, const result *r, const limits *l)
{
        printf("{\"name\": \"%s\", \"us\": %.6g, \"low\": %.6g, \"high\": %.6g, \"least\": %.6g, \"most\": %.6g",
               it->name, r->median * 1e6, r->low * 1e6, r->high * 1e6, r->least * 1e6, r->most * 1e6);
        printf(", \"cpu_us\": %.6g, \"samples\": %d, \"calls\": %lld, \"per_second\": %.6g", r->cpu * 1e6, r->samples,
               (long long)r->calls, 1 / r->median);
        printf(", \"peak\": %lld, \"resident\": %lld", (long long)r->peak, (long long)r->resident);
        if (r->batch)
                printf(", \"batch\": %lld, \"processes\": %d", (long long)r->batch, r->processes);
        if (r->parameters)
                printf(", \"parameters\": %lld", (long long)r->parameters);
        if (it->flops)
                printf(", \"flops\": %.6g, \"flops_share\": %.4g", it->flops(), flops_share(it, r, l));
        if (it->bytes > 0)
                printf(", \"bytes\": %.6g, \"bytes_share\": %.4g", it->bytes, bytes_share(it, r, l));
        printf("}\n");
}

/* ---- a table ---- */

/* Prints seconds with three digits and the unit that fits, in 9 columns. */
static void print_time(double s)
{
        const char *unit = s < 1e-6 ? "ns" : s < 1e-3 ? "us" : s < 1 ? "ms" : "s ";
        double v = s < 1e-6 ? s * 1e9 : s < 1e-3 ? s * 1e6 : s < 1 ? s * 1e3 : s;
        printf("%6.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, unit);
}

static void print_share(double share)
{
        if (share > 0)
                printf("  %5.1f %%", share * 100);
        else
                printf("        -");
}

static void table_head(const limits *l, const char *device, const char *model)
{
        printf("libgrad %s, %s (%s), %d threads\n", lg_version(), device, model, l->threads);
        printf("limits: %.0f GFLOP/s (%s), copies %.1f GB/s in memory and %.0f GB/s in cache", l->flops * 1e-9,
               l->flops_by, l->memory * 1e-9, l->cache * 1e-9);
        if (l->round_trip > 0)
                printf(", %.2f us for a word from core to core and back", l->round_trip * 1e6);
        printf("\n\n");
        printf("%-25s %9s  %-21s %11s  %7s  %7s  %10s\n", "", "median", "quartiles", "per second", "FLOP/s", "bytes/s",
               "peak, MB");
}

static void table_item(const item *it, const result *r, const limits *l)
{
        printf("%-25s ", it->name);
        print_time(r->median);
        printf("  ");
        print_time(r->low);
        printf(" - ");
        print_time(r->high);
        printf(" %11.*f", r->median > 0.01 ? 2 : 0, 1 / r->median);
        print_share(flops_share(it, r, l));
        print_share(bytes_share(it, r, l));
        printf("  %10.2f\n", (double)r->peak * 1e-6);
}

/* ---- both formats ---- */

void report_head(const limits *l, lg_ctx *c, lg_device device, bool json)
{
        lg_device_info_t info = {.name = ""};
        lg_device_info(c, device, &info);
        (json ? json_head : table_head)(l, lg_device_name(device), info.name);
        fflush(stdout);
}

void report_item(const item *it, const result *r, const limits *l, bool json)
{
        (json ? json_item : table_item)(it, r, l);
        fflush(stdout);
}

void report_error(const char *name, const char *why, bool json)
{
        if (json) {
                printf("{\"name\": \"");
                print_text(name);
                printf("\", \"failed\": \"");
                print_text(why);
                printf("\"}\n");
        } else {
                printf("%-25s failed: %s\n", name, why);
        }
        fflush(stdout);
}
