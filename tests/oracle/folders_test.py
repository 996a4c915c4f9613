"""Goal: a folder that somebody brings is the model that its authors' program makes of it, or it is
refused by name; nothing is read in another way in silence.
Method: random configs within what each family's published config allows: odd sizes and numbers of
heads, heads of their own width, tied and untied, types, shards, a text part, and keys left out where
the value is what the published configuration takes without them. PyTorch in float64 gets the whole
config. make test plays 24 folders, make soak 400."""

import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), HERE]
sys.dont_write_bytecode = True

try:
    import torch
except ImportError:
    print("skip: PyTorch is not installed (Debian: apt-get install python3-torch)")
    sys.exit(77)

import families_test as played  # noqa: E402
import torch_decoder as reference  # noqa: E402
import torch_families as families  # noqa: E402
from program import ask, main, path  # noqa: E402

torch.set_num_threads(1)
COUNT = 400 if played.WHOLE else 24
FIRST = int(os.environ.get("FOLDERS_SEED", "0"))

# What a published configuration_*.py takes where the file is silent.
DEFAULTS = {
    "gemma": {"rope_theta": 10000.0, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
              "attention_bias": False},
    "gemma2": {"rope_theta": 10000.0, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
               "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0,
               "final_logit_softcapping": 30.0, "hidden_activation": "gelu_pytorch_tanh"},
    "gemma3_text": {"rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "rms_norm_eps": 1e-6,
                    "tie_word_embeddings": True, "query_pre_attn_scalar": 256,
                    "sliding_window_pattern": 6, "hidden_activation": "gelu_pytorch_tanh"},
    "olmo2": {"rope_theta": 10000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
              "attention_bias": False},
    "granite": {"rope_theta": 10000.0, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
                "embedding_multiplier": 1.0, "residual_multiplier": 1.0,
                "attention_multiplier": 1.0, "logits_scaling": 1.0, "mlp_bias": False},
    "smollm3": {"rope_theta": 2000000.0, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
                "no_rope_layer_interval": 4, "num_key_value_heads": 4},
    "phi3": {"rope_theta": 10000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
             "original_max_position_embeddings": 4096, "partial_rotary_factor": 1.0},
    "glm": {"rope_theta": 10000.0, "rms_norm_eps": 1.5625e-07, "partial_rotary_factor": 0.5,
            "attention_bias": True, "num_key_value_heads": 2, "tie_word_embeddings": False},
    "gpt_neox": {"rotary_pct": 0.25, "rotary_emb_base": 10000, "layer_norm_eps": 1e-5,
                 "use_parallel_residual": True, "hidden_act": "gelu", "tie_word_embeddings": False},
    "stablelm": {"rope_theta": 10000.0, "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.25,
                 "use_qkv_bias": False, "qk_layernorm": False, "use_parallel_residual": False,
                 "tie_word_embeddings": False},
    "starcoder2": {"rope_theta": 10000.0, "norm_epsilon": 1e-5, "use_bias": True,
                   "num_key_value_heads": 2, "tie_word_embeddings": True},
    "phi": {"rope_theta": 10000.0, "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.5,
            "qk_layernorm": False, "hidden_act": "gelu_new", "tie_word_embeddings": False},
    "falcon": {"rope_theta": 10000.0, "layer_norm_epsilon": 1e-5, "alibi": False, "bias": False,
               "multi_query": True, "parallel_attn": True, "tie_word_embeddings": True},
    "opt": {"activation_function": "relu", "do_layer_norm_before": True, "enable_bias": True,
            "tie_word_embeddings": True},
    "mixtral": {"rope_theta": 1000000.0, "rms_norm_eps": 1e-5, "router_aux_loss_coef": 0.001,
                "output_router_logits": False, "tie_word_embeddings": False},
    "qwen3_moe": {"rope_theta": 10000.0, "rms_norm_eps": 1e-6, "norm_topk_prob": False,
                  "router_aux_loss_coef": 0.001, "output_router_logits": False,
                  "tie_word_embeddings": False},
    "olmoe": {"rope_theta": 10000.0, "rms_norm_eps": 1e-5, "norm_topk_prob": False,
              "router_aux_loss_coef": 0.01, "output_router_logits": False,
              "tie_word_embeddings": False},
}
DEFAULTS["glm4"] = DEFAULTS["glm"]
UNTIED_ALONE = ("gpt_neox", "phi")  # another is refused
# Other numbers than the usual ones.
CHOICES = {
    "rope_theta": (500.0, 10000.0, 5e5), "rms_norm_eps": (1e-6, 1e-5, 1e-3),
    "layer_norm_eps": (1e-5, 1e-3), "query_pre_attn_scalar": (5, 12, 256),
    "attn_logit_softcapping": (1.5, 50.0, None), "final_logit_softcapping": (2.0, 30.0, None),
    "embedding_multiplier": (1.0, 7.5), "residual_multiplier": (1.0, 0.3),
    "attention_multiplier": (1.0, 0.11), "logits_scaling": (1.0, 5.0),
    "norm_topk_prob": (True, False), "use_parallel_residual": (True, False),
    "rotary_emb_base": (10000, 700), "use_qkv_bias": (True, False),
    "sliding_window_pattern": (2, 3, 6),
}


