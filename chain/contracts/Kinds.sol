// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Evidence} from "./Evidence.sol";
import {IRules} from "./IRules.sol";

/// @title Kinds
/// @notice Numbers of kinds, of their attributes and of function codes.
/// @dev Written by scripts/kinds from engine/ops/op_list.h; not to be edited.
abstract contract Kinds {
    // Kinds.
    uint256 internal constant OP_STEP_NEXT = 0;
    uint256 internal constant OP_SCHEDULE = 1;
    uint256 internal constant OP_FILL = 2;
    uint256 internal constant OP_BATCH_TOKENS = 3;
    uint256 internal constant OP_BATCH_SAMPLES = 4;
    uint256 internal constant OP_DROPOUT = 5;
    uint256 internal constant OP_GATHER = 6;
    uint256 internal constant OP_SPLIT = 7;
    uint256 internal constant OP_CONCAT = 8;
    uint256 internal constant OP_EXPAND = 9;
    uint256 internal constant OP_IM2COL = 10;
    uint256 internal constant OP_COL2IM = 11;
    uint256 internal constant OP_ROTARY = 12;
    uint256 internal constant OP_QUANTIZE = 13;
    uint256 internal constant OP_CONTRACT = 14;
    uint256 internal constant OP_CONTRACT_ONES = 15;
    uint256 internal constant OP_CONTRACT_ONEHOT = 16;
    uint256 internal constant OP_ROW_SUM = 17;
    uint256 internal constant OP_LAYER_NORM = 18;
    uint256 internal constant OP_LAYER_NORM_GRAD = 19;
    uint256 internal constant OP_RMS_NORM = 20;
    uint256 internal constant OP_RMS_NORM_GRAD = 21;
    uint256 internal constant OP_SOFTMAX = 22;
    uint256 internal constant OP_SOFTMAX_GRAD = 23;
    uint256 internal constant OP_CROSS_ENTROPY = 24;
    uint256 internal constant OP_CROSS_ENTROPY_GRAD = 25;
    uint256 internal constant OP_MAX_POOL = 26;
    uint256 internal constant OP_MAX_POOL_GRAD = 27;
    uint256 internal constant OP_MEAN_POOL = 28;
    uint256 internal constant OP_MEAN_POOL_GRAD = 29;
    uint256 internal constant OP_CLIP_FACTOR = 30;
    uint256 internal constant OP_SGD = 31;
    uint256 internal constant OP_ADAMW = 32;
    uint256 internal constant OP_MAP = 33;
    uint256 internal constant OP_BINARY = 34;
    uint256 internal constant OP_SELECT = 35;
    uint256 internal constant OP_MOVE = 36;
    uint256 internal constant OP_PLACE = 37;
    uint256 internal constant OP_REDUCE = 38;
    uint256 internal constant OP_GATHER_ELEMENTS = 39;
    uint256 internal constant OP_GATHER_ELEMENTS_GRAD = 40;
    uint256 internal constant OP_EQUILIBRATE = 41;
    uint256 internal constant OP_CAST = 42;
    uint256 internal constant OP_BATCH_ROWS = 43;
    uint256 internal constant OP_UNIFORM = 44;
    uint256 internal constant OP_CONTRACT_CHOSEN = 45;
    uint256 internal constant OP_CONTRACT_CHOSEN_ROWS = 46;
    uint256 internal constant OP_INTEGER = 47;
    uint256 internal constant OP_TAKE = 48;
    uint256 internal constant OP_SCATTER = 49;
    uint256 internal constant OP_SORT = 50;

    // Functions of MAP.
    uint256 internal constant MAP_NEG = 0;
    uint256 internal constant MAP_ABS = 1;
    uint256 internal constant MAP_SIGN = 2;
    uint256 internal constant MAP_FLOOR = 3;
    uint256 internal constant MAP_CEIL = 4;
    uint256 internal constant MAP_ROUND = 5;
    uint256 internal constant MAP_SQRT = 6;
    uint256 internal constant MAP_RSQRT = 7;
    uint256 internal constant MAP_RECIPROCAL = 8;
    uint256 internal constant MAP_EXP = 9;
    uint256 internal constant MAP_LOG = 10;
    uint256 internal constant MAP_TANH = 11;
    uint256 internal constant MAP_SIGMOID = 12;
    uint256 internal constant MAP_ERF = 13;
    uint256 internal constant MAP_SIN = 14;
    uint256 internal constant MAP_COS = 15;
    uint256 internal constant MAP_GELU_ERF = 16;
    uint256 internal constant MAP_GELU_ERF_SLOPE = 17;
    uint256 internal constant MAP_SCALE = 18;
    uint256 internal constant MAP_RELU = 19;
    uint256 internal constant MAP_GELU = 20;
    uint256 internal constant MAP_SILU = 21;

    // Functions of BINARY.
    uint256 internal constant BINARY_ADD = 0;
    uint256 internal constant BINARY_SUB = 1;
    uint256 internal constant BINARY_MUL = 2;
    uint256 internal constant BINARY_DIV = 3;
    uint256 internal constant BINARY_MAX = 4;
    uint256 internal constant BINARY_MIN = 5;
    uint256 internal constant BINARY_POW = 6;
    uint256 internal constant BINARY_LESS = 7;
    uint256 internal constant BINARY_LESS_EQUAL = 8;
    uint256 internal constant BINARY_EQUAL = 9;
    uint256 internal constant BINARY_NOT_EQUAL = 10;
    uint256 internal constant BINARY_RELU_GRAD = 11;
    uint256 internal constant BINARY_GELU_GRAD = 12;
    uint256 internal constant BINARY_SILU_GRAD = 13;
    uint256 internal constant BINARY_SQUARED_ERROR = 14;
    uint256 internal constant BINARY_SQUARED_ERROR_SLOPE = 15;

    // Functions of INTEGER.
    uint256 internal constant INTEGER_ADD = 0;
    uint256 internal constant INTEGER_SUB = 1;
    uint256 internal constant INTEGER_MUL = 2;
    uint256 internal constant INTEGER_DIV = 3;
    uint256 internal constant INTEGER_MOD = 4;
    uint256 internal constant INTEGER_AND = 5;
    uint256 internal constant INTEGER_OR = 6;
    uint256 internal constant INTEGER_XOR = 7;
    uint256 internal constant INTEGER_SHIFT_LEFT = 8;
    uint256 internal constant INTEGER_SHIFT_RIGHT = 9;
    uint256 internal constant INTEGER_LESS = 10;
    uint256 internal constant INTEGER_LESS_EQUAL = 11;
    uint256 internal constant INTEGER_EQUAL = 12;
    uint256 internal constant INTEGER_NOT_EQUAL = 13;

    // Attributes: SCHEDULE.
    uint256 internal constant SCHEDULE_COLUMNS = 0;
    uint256 internal constant SCHEDULE_COLUMN = 1;

    // Attributes: FILL.
    uint256 internal constant FILL_VALUE_BITS = 0;

    // Attributes: BATCH_TOKENS.
    uint256 internal constant BATCH_TOKENS_COUNT = 0;
    uint256 internal constant BATCH_TOKENS_LENGTH = 1;
    uint256 internal constant BATCH_TOKENS_STREAM = 2;
    uint256 internal constant BATCH_TOKENS_SEED_LOW = 3;
    uint256 internal constant BATCH_TOKENS_SEED_HIGH = 4;

    // Attributes: BATCH_SAMPLES.
    uint256 internal constant BATCH_SAMPLES_COUNT = 0;
    uint256 internal constant BATCH_SAMPLES_LENGTH = 1;
    uint256 internal constant BATCH_SAMPLES_STREAM = 2;
    uint256 internal constant BATCH_SAMPLES_SEED_LOW = 3;
    uint256 internal constant BATCH_SAMPLES_SEED_HIGH = 4;
    uint256 internal constant BATCH_SAMPLES_SCALE_BITS = 5;

    // Attributes: BATCH_ROWS.
    uint256 internal constant BATCH_ROWS_COUNT = 0;
    uint256 internal constant BATCH_ROWS_LENGTH = 1;
    uint256 internal constant BATCH_ROWS_STREAM = 2;
    uint256 internal constant BATCH_ROWS_SEED_LOW = 3;
    uint256 internal constant BATCH_ROWS_SEED_HIGH = 4;
    uint256 internal constant BATCH_ROWS_UNIT = 5;
    uint256 internal constant BATCH_ROWS_AHEAD = 6;
    uint256 internal constant BATCH_ROWS_PAST = 7;
    uint256 internal constant BATCH_ROWS_ORDER = 8;

    // Attributes: DROPOUT.
    uint256 internal constant DROPOUT_THRESHOLD = 0;
    uint256 internal constant DROPOUT_SCALE_BITS = 1;
    uint256 internal constant DROPOUT_STREAM = 2;
    uint256 internal constant DROPOUT_SEED_LOW = 3;
    uint256 internal constant DROPOUT_SEED_HIGH = 4;

    // Attributes: UNIFORM.
    uint256 internal constant UNIFORM_STREAM = 0;
    uint256 internal constant UNIFORM_SEED_LOW = 1;
    uint256 internal constant UNIFORM_SEED_HIGH = 2;

    // Attributes: GATHER.
    uint256 internal constant GATHER_VOCABULARY = 0;
    uint256 internal constant GATHER_WIDTH = 1;

    // Attributes: SPLIT.
    uint256 internal constant SPLIT_ROWS = 0;
    uint256 internal constant SPLIT_WIDTH = 1;

    // Attributes: EXPAND.
    uint256 internal constant EXPAND_DIV = 0;
    uint256 internal constant EXPAND_MOD = 1;

    // Attributes: IMAGE.
    uint256 internal constant IMAGE_BATCH = 0;
    uint256 internal constant IMAGE_HEIGHT = 1;
    uint256 internal constant IMAGE_WIDTH = 2;
    uint256 internal constant IMAGE_CHANNELS = 3;
    uint256 internal constant IMAGE_KERNEL_HEIGHT = 4;
    uint256 internal constant IMAGE_KERNEL_WIDTH = 5;
    uint256 internal constant IMAGE_STRIDE_Y = 6;
    uint256 internal constant IMAGE_STRIDE_X = 7;
    uint256 internal constant IMAGE_TOP = 8;
    uint256 internal constant IMAGE_LEFT = 9;
    uint256 internal constant IMAGE_BOTTOM = 10;
    uint256 internal constant IMAGE_RIGHT = 11;
    uint256 internal constant IMAGE_DILATION_Y = 12;
    uint256 internal constant IMAGE_DILATION_X = 13;

    // Attributes: ROTARY.
    uint256 internal constant ROTARY_LENGTH = 0;
    uint256 internal constant ROTARY_HEADS = 1;
    uint256 internal constant ROTARY_WIDTH = 2;
    uint256 internal constant ROTARY_INVERSE = 3;
    uint256 internal constant ROTARY_HALVES = 4;

    // Attributes: QUANTIZE.
    uint256 internal constant QUANTIZE_B0 = 0;
    uint256 internal constant QUANTIZE_B1 = 1;
    uint256 internal constant QUANTIZE_R0 = 2;
    uint256 internal constant QUANTIZE_R1 = 3;
    uint256 internal constant QUANTIZE_K0 = 4;
    uint256 internal constant QUANTIZE_K1 = 5;
    uint256 internal constant QUANTIZE_SB0 = 6;
    uint256 internal constant QUANTIZE_SB1 = 7;
    uint256 internal constant QUANTIZE_SR0 = 8;
    uint256 internal constant QUANTIZE_SR1 = 9;
    uint256 internal constant QUANTIZE_SK0 = 10;
    uint256 internal constant QUANTIZE_SK1 = 11;
    uint256 internal constant QUANTIZE_BITS = 12;
    uint256 internal constant QUANTIZE_BLOCK = 13;

    // Attributes: CONTRACT.
    uint256 internal constant CONTRACT_B0 = 0;
    uint256 internal constant CONTRACT_B1 = 1;
    uint256 internal constant CONTRACT_M0 = 2;
    uint256 internal constant CONTRACT_M1 = 3;
    uint256 internal constant CONTRACT_N0 = 4;
    uint256 internal constant CONTRACT_N1 = 5;
    uint256 internal constant CONTRACT_SB0 = 6;
    uint256 internal constant CONTRACT_SB1 = 7;
    uint256 internal constant CONTRACT_SM0 = 8;
    uint256 internal constant CONTRACT_SM1 = 9;
    uint256 internal constant CONTRACT_SN0 = 10;
    uint256 internal constant CONTRACT_SN1 = 11;
    uint256 internal constant CONTRACT_K = 12;
    uint256 internal constant CONTRACT_BITS = 13;
    uint256 internal constant CONTRACT_BLOCK = 14;
    uint256 internal constant CONTRACT_CAUSAL = 15;

    // Attributes: ONES.
    uint256 internal constant ONES_ROWS = 0;
    uint256 internal constant ONES_K = 1;
    uint256 internal constant ONES_BITS = 2;
    uint256 internal constant ONES_BLOCK = 3;

    // Attributes: ONEHOT.
    uint256 internal constant ONEHOT_VOCABULARY = 0;
    uint256 internal constant ONEHOT_WIDTH = 1;
    uint256 internal constant ONEHOT_K = 2;
    uint256 internal constant ONEHOT_BITS = 3;
    uint256 internal constant ONEHOT_BLOCK = 4;

    // Attributes: EQUILIBRATE.
    uint256 internal constant EQUILIBRATE_ROWS = 0;
    uint256 internal constant EQUILIBRATE_E = 1;
    uint256 internal constant EQUILIBRATE_F = 2;

    // Attributes: CHOSEN.
    uint256 internal constant CHOSEN_ROWS = 0;
    uint256 internal constant CHOSEN_EXPERTS = 1;
    uint256 internal constant CHOSEN_WIDTH = 2;
    uint256 internal constant CHOSEN_K = 3;
    uint256 internal constant CHOSEN_BITS = 4;
    uint256 internal constant CHOSEN_BLOCK = 5;

    // Attributes: CHOSEN_SUM.
    uint256 internal constant CHOSEN_SUM_EXPERTS = 0;
    uint256 internal constant CHOSEN_SUM_M = 1;
    uint256 internal constant CHOSEN_SUM_N = 2;
    uint256 internal constant CHOSEN_SUM_K = 3;
    uint256 internal constant CHOSEN_SUM_BITS = 4;
    uint256 internal constant CHOSEN_SUM_BLOCK = 5;

    // Attributes: ROW_SUM.
    uint256 internal constant ROW_SUM_ROWS = 0;
    uint256 internal constant ROW_SUM_COLUMNS = 1;

    // Attributes: NORM.
    uint256 internal constant NORM_ROWS = 0;
    uint256 internal constant NORM_COLUMNS = 1;
    uint256 internal constant NORM_EPSILON_BITS = 2;

    // Attributes: NORM_GRAD.
    uint256 internal constant NORM_GRAD_ROWS = 0;
    uint256 internal constant NORM_GRAD_COLUMNS = 1;

    // Attributes: SOFTMAX.
    uint256 internal constant SOFTMAX_ROWS = 0;
    uint256 internal constant SOFTMAX_COLUMNS = 1;
    uint256 internal constant SOFTMAX_CAUSAL = 2;
    uint256 internal constant SOFTMAX_SCALE_BITS = 3;

    // Attributes: CROSS_ENTROPY.
    uint256 internal constant CROSS_ENTROPY_ROWS = 0;
    uint256 internal constant CROSS_ENTROPY_COLUMNS = 1;

    // Attributes: REDUCE.
    uint256 internal constant REDUCE_ROWS = 0;
    uint256 internal constant REDUCE_COLUMNS = 1;
    uint256 internal constant REDUCE_FUNCTION = 2;

    // Attributes: GATHER_ELEMENTS.
    uint256 internal constant GATHER_ELEMENTS_ROWS = 0;
    uint256 internal constant GATHER_ELEMENTS_COLUMNS = 1;

    // Attributes: MEAN_POOL.
    uint256 internal constant MEAN_POOL_BATCH = 0;
    uint256 internal constant MEAN_POOL_HEIGHT = 1;
    uint256 internal constant MEAN_POOL_WIDTH = 2;
    uint256 internal constant MEAN_POOL_CHANNELS = 3;
    uint256 internal constant MEAN_POOL_KERNEL_HEIGHT = 4;
    uint256 internal constant MEAN_POOL_KERNEL_WIDTH = 5;
    uint256 internal constant MEAN_POOL_STRIDE_Y = 6;
    uint256 internal constant MEAN_POOL_STRIDE_X = 7;
    uint256 internal constant MEAN_POOL_TOP = 8;
    uint256 internal constant MEAN_POOL_LEFT = 9;
    uint256 internal constant MEAN_POOL_BOTTOM = 10;
    uint256 internal constant MEAN_POOL_RIGHT = 11;
    uint256 internal constant MEAN_POOL_DILATION_Y = 12;
    uint256 internal constant MEAN_POOL_DILATION_X = 13;
    uint256 internal constant MEAN_POOL_COUNTS_PADDING = 14;

    // Attributes: CLIP.
    uint256 internal constant CLIP_LIMIT_BITS = 0;

    // Attributes: SGD.
    uint256 internal constant SGD_MOMENTUM_BITS = 0;
    uint256 internal constant SGD_DECAY_BITS = 1;

    // Attributes: ADAMW.
    uint256 internal constant ADAMW_BETA1_BITS = 0;
    uint256 internal constant ADAMW_ONE_LESS_BETA1_BITS = 1;
    uint256 internal constant ADAMW_BETA2_BITS = 2;
    uint256 internal constant ADAMW_ONE_LESS_BETA2_BITS = 3;
    uint256 internal constant ADAMW_EPSILON_BITS = 4;
    uint256 internal constant ADAMW_DECAY_BITS = 5;

    // Attributes: MAP.
    uint256 internal constant MAP_FUNCTION = 0;
    uint256 internal constant MAP_CONSTANT_BITS = 1;

    // Attributes: BINARY.
    uint256 internal constant BINARY_FUNCTION = 0;
    uint256 internal constant BINARY_D0 = 1;
    uint256 internal constant BINARY_D1 = 2;
    uint256 internal constant BINARY_D2 = 3;
    uint256 internal constant BINARY_D3 = 4;
    uint256 internal constant BINARY_A0 = 5;
    uint256 internal constant BINARY_A1 = 6;
    uint256 internal constant BINARY_A2 = 7;
    uint256 internal constant BINARY_A3 = 8;
    uint256 internal constant BINARY_B0 = 9;
    uint256 internal constant BINARY_B1 = 10;
    uint256 internal constant BINARY_B2 = 11;
    uint256 internal constant BINARY_B3 = 12;

    // Attributes: SELECT.
    uint256 internal constant SELECT_D0 = 0;
    uint256 internal constant SELECT_D1 = 1;
    uint256 internal constant SELECT_D2 = 2;
    uint256 internal constant SELECT_D3 = 3;
    uint256 internal constant SELECT_C0 = 4;
    uint256 internal constant SELECT_C1 = 5;
    uint256 internal constant SELECT_C2 = 6;
    uint256 internal constant SELECT_C3 = 7;
    uint256 internal constant SELECT_A0 = 8;
    uint256 internal constant SELECT_A1 = 9;
    uint256 internal constant SELECT_A2 = 10;
    uint256 internal constant SELECT_A3 = 11;
    uint256 internal constant SELECT_B0 = 12;
    uint256 internal constant SELECT_B1 = 13;
    uint256 internal constant SELECT_B2 = 14;
    uint256 internal constant SELECT_B3 = 15;

    // Attributes: MOVE.
    uint256 internal constant MOVE_D0 = 0;
    uint256 internal constant MOVE_D1 = 1;
    uint256 internal constant MOVE_D2 = 2;
    uint256 internal constant MOVE_D3 = 3;
    uint256 internal constant MOVE_D4 = 4;
    uint256 internal constant MOVE_S0 = 5;
    uint256 internal constant MOVE_S1 = 6;
    uint256 internal constant MOVE_S2 = 7;
    uint256 internal constant MOVE_S3 = 8;
    uint256 internal constant MOVE_S4 = 9;
    uint256 internal constant MOVE_OFFSET = 10;

    // Attributes: INTEGER.
    uint256 internal constant INTEGER_FUNCTION = 0;
    uint256 internal constant INTEGER_D0 = 1;
    uint256 internal constant INTEGER_D1 = 2;
    uint256 internal constant INTEGER_D2 = 3;
    uint256 internal constant INTEGER_D3 = 4;
    uint256 internal constant INTEGER_A0 = 5;
    uint256 internal constant INTEGER_A1 = 6;
    uint256 internal constant INTEGER_A2 = 7;
    uint256 internal constant INTEGER_A3 = 8;
    uint256 internal constant INTEGER_B0 = 9;
    uint256 internal constant INTEGER_B1 = 10;
    uint256 internal constant INTEGER_B2 = 11;
    uint256 internal constant INTEGER_B3 = 12;

    // Attributes: TAKE.
    uint256 internal constant TAKE_ROWS = 0;
    uint256 internal constant TAKE_COLUMNS = 1;
    uint256 internal constant TAKE_WIDTH = 2;

    // Attributes: SCATTER.
    uint256 internal constant SCATTER_ROWS = 0;
    uint256 internal constant SCATTER_COLUMNS = 1;
    uint256 internal constant SCATTER_WIDTH = 2;
    uint256 internal constant SCATTER_FUNCTION = 3;

    // Attributes: SORT.
    uint256 internal constant SORT_ROWS = 0;
    uint256 internal constant SORT_COLUMNS = 1;
    uint256 internal constant SORT_DESCENDING = 2;
}

