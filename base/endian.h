/*
 * endian.h - numbers as bytes, at any address. What reaches disk, chain or network is big-endian;
 * little-endian is for the formats of others (safetensors, npy).
 */
#ifndef BASE_ENDIAN_H
#define BASE_ENDIAN_H

#include <stdint.h>
#include <string.h>

static inline uint16_t endian_load_be16(const void *bytes)
{
    uint16_t value;

    memcpy(&value, bytes, sizeof(value));
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? value : __builtin_bswap16(value);
}

static inline uint32_t endian_load_be32(const void *bytes)
{
    uint32_t value;

    memcpy(&value, bytes, sizeof(value));
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? value : __builtin_bswap32(value);
}

static inline uint64_t endian_load_be64(const void *bytes)
{
    uint64_t value;

    memcpy(&value, bytes, sizeof(value));
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? value : __builtin_bswap64(value);
}

static inline void endian_store_be16(void *bytes, uint16_t value)
{
    value = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? value : __builtin_bswap16(value);
    memcpy(bytes, &value, sizeof(value));
}

static inline void endian_store_be32(void *bytes, uint32_t value)
{
    value = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? value : __builtin_bswap32(value);
    memcpy(bytes, &value, sizeof(value));
}

static inline void endian_store_be64(void *bytes, uint64_t value)
{
    value = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? value : __builtin_bswap64(value);
    memcpy(bytes, &value, sizeof(value));
}

static inline uint16_t endian_load_le16(const void *bytes)
{
    return __builtin_bswap16(endian_load_be16(bytes));
}

static inline uint32_t endian_load_le32(const void *bytes)
{
    return __builtin_bswap32(endian_load_be32(bytes));
}

static inline uint64_t endian_load_le64(const void *bytes)
{
    return __builtin_bswap64(endian_load_be64(bytes));
}

static inline void endian_store_le16(void *bytes, uint16_t value)
{
    endian_store_be16(bytes, __builtin_bswap16(value));
}

static inline void endian_store_le32(void *bytes, uint32_t value)
{
    endian_store_be32(bytes, __builtin_bswap32(value));
}

static inline void endian_store_le64(void *bytes, uint64_t value)
{
    endian_store_be64(bytes, __builtin_bswap64(value));
}

#endif /* BASE_ENDIAN_H */