def draw_sizes(config, dice):
    """Sizes that a head, its turned part and groups of heads allow."""
    kind = config["model_type"]
    heads, group = dice.choice((1, 2, 3, 5)), dice.choice((1, 2, 3))
    half = {"gpt_neox": 4, "stablelm": 4, "phi": 2, "glm": 2, "glm4": 2}.get(kind, 1)
    width = 2 * half * dice.choice((1, 2, 3))  # of a head
    if kind == "phi3":
        width = 6 if "rope_scaling" in config and config["rope_scaling"] else width
        config.pop("partial_rotary_factor", None)
    config["num_hidden_layers"] = dice.choice((1, 2, 3))
    config["vocab_size"] = dice.choice((64, 65, 71))
    config["num_attention_heads"] = heads * group
    config["hidden_size"] = heads * group * width
    if kind not in ("gpt_neox", "falcon", "opt", "phi"):
        config["num_key_value_heads"] = heads
    if kind == "phi":
        config["num_key_value_heads"] = heads * group
    if "head_dim" in config or kind in ("mixtral"):
        config["head_dim"] = width
        config["hidden_size"] = dice.choice((width * heads, 10, 22))
    if kind == "opt":
        config["word_embed_proj_dim"] = config["hidden_size"]
    if kind == "falcon":
        config["num_kv_heads"] = config["num_attention_heads"]
    for name in ("intermediate_size", "ffn_dim", "moe_intermediate_size"):
        if name in config:
            config[name] = dice.choice((7, 18, 33))


def draw_folder(number):
    """What the folder's config says, the whole config, and how it is written."""
    dice = random.Random(1000003 * FIRST + number)
    family = sorted(played.FAMILIES)[number % len(played.FAMILIES)]
    config = dict(played.FAMILIES[family])
    kind = config["model_type"]
    if family in ("yarn", "phi35", "phi35long", "phi4mini"):
        dice.choice(CHOICES["rope_theta"])
    else:
        draw_sizes(config, dice)
    layers = config["num_hidden_layers"]
    for name in ("layer_types", "no_rope_layers"):
        config.pop(name, None)
    config = DEFAULTS[kind] | config
    for name in sorted(set(CHOICES) & set(config)):
        if name in DEFAULTS[kind] and dice.random() < 0.6:
            config[name] = dice.choice(CHOICES[name] + (DEFAULTS[kind][name],))
    if kind == "gemma3_text" and dice.random() < 0.5:
        config["rope_scaling"] = None
    if kind == "smollm3":
        every = config["no_rope_layer_interval"]
        config["no_rope_layers"] = [int((layer + 1) % every != 0) for layer in range(layers)]
    if kind not in UNTIED_ALONE:
        config["tie_word_embeddings"] = dice.random() < 0.5
    said = {name: value for name, value in config.items() if not (
        name in DEFAULTS[kind] and value == DEFAULTS[kind][name] and dice.random() < 0.7)}
    if kind == "smollm3" and dice.random() < 0.5:
        del said["no_rope_layers"]  # the interval says the same
    how = {"type": dice.choice(("BF16", "F16", "F32")), "shards": dice.choice((1, 1, 2, 3)),
           "seed": dice.randrange(1000), "around": dice.random() < 0.5}
    said["torch_dtype"] = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}[how["type"]]
    return family, said, config, how


