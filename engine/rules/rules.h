/*
 * rules.h - the rule of each output, by name; rules.c has the table of them. Inside the engine
 * only. Each function has the contract of rule_element(): see rule.h.
 */
#ifndef ENGINE_RULES_RULES_H
#define ENGINE_RULES_RULES_H

#include "engine/rules/rule.h"
#include "engine/rules/rule_list.h"

/* Outputs of QUANTIZE that its later ones are made of. */
enum { QUANTIZE_PEAKS_OUT, QUANTIZE_EXPONENTS_OUT };

typedef uint32_t rule_function(const struct rule_call *call, uint64_t index);

/* The rule of each output of each row of op_list.h. */
#define RULE_ENTRY(kind, output, rule) RULE rule_function rule;
RULE_LIST
#undef RULE_ENTRY
RULE uint32_t rule_split(const struct rule_call *call, uint32_t part, uint64_t index);

/* As rule_element_part(), over [from, to); the caller has set fold and exponent and zeroed the
 * rest. */
typedef void rule_part_function(struct rule_part *part, const struct rule_call *call,
                                uint64_t index, uint64_t from, uint64_t to);
RULE rule_part_function rule_quantize_peak_part;
RULE rule_part_function rule_quantize_exponent_part;
RULE rule_part_function rule_contract_part;
RULE rule_part_function rule_contract_ones_part;
RULE rule_part_function rule_contract_onehot_part;
RULE rule_part_function rule_contract_chosen_part;
RULE rule_part_function rule_contract_chosen_rows_part;
/* Sets settled, bits and exponent of a zeroed part; returns the element of the axis that poisons,
 * or 0. */
typedef uint64_t rule_base_function(struct rule_part *part, const struct rule_call *call,
                                    uint64_t index);
RULE rule_base_function rule_contract_base;
RULE rule_base_function rule_contract_ones_base;
RULE rule_base_function rule_contract_onehot_base;
RULE rule_base_function rule_contract_chosen_base;
RULE rule_base_function rule_contract_chosen_rows_base;

#endif /* ENGINE_RULES_RULES_H */
