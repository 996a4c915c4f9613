/*
 * rule_list.h - the rule of each output of each kind, from op_list.h, for the table of rules.c and
 * CUDA's switch.
 *
 * RULE_LIST expands to RULE_ENTRY(OP_KIND, output, rule_name) for each; who expands it defines
 * RULE_ENTRY. OP_SPLIT is missing, since it has any number of outputs: rule_split() takes the
 * number.
 */
#ifndef ENGINE_RULES_RULE_LIST_H
#define ENGINE_RULES_RULE_LIST_H

#include "engine/ops/op_list.h"

#define RULE_LIST OP_LIST(RULE_ROW)

#define RULE_ROW(NAME, text, spec, rules, ...) RULE_WORDS(NAME, RULE_FROM_##rules)
#define RULE_FROM_OP_RULES(...)                RULE_EACH, __VA_ARGS__
#define RULE_FROM_OP_RULE_OF_ANY(rule)         RULE_NONE, rule
#define RULE_WORDS(...)                        RULE_WORDS_(__VA_ARGS__)
#define RULE_WORDS_(NAME, EXPAND, ...)         EXPAND(NAME, __VA_ARGS__)
#define RULE_EACH(NAME, ...)                   OP_EACH(RULE_ONE, NAME, __VA_ARGS__)
#define RULE_ONE(NAME, output, rule)           RULE_ENTRY(OP_##NAME, output, rule_##rule)
#define RULE_NONE(NAME, rule)

#endif /* ENGINE_RULES_RULE_LIST_H */