def write(number, said, config, how):
    """The folder; of a text part one that says so."""
    place = path("folder.%d" % number)
    weights = families.draw(config, how["type"], how["seed"])
    named = weights
    if config["model_type"] == "gemma3_text" and how["around"]:
        said = {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
                "text_config": {k: v for k, v in said.items() if k != "architectures"},
                "vision_config": {"hidden_size": 4}}
        if not config["tie_word_embeddings"]:
            said["tie_word_embeddings"] = False
        named = {"language_model." + name: tensor for name, tensor in weights.items()}
    reference.write_folder(place, said, named, how["type"], how["shards"])
    return place, weights


def folder(number):
    """Its loss and logits are those of the published formulas."""
    def test():
        family, said, config, how = draw_folder(number)
        place, weights = write(number, said, config, how)
        left = sorted(set(config) - set(said))
        print("# %s: %s without %s" % (family, how, ", ".join(left) or "nothing"))
        decoder = families.Family(config, weights, None, how["type"])
        tokens, _ = reference.batch_of(played.data_of()[1], played.LENGTH, played.BATCH, 0)
        decoder(tokens)
        if decoder.close_routes():
            print("# left out: %d routes are open" % decoder.close_routes())
            return
        played.check_answers(place, "folder.%d.says" % number, decoder)

    test.__name__ = "folder_%d_is_the_published_model" % (FIRST * COUNT + number)
    return test


def what_longrope_was_stretched_from_is_4096_where_nobody_says():
    """By the published configuration of Phi-3: its short list, and a factor from 4096 to 16384."""
    config = played.FAMILIES["phi35"] | {"max_position_embeddings": 16384,
                                         "original_max_position_embeddings": 4096}
    said = {key: value for key, value in config.items() if key[:8] != "original"}
    weights = families.draw(config)
    reference.write_folder(path("silent"), said, weights)
    played.check_answers(path("silent"), "silent.says", families.Family(config, weights))


def configs_that_contradict_their_files_are_refused_by_name():
    for number in range(8):
        family, said, config, how = draw_folder(number)
        how["shards"], how["around"] = 1, False
        weights = families.draw(config, how["type"], how["seed"])
        for stem, change in (("wide", {"vocab_size": config["vocab_size"] + 1}),
                             ("deep", {"num_hidden_layers": config["num_hidden_layers"] + 1}),
                             ("flat", {"num_hidden_layers": config["num_hidden_layers"] - 1})):
            other = {name: value for name, value in (said | change).items() if name != "no_rope_layers"}
            place = path("other.%d.%s" % (number, stem))
            reference.write_folder(place, other, weights, how["type"])
            said_no = ask("job", "new", "--base", place, "--data", played.data_of()[0], "--data-type",
                          "u8", "--length", "8", "--out", path("other.job"), wanted=1)["error"]
            assert "tensor" in said_no["message"] or "num_hidden_layers" in said_no["message"] or (
                "' is " in said_no["message"]), (family, stem, said_no)


TESTS = [folder(number) for number in range(COUNT)]
TESTS += [what_longrope_was_stretched_from_is_4096_where_nobody_says,
          configs_that_contradict_their_files_are_refused_by_name]

if __name__ == "__main__":
    sys.exit(main(TESTS))