/// @title RuleBook
/// @notice Which contract has the rules of a kind, or of a function code.
/// @dev Written likewise.
abstract contract RuleBook is Kinds {
    using Evidence for Evidence.Exhibit;

    uint256 internal constant RULE_CONTRACTS = 7;
    uint256 internal constant RULES_MOVES = 1;
    uint256 internal constant RULES_ELEMENTWISE = 2;
    uint256 internal constant RULES_CONTRACTION = 3;
    uint256 internal constant RULES_ROWS = 4;
    uint256 internal constant RULES_MAP = 5;
    uint256 internal constant RULES_BINARY = 6;
    uint256 internal constant RULES_FUNCTIONS = 7;

    // The contract of each kind, four bits each: kind 0 stands last. Then of function codes.
    uint256 internal constant BOOK = 0x222233111344411665222111144444444433332111111111111;
    uint256 internal constant MAP_BOOK = 0x5555777775555555555555;

    IRules public immutable MOVES;
    IRules public immutable ELEMENTWISE;
    IRules public immutable CONTRACTION;
    IRules public immutable ROWS;
    IRules public immutable MAP;
    IRules public immutable BINARY;
    IRules public immutable FUNCTIONS;

    constructor(IRules[RULE_CONTRACTS] memory rules) {
        MOVES = rules[0];
        ELEMENTWISE = rules[1];
        CONTRACTION = rules[2];
        ROWS = rules[3];
        MAP = rules[4];
        BINARY = rules[5];
        FUNCTIONS = rules[6];
    }

    /// @dev The contract that has the rule of an operation.
    function _rules(Evidence.Exhibit memory shown) internal view returns (IRules) {
        uint256 number = _contractOf(shown.operation);
        if (shown.operation == OP_MAP) {
            number = (MAP_BOOK >> (4 * shown.natural(MAP_FUNCTION))) & 15;
        }
        if (number == RULES_MOVES) return MOVES;
        if (number == RULES_ELEMENTWISE) return ELEMENTWISE;
        if (number == RULES_CONTRACTION) return CONTRACTION;
        if (number == RULES_ROWS) return ROWS;
        if (number == RULES_MAP) return MAP;
        if (number == RULES_BINARY) return BINARY;
        if (number == RULES_FUNCTIONS) return FUNCTIONS;
        revert Evidence.BadDescriptor();
    }

    function _contractOf(uint256 kind) internal pure returns (uint256) {
        return (BOOK >> (4 * kind)) & 15;
    }
}
