"""Find and load local checkpoints, with a remedy if there is none to load."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiment.models.engine import ModelSettings, NotThereYet
from stimuli.errors import UserError, unknown_name

DTYPES = ("float32", "bfloat16", "float16")


def choose_device(asked: object) -> str:
    """Return ``cuda``, ``mps`` or ``cpu``: the requested device, or else the fastest available."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if asked is None:
        return next(name for name, present in there.items() if present)
    kind = str(asked).partition(":")[0]
    if kind not in there:
        raise unknown_name("device", str(asked), there)
    if not there[kind]:
        raise UserError(
            f"device {asked} is not on this machine", mend="Leave device out to take what is there."
        )
    return str(asked)


def choose_dtype(asked: object, device: str) -> str:
    """Return the requested number format, or else float32 on a CPU and bfloat16 elsewhere."""
    if asked is None:
        return "float32" if device == "cpu" else "bfloat16"
    if asked not in DTYPES:
        raise unknown_name("dtype", str(asked), DTYPES)
    return str(asked)


def name_processor(device: str = "cpu") -> str:
    """Return the name of the processor."""
    if device.startswith("cuda"):
        import torch

        return str(torch.cuda.get_device_name(device))
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    if platform.system() == "Darwin":
        return printed("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor()
    return platform.processor() or platform.machine()


def printed(*command: str) -> str | None:
    """Return the output of a system program, or None if it is missing."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


_GROUP = Path("/sys/fs/cgroup")


def free_memory(device: str) -> float | None:
    """Return the free bytes on the GPU or machine, counting the file cache as free; None if unknown."""
    if device.startswith("cuda"):
        import torch

        return float(torch.cuda.mem_get_info(device)[0])
    try:
        meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text("ascii").splitlines())
        available = 1024.0 * int(meminfo["MemAvailable"].split()[0])
    except (OSError, ValueError, KeyError):
        try:
            # systems that do not report free memory: half of the total
            available = 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, ValueError, OSError):
            return None
    with contextlib.suppress(OSError, ValueError):
        most = (_GROUP / "memory.max").read_text("ascii").strip()
        if most != "max":
            memory_stat = dict(
                line.split() for line in (_GROUP / "memory.stat").read_text("ascii").splitlines()
            )
            used = int((_GROUP / "memory.current").read_text("ascii")) - int(memory_stat.get("file", 0))
            available = min(available, float(int(most) - used))
    return available


QUANTISATIONS = ("4bit", "8bit")


def choose_quantisation(asked: object, device: str, dtype: str) -> str | None:
    """Return ``4bit`` or ``8bit`` if requested and supported here by a package, else None."""
    if asked is None:
        return None
    if asked not in QUANTISATIONS:
        raise unknown_name("quantisation", str(asked), QUANTISATIONS)
    quantised(str(asked), device, dtype)
    return str(asked)


def quantised(bits: str, device: str, dtype: str) -> Any:
    """Return transformers' configuration for weights of 4 or 8 bits.

    bitsandbytes' 8 bits also round activations, together with the rest of the batch: used only if torchao is missing.
    """
    import torch

    there = {name for name in ("torchao", "bitsandbytes", "accelerate") if importlib.util.find_spec(name)}
    if not device.startswith("mps") and "accelerate" in there:
        if bits == "8bit" and "torchao" in there:
            from transformers import TorchAoConfig

            return TorchAoConfig(importlib.import_module("torchao.quantization").Int8WeightOnlyConfig())
        if "bitsandbytes" in there:
            from transformers import BitsAndBytesConfig

            if bits == "8bit":
                return BitsAndBytesConfig(load_in_8bit=True)
            return BitsAndBytesConfig(
                load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=getattr(torch, dtype)
            )
    package = "torchao" if bits == "8bit" else "bitsandbytes"
    raise UserError(
        f"quantisation: {bits} needs packages that are not installed for {device}",
        mend="Leave quantisation out and take dtype: bfloat16."
        if device.startswith("mps")
        else f"Install them: pip install {package} accelerate; or leave quantisation out.",
    )


def quantisation_package(bits: str | None, device: str, dtype: str) -> str | None:
    """Return name and version of the quantisation package, for the record of a run."""
    if bits is None:
        return None
    name = type(quantised(bits, device, dtype)).__name__
    package = "bitsandbytes" if name == "BitsAndBytesConfig" else "torchao"
    return f"{package} {importlib.metadata.version(package)}"


def how_to_get_it() -> str:
    """Describe how to install the torchvision that matches the installed PyTorch: 0.15.x with 2.0.x and so on."""
    torch = importlib.metadata.version("torch")
    released = re.fullmatch(r"2\.(\d+)\.(\d+)(?:\+(.*))?", torch)
    if released is None:
        return f"Install the torchvision that was released with PyTorch {torch}."
    wanted = f"pip install torchvision==0.{int(released[1]) + 15}.{released[2]}"
    if released[3]:
        return f"{wanted} with the --index-url that PyTorch {torch} came from: torchvision has to be built for {released[3]} too."
    return f'{wanted}, or pip install "wrods[pictures]".'


def not_loading() -> NotThereYet | None:
    """Return the error of an installed torchvision that does not load; None if it loads or is not installed."""
    if importlib.util.find_spec("torchvision") is None:
        return None
    try:
        importlib.import_module("torchvision")
    except (ImportError, RuntimeError, OSError, AttributeError) as fault:
        message = " ".join(str(fault).split())[:200]
        return NotThereYet(
            f"torchvision is installed and does not load with PyTorch {importlib.metadata.version('torch')}, which keeps "
            f"transformers from loading any model: {message}",
            mend=f"{how_to_get_it()} Where no model looks at pictures: pip uninstall torchvision.",
        )
    return None


HUB_S = 5.0
"""Seconds that the Hugging Face hub may take to report whether it has a model."""


@dataclass(frozen=True)
class CheckpointSource:
    """The source of a checkpoint: a folder on this machine or a name on the Hugging Face hub."""

    place: str
    is_folder: bool
    revision: str | None


def require_torch(use: str) -> None:
    """Raise an error with installation advice if a local model needs PyTorch and it is missing."""
    if importlib.util.find_spec("torch") is None:
        raise NotThereYet(
            f"{use} is a local model, and PyTorch is not installed",
            mend='Install the extra "local": pip install "wrods[local]".',
        )


def find_source(settings: ModelSettings) -> CheckpointSource:
    """Return the source that a model's ``use: hf:…`` names."""
    require_torch(settings.use)
    name = settings.name
    path = Path(name).expanduser()
    for folder in (settings.folder / path, path):
        if folder.is_dir():
            if not (folder / "config.json").is_file():
                raise NotThereYet(
                    f"{folder} holds no model: it has no config.json",
                    mend="Name a folder written by save_pretrained, or a model of the Hugging Face hub.",
                )
            return CheckpointSource(str(folder), True, None)
    if Path(name).exists():
        raise UserError(
            f"{name} is a file; a model is a folder with config.json and its weights",
            mend="Name the folder. For GGUF files run a server (llama.cpp, Ollama) and use openai:NAME with base_url.",
        )
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
        raise NotThereYet(
            f"there is no folder {name} (looked from {settings.folder.resolve()} and from here)",
            mend="Correct the path after hf:, or name a model of the Hugging Face hub as owner/name.",
        )
    revision = settings.options.get("revision")
    return CheckpointSource(name, False, str(revision) if revision is not None else None)


def require_on_hub(source: CheckpointSource) -> None:
    """Raise an error if the hub lacks the model, after one query: loading retries a mistyped name and prints each try."""
    if source.is_folder:
        return
    from huggingface_hub import HfApi, try_to_load_from_cache

    is_here = isinstance(
        try_to_load_from_cache(source.place, "config.json", revision=source.revision or "main"), str
    )
    if not is_here:
        HfApi().model_info(source.place, revision=source.revision, timeout=HUB_S)


def load_tokenizer(source: CheckpointSource) -> tuple[Any, Any]:
    """Load configuration and tokenizer, which is all that a preview needs."""
    from transformers import AutoConfig, AutoTokenizer

    try:
        require_on_hub(source)
        config = AutoConfig.from_pretrained(source.place, revision=source.revision)
        tokenizer = AutoTokenizer.from_pretrained(source.place, revision=source.revision)
    except Exception as error:
        raise _load_fault(source, error) from error
    return config, tokenizer


def decoder_beginning(source: CheckpointSource, config: Any) -> tuple[int, ...]:
    """Return the tokens with which an encoder–decoder's answers begin: its start token and any forced ones."""
    from transformers import GenerationConfig

    try:
        generation: Any = GenerationConfig.from_pretrained(source.place, revision=source.revision)
    except OSError:  # a checkpoint may lack one
        generation = None

    def said(name: str) -> int | None:
        for settings in (generation, config):
            if (given := getattr(settings, name, None)) is not None:
                return int(given)
        return None

    names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
    start = next((token for name in names if (token := said(name)) is not None), 0)
    first = said("forced_bos_token_id")
    return (start,) if first is None else (start, first)


def load_model(
    source: CheckpointSource, device: str, dtype: str, quantisation: str | None = None, *, sees: bool = False
) -> Any:
    """Load the weights as ``dtype`` on ``device``: encoder–decoders as such, and with the vision part if ``sees``."""
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText
    from transformers.utils import logging

    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    given: dict[str, Any] = {"revision": source.revision, "dtype": getattr(torch, dtype)}
    try:
        config = AutoConfig.from_pretrained(source.place, revision=source.revision)
        if quantisation is not None:
            given["quantization_config"] = quantised(quantisation, device, dtype)
        if quantisation is not None or stored_quantisation(config) is not None:
            given["device_map"] = {"": device}
        kind = AutoModelForImageTextToText if sees else kind_of(config)
        model = kind.from_pretrained(source.place, **given)
    except UserError:
        raise
    except Exception as error:
        raise _load_fault(source, error) from error
    if "device_map" not in given:
        model = model.to(device)
    return model.eval().requires_grad_(False)


def stored_quantisation(config: Any) -> str | None:
    """Return the method by which a checkpoint's weights are already quantised, or None."""
    quantisation = getattr(config, "quantization_config", None)
    if quantisation is None:
        return None
    method = (
        quantisation.get("quant_method")
        if isinstance(quantisation, dict)
        else getattr(quantisation, "quant_method", None)
    )
    return str(getattr(method, "value", method) or "unnamed")


def kind_of(config: Any) -> Any:
    """Return the transformers class that loads a model with its language-modelling head."""
    import transformers

    if config.is_encoder_decoder:
        return transformers.AutoModelForSeq2SeqLM
    if (
        type(config) not in transformers.MODEL_FOR_CAUSAL_LM_MAPPING
        and type(config) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    ):
        return transformers.AutoModelForImageTextToText
    return transformers.AutoModelForCausalLM


def load_encoder(source: CheckpointSource, device: str) -> Any:
    """Load a model without its head, in 32 bits, to embed texts; for an encoder–decoder, its encoder."""
    import torch
    from transformers import AutoModel

    try:
        model = AutoModel.from_pretrained(source.place, revision=source.revision, dtype=torch.float32)
    except Exception as error:
        raise _load_fault(source, error) from error
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    return model.to(device).eval().requires_grad_(False)


def _load_fault(source: CheckpointSource, error: Exception) -> UserError:
    """Return the error message for a failure to load."""
    causes = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, MemoryError):
        return UserError(
            f"{source.place} does not fit into memory", mend="Take a smaller model or dtype.", exit_code=1
        )
    if isinstance(error, ImportError):
        if (torchvision := not_loading()) is not None:
            return torchvision
        return NotThereYet(
            f"the model {source.place} needs a package that is not installed: {first}",
            mend="Install the package that is named.",
        )
    if source.is_folder:
        return UserError(
            f"the model in {source.place} cannot be loaded: {first}",
            mend="The folder needs config.json, weights and tokenizer of a model that generates text.",
        )
    if "GatedRepoError" in causes:
        return UserError(
            f"{source.place} on the Hugging Face hub wants its terms accepted first",
            mend="Accept them on the model's page, then log in with: hf auth login.",
        )
    if "RepositoryNotFoundError" in causes or "HFValidationError" in causes:
        return UserError(
            f"there is no folder {source.place!r} here, and the Hugging Face hub has no model of that name, or it is private",
            mend="Correct the path, or the name (owner/name, as on the model's page); for private models log in with: hf auth login.",
        )
    offline = {
        "OfflineModeIsEnabled",
        "LocalEntryNotFoundError",
        "ConnectError",
        "ConnectionError",
        "ConnectTimeout",
        "ReadTimeout",
        "PoolTimeout",
    }
    if offline & set(causes):
        return UserError(
            f"{source.place!r} is not a folder here, and the Hugging Face hub cannot be reached to look for it there",
            mend="Give the path of a local folder after hf:, or run once with a connection so that it is kept.",
            exit_code=1,
        )
    return UserError(
        f"{source.place} cannot be loaded: {first}",
        mend="It must be a model that generates text, with a tokenizer.",
    )


