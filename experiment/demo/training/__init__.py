"""Training of the demo's language model: its words, network, training and measurement, in this order.

``python -m experiment.demo.training --out DIR`` repeats all of it from ``recipe.json``.
"""
