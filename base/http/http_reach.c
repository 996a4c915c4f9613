/* http_reach.c - see http_reach.h. */
#include "base/http/http_reach.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

static const char of_this_machine[] = "is an address of this machine";
static const char of_a_network[] = "is an address of a private network";
static const char of_the_link[] = "is an address of the local link";
static const char of_many[] = "is a multicast or broadcast address";
static const char of_nobody[] = "is a reserved address";

/* What is not of the public Internet (IANA, special-purpose address registries). */
struct reach_range {
    uint8_t bytes[16];
    uint8_t bits;
    const char *why;
};

static const struct reach_range four[] = {
    {{127}, 8, of_this_machine},
    {{0}, 8, of_this_machine},
    {{10}, 8, of_a_network},
    {{172, 16}, 12, of_a_network},
    {{192, 168}, 16, of_a_network},
    {{100, 64}, 10, of_a_network},
    {{169, 254}, 16, of_the_link},
    {{224}, 4, of_many},
    {{255, 255, 255, 255}, 32, of_many},
    {{192, 0, 0}, 24, of_nobody},
    {{192, 0, 2}, 24, of_nobody},
    {{198, 18}, 15, of_nobody},
    {{198, 51, 100}, 24, of_nobody},
    {{203, 0, 113}, 24, of_nobody},
    {{240}, 4, of_nobody},
};

static const struct reach_range six[] = {
    {{0xfc}, 7, of_a_network},
    {{0xfe, 0x80}, 10, of_the_link},
    {{0xfe, 0xc0}, 10, of_a_network},
    {{0xff}, 8, of_many},
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, of_a_network},
    {{0x01}, 64, of_nobody},
    {{0x20, 0x01, 0x00, 0x00}, 32, of_nobody}, /* Teredo: it has an IPv4 address inside */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, of_nobody},
};

/* IPv6 addresses that lead to an IPv4 address, and where in them it stands. */
static const struct {
    uint8_t bytes[16];
    uint8_t bits;
    uint8_t at;
} mapped[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 12},
    {{0}, 96, 12}, /* the old form; also :: and ::1 */
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12},
    {{0x20, 0x02}, 16, 2},
};

static bool begins_with(const uint8_t *bytes, const uint8_t *with, uint8_t bits)
{
    uint8_t rest = bits % 8;

    return memcmp(bytes, with, bits / 8) == 0 &&
           (rest == 0 || (bytes[bits / 8] ^ with[bits / 8]) >> (8 - rest) == 0);
}

static const char *find_range(const struct reach_range *ranges, size_t count, const uint8_t *bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (begins_with(bytes, ranges[i].bytes, ranges[i].bits)) {
            return ranges[i].why;
        }
    }
    return NULL;
}

static const char *refuses_four(enum http_reach reach, const uint8_t *bytes)
{
    if (reach == HTTP_REACH_LOOPBACK && bytes[0] == 127) {
        return NULL;
    }
    return find_range(four, sizeof(four) / sizeof(four[0]), bytes);
}

static const char *refuses_six(enum http_reach reach, const struct in6_addr *address)
{
    if (IN6_IS_ADDR_LOOPBACK(address)) {
        return reach == HTTP_REACH_LOOPBACK ? NULL : of_this_machine;
    }
    for (size_t i = 0; i < sizeof(mapped) / sizeof(mapped[0]); i++) {
        if (begins_with(address->s6_addr, mapped[i].bytes, mapped[i].bits)) {
            return refuses_four(reach, address->s6_addr + mapped[i].at);
        }
    }
    return find_range(six, sizeof(six) / sizeof(six[0]), address->s6_addr);
}

const char *http_reach_refuses(enum http_reach reach, const struct sockaddr *address)
{
    if (reach == HTTP_REACH_ANY) {
        return NULL;
    }
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;

        return refuses_four(reach, (const uint8_t *)&in->sin_addr);
    }
    if (address->sa_family == AF_INET6) {
        return refuses_six(reach, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    }
    return of_nobody;
}

bool http_reach_is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

bool http_reach_is_plain(const char *text)
{
    while (*text >= '!' && *text <= '~') {
        text++;
    }
    return *text == '\0';
}

const char *http_reach_bad_url(const char *url)
{
    if (!http_reach_is_url(url)) {
        return "is not http:// or https://";
    }
    if (!http_reach_is_plain(url)) {
        return "has a blank or a control character";
    }
    if (strpbrk(url, "?#\\") != NULL) {
        return "has a query, a fragment or a backslash";
    }
    if (strchr(url, '@') != NULL) {
        return "has a user in it";
    }
    return NULL;
}