_WHOLE_BYTES = 2**30
_CHUNKS = 256
_CHUNK_BYTES = 2**20

MODEL_SUFFIXES = frozenset({".safetensors", ".bin", ".model", ".jinja"})
MODEL_FILES = frozenset(
    {
        *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "vocab.json"),
        *("added_tokens.json", "special_tokens_map.json", "chat_template.json"),
    }
)


def name_revision(source: CheckpointSource, config: Any) -> str:
    """Return the hub's commit, or a hash over the files that define the model (over 1 GiB: 256 MiB of each)."""
    if not source.is_folder:
        return str(getattr(config, "_commit_hash", None) or source.revision or "main")
    total = hashlib.sha256()
    for path in sorted(Path(source.place).iterdir()):
        of_model = (
            path.suffix in MODEL_SUFFIXES or path.name in MODEL_FILES or path.name.endswith(".index.json")
        )
        if of_model and path.is_file():
            total.update(json.dumps([path.name, path.stat().st_size]).encode())
            _hash_file(path, total)
    return f"sha256:{total.hexdigest()[:16]}"


def _hash_file(path: Path, total: hashlib._Hash) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= _WHOLE_BYTES:
            while chunk := file.read(_CHUNK_BYTES):
                total.update(chunk)
            return
        for number in range(_CHUNKS):
            file.seek((size - _CHUNK_BYTES) * number // (_CHUNKS - 1))
            total.update(file.read(_CHUNK_BYTES))
