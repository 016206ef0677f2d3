#include "support/chance.h"

chance_t chance_from(uint64_t seed)
{
    uint64_t mixed = (seed + 1) * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 31;
    return (chance_t){mixed == 0 ? 1 : mixed};
}

size_t chance_below(chance_t *chance, size_t limit)
{
    chance->state ^= chance->state << 13;
    chance->state ^= chance->state >> 7;
    chance->state ^= chance->state << 17;
    return (size_t)(chance->state >> 11) % limit;
}
