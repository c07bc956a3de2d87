"""One measurement of one peer, in the peer's own environment: reads a job on standard input, writes seconds as JSON.

Started by ``bench_local.py --peers PYTHON``; knows nothing of wrods.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from importlib.metadata import version

os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"})


def lm_eval_seconds(job: dict, kind: str) -> float:
    """CPU seconds of the harness's model for scoring two labels, or generating, behind every prompt."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    lm = HFLM(pretrained=job["model"], device="cpu", dtype="float32", batch_size=job["batch"])
    if kind == "choices":
        pairs = [(prompt, f" {label}") for prompt in job["prompts"] for label in ("A", "B")]
        asked = [Instance("loglikelihood", {}, pair, number) for number, pair in enumerate(pairs)]
        work = lm.loglikelihood
    else:
        how = {"until": [], "max_gen_toks": job["tokens"], "do_sample": False}
        asked = [Instance("generate_until", {}, (prompt, how), n) for n, prompt in enumerate(job["prompts"])]
        work = lm.generate_until
    began = time.process_time()
    found = work(asked, disable_tqdm=True)
    took = time.process_time() - began
    assert len(found) == len(asked)
    return took


def inspect_seconds(job: dict) -> float:
    """CPU seconds of Inspect's hf provider for generating behind every prompt, all asked at once."""
    from inspect_ai.model import GenerateConfig, get_model

    config = GenerateConfig(max_tokens=job["tokens"], max_connections=job["batch"], temperature=0.0)
    model = get_model("hf/local", model_path=job["model"], device="cpu", config=config, do_sample=False)

    async def ask() -> int:
        await model.generate("warm up", config=GenerateConfig(max_tokens=1))
        began = time.process_time()
        answers = await asyncio.gather(*(model.generate(prompt) for prompt in job["prompts"]))
        job["took"] = time.process_time() - began
        return len(answers)

    assert asyncio.run(ask()) == len(job["prompts"])
    return job["took"]


def main() -> None:
    """Run one job."""
    import torch

    torch.set_num_threads(1)
    job = json.load(sys.stdin)
    kind = job["kind"]
    took = inspect_seconds(job) if kind == "inspect" else lm_eval_seconds(job, kind)
    name = "inspect-ai" if kind == "inspect" else "lm-eval"
    print("\n" + json.dumps({"seconds": took, "version": f"{name} {version(name)}"}))


if __name__ == "__main__":
    main()
